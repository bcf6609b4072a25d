/* fork, two pipes, exec with LD_PRELOAD. */
#include "cases.h"
#include "live_victim.h"

#include <fcntl.h>
#include <math.h>
#include <sys/uio.h>
#include <sys/wait.h>

const char *const fl_live_victim_still[] = {"LD_PRELOAD=" FL_LIBRARY, "FAULTLESS_DISABLE=worker",
                                            NULL};

static struct fl_live_victim running[8];
static size_t nrunning;

struct fl_live_victim fl_live_victim_start(const char *const argv[], const char *const env[])
{
    int in[2];
    int out[2];
    union {
        const char *const *in;
        char *const *out;
    } args = {.in = argv};
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    struct fl_live_victim v = {.pid = fork(), .in = in[1], .out = out[0]};
    assert_true(v.pid >= 0);
    if (v.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
            putenv(strdup(env[i]));
        }
        execv(argv[0], args.out);
        _exit(99);
    }
    close(in[0]);
    close(out[1]);
    assert_true(nrunning < sizeof(running) / sizeof(running[0]));
    return running[nrunning++] = v;
}

const char *fl_live_victim_line(const struct fl_live_victim *v)
{
    static char line[16384];
    size_t len = 0;
    while (len < sizeof(line) - 1) {
        if (read(v->out, line + len, 1) != 1) {
            fail_msg("the victim says nothing");
        }
        if (line[len] == '\n') {
            break;
        }
        len++;
    }
    line[len] = '\0';
    return line;
}

int fl_live_victim_end(const struct fl_live_victim *v)
{
    struct fl_live_victim ended = *v; /* it may stand in the list */
    size_t i = 0;
    int status;
    for (; running[i].pid != ended.pid; i++) {
        assert_true(i < nrunning);
    }
    running[i] = running[--nrunning];
    close(ended.in);
    assert_int_equal(waitpid(ended.pid, &status, 0), ended.pid);
    close(ended.out);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void fl_live_victims_end_well(void)
{
    while (nrunning > 0) {
        assert_int_equal(fl_live_victim_end(&running[nrunning - 1]), 0);
    }
}

struct fl_live_victim fl_live_victim_begin(const char *what, const char *const env[])
{
    struct fl_live_victim v = fl_live_victim_start(ARGV(FL_LIVE, what), env);
    v.said = fl_child_json(fl_live_victim_line(&v));
    return v;
}

const char *fl_live_victim_text(pid_t pid)
{
    return text_as("%d", (int)pid);
}

const json_t *fl_live_victim_top(pid_t pid)
{
    TOP(0, "--json=-", "-n", "1", "-p", fl_live_victim_text(pid));
    assert_string_equal(output.err, "");
    const json_t *root = fl_child_json(output.out), *p = fl_child_item(root, "processes", 0);
    assert_int_equal(json_array_size(json_object_get(root, "processes")), 1);
    assert_int_equal(fl_child_number(p, "pid"), pid);
    return p;
}

double fl_live_victim_kib(pid_t pid, const char *file, const char *key)
{
    char line[256];
    double kib = -1;
    FILE *f = fopen(text_as("/proc/%d/%s", (int)pid, file), "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtod(line + strlen(key), NULL);
        }
    }
    fclose(f);
    return kib;
}

void fl_live_victim_same(const json_t *seen, const json_t *said, const char *key)
{
    double a = fl_child_number(seen, key);
    double b = fl_child_number(said, key);
    if (a != b) {
        fail_msg("%s: top says %.0f, the program %.0f", key, a, b);
    }
}

void fl_live_victim_near(double a, double b, double most, const char *what)
{
    if (fabs(a - b) > most) {
        fail_msg("%s: %.0f is not near %.0f", what, a, b);
    }
}

int fl_live_victim_skip(const char *test)
{
    char from = 'x';
    char to = 0;
    struct iovec local = {&to, 1};
    struct iovec remote = {&from, 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1) {
        return 0;
    }
    printf("SKIP %s: needs process_vm_readv, got %s\n", test, strerror(errno));
    return 77;
}
