/* fork, files for both outputs (no pipe to fill up, and no memory: that may be what there is none
 * of), exec, a pidfd to wait with a limit. */
#include "run.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { ENV_MAX = 256, ARGS_MAX = 32, DEFAULT_SECONDS = 60, EXEC_FAILED = 99 };

extern char **environ;

static bool is_ours(const char *entry)
{
    static const char *const names[] = {"LD_PRELOAD=", "FAULTLESS_", "GLIBC_TUNABLES=", "MALLOC_"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(entry, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void put(char **env, size_t *n, const char *entry)
{
    size_t name_len = strcspn(entry, "=") + 1;

    for (size_t i = 0; i < *n; i++) {
        if (strncmp(env[i], entry, name_len) == 0) {
            env[i] = strdup(entry);
            return;
        }
    }
    assert_true(*n + 1 < ENV_MAX);
    env[(*n)++] = strdup(entry);
    env[*n] = NULL;
}

static void put2(char **env, size_t *n, const char *name, const char *value)
{
    char *entry;

    assert_true(asprintf(&entry, "%s=%s", name, value) > 0);
    put(env, n, entry);
    free(entry);
}

/* The parent's environment without anything of ours, then what the test asks for. */
static void make_env(char **env, const struct fl_how *how, const char *stats)
{
    size_t n = 0;

    for (char **e = environ; *e != NULL; e++) {
        if (!is_ours(*e)) {
            put(env, &n, *e);
        }
    }
    if (how->preload == NULL || how->preload[0] != '\0') {
        put2(env, &n, "LD_PRELOAD", how->preload != NULL ? how->preload : FL_LIB_PATH);
        put2(env, &n, "FAULTLESS_STATS", stats);
        /* Victims ask for 64 KiB and more, which is not large where base pages are. */
        if (getenv("FL_TEST_THRESHOLD") != NULL) {
            put2(env, &n, "FAULTLESS_THRESHOLD", getenv("FL_TEST_THRESHOLD"));
        }
        if (fl_rung_has("shards")) {
            put(env, &n, "FAULTLESS_SHARDS=32");
        }
        if (fl_rung_disabled()[0] != '\0') {
            put2(env, &n, "FAULTLESS_DISABLE", fl_rung_disabled());
        }
    }
    if (fl_rung()[0] != '\0') {
        put(env, &n, "VICTIM_SHORT=1");
    }
    for (size_t i = 0; how->env != NULL && how->env[i] != NULL; i++) {
        put(env, &n, how->env[i]);
    }
}

/* Texts as the victim's user must see them, to free. */
static void translate(char **texts, unsigned as)
{
    for (; *texts != NULL; texts++) {
        char *theirs = fl_for_user(*texts, as);
        free(*texts);
        *texts = theirs;
    }
}

static void free_all(char **texts)
{
    for (; *texts != NULL; texts++) {
        free(*texts);
    }
}

static void make_args(char **args, const struct fl_how *how)
{
    size_t n = 0;

    for (; how->argv[n] != NULL; n++) {
        assert_true(n + 1 < ARGS_MAX);
        args[n] = strdup(how->argv[n]);
    }
}

static void take(int fd, char *text)
{
    ssize_t n = pread(fd, text, FL_RUN_TEXT - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    close(fd);
}

bool fl_is_contained;

/* A container's filter is its first process's too: the victim boots under a filter that its parent
 * has. */
static void let_a_child_go_on(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return;
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        _exit(EXEC_FAILED);
    }
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        kill(getpid(), WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

static _Noreturn void child(const struct fl_how *how, const char *program, char **args, char **env,
                            int out, int err)
{
    const struct rlimit no_core = {0, 0};

    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    setrlimit(RLIMIT_CORE, &no_core);
    if (how->in_child != NULL) {
        how->in_child(how->arg);
    }
    fl_become(how->as | fl_rung_as());
    if (fl_is_contained || ((how->as | fl_rung_as()) & FL_AS_CONTAINED) != 0) {
        let_a_child_go_on();
    }
    execve(program, args, env);
    _exit(EXEC_FAILED);
}

/* A program that hangs is killed. On a machine with more to do than processors it gets more time,
 * and FL_TEST_PATIENCE times as much on an emulated one. */
static int patience(int seconds)
{
    enum { MOST = 4 };
    double load = 0;
    const char *text = getenv("FL_TEST_PATIENCE");
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int times = getloadavg(&load, 1) == 1 && processors > 0 ? (int)(load / (double)processors) : 1;

    times = times < 1 ? 1 : times > MOST ? MOST : times;
    return seconds * times * (text != NULL ? atoi(text) : 1);
}

static void wait_for(struct fl_run *r, pid_t pid, int seconds)
{
    int status, fd = pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_true(fd >= 0);
    if (poll(&p, 1, patience(seconds) * 1000) == 0) {
        r->timed_out = true;
        kill(pid, SIGKILL);
    }
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    r->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r->term_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void tell_all(const char *const texts[])
{
    for (; texts != NULL && *texts != NULL; texts++) {
        print_message(" %s", *texts);
    }
}

/* What ran, and what it said where that is one line. */
static void tell(const struct fl_how *how, const struct fl_run *r)
{
    print_message("          ");
    tell_all(how->env);
    tell_all(how->argv);
    if (how->preload != NULL) {
        print_message(" under %s", how->preload[0] != '\0' ? how->preload : "glibc");
    }
    bool is_line = fl_run_lines(r->out) == 1;
    print_message("%s%s", is_line ? ": " : "\n", is_line ? r->out : "");
}

const struct fl_run *fl_run_how(const struct fl_how *how)
{
    static struct fl_run runs[2];
    static unsigned turn;
    struct fl_run *r = &runs[turn++ % 2];
    char stats[] = "/tmp/fl-preload-XXXXXX", path[512];
    char *env[ENV_MAX] = {NULL}, *args[ARGS_MAX] = {NULL};
    unsigned as = how->as | fl_rung_as();
    int out = open(FL_BUILD_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int err = open(FL_BUILD_DIR, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int stats_fd = mkostemp(stats, O_CLOEXEC);

    memset(r, 0, sizeof *r);
    assert_true(out >= 0 && err >= 0 && stats_fd >= 0);
    assert_int_equal(fchmod(stats_fd, 0666), 0); /* victims may run as another user */
    make_env(env, how, stats);
    make_args(args, how);
    translate(env, as);
    translate(args, as);
    bool is_path = strchr(how->argv[0], '/') != NULL;
    snprintf(path, sizeof path, "%s%s", is_path ? "" : FL_VICTIM_DIR "/", how->argv[0]);
    char *program = fl_for_user(path, as);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        child(how, program, args, env, out, err);
    }
    wait_for(r, pid, how->seconds != 0 ? how->seconds : DEFAULT_SECONDS);
    take(out, r->out);
    take(err, r->err);
    take(stats_fd, r->stats);
    unlink(stats);
    free_all(env);
    free_all(args);
    if (r->exit_status == EXEC_FAILED) {
        fail_msg("%s cannot be run", program);
    }
    tell(how, r);
    free(program);
    return r;
}

bool fl_copy_program(const char *from, const char *to)
{
    char buf[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC),
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n = -1;

    while (in >= 0 && out >= 0 && (n = read(in, buf, sizeof buf)) > 0 &&
           write(out, buf, (size_t)n) == n) {
    }
    bool done = n == 0 && fchmod(out, 0755) == 0;
    close(in);
    close(out);
    return done;
}

const struct fl_run *fl_plain_run(const char *const argv[])
{
    return FL_RUN(argv, .preload = "");
}

long fl_run_said(const struct fl_run *r, const char *word)
{
    const char *p = strstr(r->out, word);

    return p != NULL ? atol(p + strlen(word)) : -1;
}

long long fl_run_stat(const struct fl_run *r, const char *field)
{
    char key[64];
    long long sum = -1;

    snprintf(key, sizeof key, "\"%s\": ", field);
    for (const char *p = r->stats; (p = strstr(p, key)) != NULL;) {
        p += strlen(key);
        sum = (sum < 0 ? 0 : sum) + atoll(p);
    }
    return sum;
}

size_t fl_run_lines(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++) {
        n += *text == '\n';
    }
    return n;
}

const struct fl_run *fl_run_assert_clean(const struct fl_run *r)
{
    if (r->exit_status != 0 || r->err[0] != '\0') {
        fail_msg("exit status %d, signal %d%s\nstdout: %s\nstderr: %s", r->exit_status,
                 r->term_signal, r->timed_out ? " (timed out)" : "", r->out, r->err);
    }
    return r;
}

const struct fl_run *fl_run_assert_active(const struct fl_run *r)
{
    fl_run_assert_clean(r);
    if (fl_run_stat(r, "requests") <= 0) {
        fail_msg("faultless served nothing: %s", r->stats);
    }
    return r;
}

void fl_run_modes(const char *victim, const char *const modes[], const char *const env[])
{
    long long requests = 0;

    for (; *modes != NULL; modes++) {
        requests += fl_run_stat(FL_CLEAN(FL_ARGV(victim, *modes), env), "requests");
    }
    assert_true(requests > 0);
}

void fl_plain_modes(const char *victim, const char *const modes[])
{
    for (; *modes != NULL; modes++) {
        fl_run_assert_clean(fl_plain_run(FL_ARGV(victim, *modes)));
    }
}

void fl_run_assert_as_much(const struct fl_run *ours, const struct fl_run *plain, long percent,
                           const char *const words[])
{
    enum { OVERHEAD_MIB = 6 }; /* the library, its boot area and the first descriptors */

    fl_run_assert_clean(plain);
    fl_run_assert_clean(ours);
    for (; *words != NULL; words++) {
        long got = fl_run_said(ours, *words), bar = fl_run_said(plain, *words);
        print_message("           %s%ld MiB, glibc %ld MiB\n", *words, got, bar);
        assert_true(bar >= 0 && (got + OVERHEAD_MIB) * 100 >= bar * percent);
    }
}

const struct fl_run *fl_run_same(const struct fl_how *how, const char *alone)
{
    struct fl_how other = *how;

    other.preload = alone;
    const struct fl_run *ours = fl_run_how(how), *without = fl_run_how(&other);
    fl_run_assert_clean(without);
    fl_run_assert_clean(ours);
    assert_string_equal(ours->out, without->out);
    return ours;
}

const char *fl_in_order(const char *first, const char *then)
{
    char *both;

    assert_true(asprintf(&both, "%s %s", first, then) > 0);
    return both;
}

static char folders[] = "/tmp/fl-test-XXXXXX";

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

void fl_remove_folder(const char *path)
{
    (void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_folders(void)
{
    fl_remove_folder(folders);
}

const char *fl_folder(void)
{
    static unsigned made;
    char *path;

    if (made == 0) {
        assert_non_null(mkdtemp(folders));
        assert_int_equal(chmod(folders, 0755), 0);
        assert_int_equal(atexit(remove_folders), 0);
    }
    assert_true(asprintf(&path, "%s/%u", folders, made++) > 0);
    assert_true(mkdir(path, 0777) == 0 && chmod(path, 0777) == 0);
    return path;
}

const char *fl_text_of(const char *in, const char *name)
{
    static char text[FL_RUN_TEXT];
    char path[512];

    snprintf(path, sizeof path, "%s/%s", in, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    take(fd, text);
    return text;
}
