/* A program that lives under a list of allowed calls without the library lives under it with the
 * library too.
 *
 *   test_host_filters                            filters that are there before the program starts
 *   test_host_filters later|tight|libseccomp|strict     filters that the program installs
 *
 * Lists are made by tracing a run under glibc. A row that fails names the calls that were outside
 * its list. */
#include "host.h"

#include "victims/filter.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>

enum { LIST = 4096, SECONDS = 60, TRIES = 5 };

static const char *const actions[] = {"kill_process", "kill_thread", "trap", "errno"};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

/* Reading and writing, ending, waiting, the time, and what glibc's malloc calls. */
static const unsigned short usual[] = {
    SYS_read,          SYS_write,
    SYS_exit,          SYS_exit_group,
    SYS_brk,           SYS_mmap,
    SYS_munmap,        SYS_mremap,
    SYS_mprotect,      SYS_madvise,
    SYS_futex,         SYS_rt_sigreturn,
    SYS_getpid,        SYS_rt_sigprocmask,
    SYS_clock_gettime, SYS_clock_nanosleep,
    SYS_nanosleep,     SYS_fstat,
    SYS_newfstatat,    SYS_lseek,
    SYS_close,         SYS_gettid,
    SYS_sched_yield,   SYS_getrandom,
    SYS_getrusage,     SYS_restart_syscall,
};

static const char *usual_list(void)
{
    static char list[LIST];

    list[0] = '\0';
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        snprintf(list + strlen(list), sizeof list - strlen(list), "%u,", usual[i]);
    }
    return list;
}

/* Runs a program under the tracer; what that wrote goes to `text`. */
static void trace(const char *mode, const char *list, const char *preload, const char *const argv[],
                  char text[LIST])
{
    char path[] = "/tmp/fl-host-trace-XXXXXX", env[512], disable[160];
    const char *args[24] = {"victim_host_tracer", mode,   path, list, env,
                            "FAULTLESS_STATS=0",  disable};
    size_t n = 7;
    int fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    snprintf(env, sizeof env, "%s%s", preload[0] != '\0' ? "LD_PRELOAD=" : "NO_PRELOAD=", preload);
    snprintf(disable, sizeof disable, "%s%s",
             fl_rung_disabled()[0] != '\0' ? "FAULTLESS_DISABLE=" : "NO_RUNG=", fl_rung_disabled());
    for (args[n++] = "--"; *argv != NULL && n + 1 < sizeof args / sizeof args[0]; argv++) {
        args[n++] = *argv;
    }
    const struct fl_run *r = FL_RUN(args, .preload = "", .seconds = 2 * SECONDS);
    assert_false(r->timed_out);
    ssize_t len = pread(fd, text, LIST - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    close(fd);
    unlink(path);
}

static void add_calls(char list[LIST], const char *more)
{
    snprintf(list + strlen(list), LIST - strlen(list), "%s", more);
}

/* Filters that are there before the program starts: in_child of struct fl_how. */
static void confine(void *arg)
{
    if (filter_install(arg) != 0) {
        _exit(97);
    }
}

static bool is_same(const struct fl_run *a, const struct fl_run *b)
{
    return a->exit_status == b->exit_status && a->term_signal == b->term_signal && !a->timed_out &&
           !b->timed_out && strcmp(a->out, b->out) == 0 && strcmp(a->err, b->err) == 0;
}

static void run_at_boot(const char *const argv[], struct fl_host_tally *tally)
{
    static struct fl_run plain;
    static struct filter filter;
    const char *program = argv[0] + strlen("/usr/bin/");
    char list[LIST], more[LIST];
    unsigned before = tally->failed;
    struct fl_how how = {.argv = argv,
                         .preload = "",
                         .in_child = confine,
                         .arg = &filter,
                         .seconds = SECONDS,
                         .env = FL_ENV("FAULTLESS_STATS=0")};

    /* Whether a signal comes amid a call depends on chance; and what else does, on two runs' */
    snprintf(list, LIST, "%u,%u,", (unsigned)SYS_restart_syscall, (unsigned)SYS_rt_sigreturn);
    for (int i = 0; i < 2; i++) {
        trace("all", "-", "", argv, more);
        add_calls(list, more);
    }
    for (size_t a = 0; a < ACTIONS; a++) {
        filter_make(&filter, list, filter_action(actions[a]));
        how.preload = "";
        plain = *fl_run_how(&how);
        if (plain.exit_status != 0) {
            fail_msg("%s %s: under glibc %s\n%s", argv[0], argv[1], fl_host_end(&plain), plain.err);
        }
        how.preload = NULL;
        const struct fl_run *r = fl_run_how(&how);
        tally->rows++;
        if (!is_same(r, &plain)) {
            fl_host_failed(tally, "%s, %s: %s\n%s", program, actions[a], fl_host_end(r), r->err);
        }
    }
    if (tally->failed > before) {
        trace("outside", list, FL_LIB_PATH, argv, more);
        print_error("%s would make these calls:\n%s", program, more);
    }
}

CASE(at_boot_keep_ordinary_programs_alive)
{
    static const char *const programs[][6] = {
        {"/usr/bin/ls", "-l", "/usr/bin"},
        {"/usr/bin/sort", "-S", "64M", FL_SOURCE_DIR "/docs/internals/syscalls.md"},
        {"/usr/bin/gzip", "-9c", FL_SOURCE_DIR "/docs/internals/syscalls.md"},
        {"/usr/bin/python3", "-Sc",
         "for i in range(9): b = bytearray(b'x' * (20 << 20)); c = b[:] + b; del b\nprint(len(c))"},
        {"/usr/bin/awk",
         "BEGIN { s = \"x\"; while (length(s) < 9000000) s = s s; print length(s) }"},
        {"/usr/bin/tar", "-C", FL_SOURCE_DIR, "-cf", "-", "docs/internals/syscalls.md"},
        {"/usr/bin/grep", "-r", "worker", FL_SOURCE_DIR "/docs"},
        {"/usr/bin/sha256sum", FL_SOURCE_DIR "/docs/internals/syscalls.md"},
        {"/usr/bin/bash", "-c", "x=$(printf '%02000000d' 1); echo ${#x}; /bin/true; (echo in)"},
        {"/usr/bin/dd", "bs=32M", "count=4", "if=/dev/zero", "of=/dev/null", "status=none"},
    };
    struct fl_host_tally tally = {0};

    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const char *argv[7] = {NULL};
        memcpy(argv, programs[i], sizeof programs[i]);
        run_at_boot(argv, &tally);
    }
    fl_host_judge(&tally);
}

/* What its threads call depends a little on chance: a tight list may lack what they call now and
 * then. */
static const struct fl_run *passed_by_glibc(const struct fl_how *run)
{
    const struct fl_run *r = fl_run_how(run);

    for (int i = 1; i < TRIES && r->term_signal == SIGSYS; i++) {
        r = fl_run_how(run);
    }
    return r;
}

/* The victim in all actions, first with calls outside the list only reported. */
static void run_later(const char *how, const char *threads, const char *before, const char *list,
                      struct fl_host_tally *tally)
{
    static struct fl_run plain;
    const char *victim = FL_VICTIM_DIR "/victim_host_filter";
    char strange[LIST] = "";

    if (strcmp(how, "library") != 0) {
        trace("outside", "-", FL_LIB_PATH, FL_ARGV(victim, how, "trace", threads, before, list),
              strange);
    }
    tally->rows++;
    if (strange[0] != '\0') {
        fl_host_failed(tally, "%s, %s threads more, %s MiB before: outside the list\n%s", how,
                       threads, before, strange);
    }
    for (size_t a = 0; a < ACTIONS; a++) {
        struct fl_how run = {.argv = FL_ARGV(victim, how, actions[a], threads, before, list),
                             .preload = "",
                             .seconds = SECONDS,
                             .env = FL_ENV("FAULTLESS_STATS=1")};
        if (a == 0) { /* that glibc passes by the one action tells of all */
            plain = *passed_by_glibc(&run);
            fl_run_assert_clean(&plain);
        }
        run.preload = NULL;
        const struct fl_run *r = fl_run_how(&run);
        tally->rows++;
        if (!is_same(r, &plain)) {
            fl_host_failed(tally, "%s, %s, %s threads more, %s MiB before: %s\n%s%s", how,
                           actions[a], threads, before, fl_host_end(r), r->out, r->err);
        }
    }
}

static void run_later_all(const char *how, const char *threads)
{
    struct fl_host_tally tally = {0};

    run_later(how, threads, "1", usual_list(), &tally);
    run_later(how, threads, "64", usual_list(), &tally);
    fl_host_judge(&tally);
}

/* What glibc's run of that victim called after it would have been confined. */
static void tight_list(const char *threads, const char *before, char list[LIST])
{
    char more[LIST];
    const char *victim = FL_VICTIM_DIR "/victim_host_filter";

    /* futex: whether a lock is waited for depends on chance */
    snprintf(list, LIST, "%u,", (unsigned)SYS_futex);
    for (int i = 0; i < TRIES; i++) {
        trace("confined", "-", "", FL_ARGV(victim, "none", "errno", threads, before, ""), more);
        add_calls(list, more);
    }
}

static void tight_filters(const char *how, const char *threads)
{
    static const char *const before[] = {"1", "64"};
    struct fl_host_tally tally = {0};
    char list[LIST];

    for (size_t i = 0; i < 2; i++) {
        tight_list(threads, before[i], list);
        run_later(how, threads, before[i], list, &tally);
    }
    fl_host_judge(&tally);
}

/* Nothing is to be had from the kernel: it serves what glibc serves from its heap. */
CASE(strict_mode_kills_no_request)
{
    static const char *const bytes[] = {"1000", "66000", "70000", "120000"};
    static const char *const held[] = {"0", "1"}, *const by[] = {"prctl", "seccomp"};
    for (size_t i = 0; i < 16; i++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_host_strict", bytes[i % 4], held[i / 8], by[i / 4 % 2]));
        assert_int_equal(r->term_signal, 0);
        assert_string_equal(r->out, "strict\nasked\nfreed\ncleared\ndone\n");
    }
}

CASE_IS(later_by_prctl, run_later_all("prctl", "0"))
CASE_IS(later_by_seccomp, run_later_all("seccomp", "0"))
CASE_IS(later_by_tsync, run_later_all("tsync", "3"))
CASE_IS(later_without_tsync_beside_threads, run_later_all("seccomp", "3"))
CASE_IS(tight_by_prctl, tight_filters("prctl", "0"))
CASE_IS(tight_by_tsync, tight_filters("tsync", "3"))
CASE_IS(libseccomp_brings_them_later, run_later_all("library", "0"))

/* The cases whose names begin with the word. */
int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "at_boot";

    FL_SKIP_UNLESS(strcmp(word, "libseccomp") != 0 || dlopen("libseccomp.so.2", RTLD_NOW) != NULL,
                   "test_host_filters@libseccomp", "needs libseccomp.so.2");
    cmocka_set_test_filter(text_as("%s_*", word));
    return RUN_CASES();
}
