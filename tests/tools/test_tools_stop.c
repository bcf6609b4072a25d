/* Signals that end faultstat before its command has run: no empty file is left, and a line says so.
 */
#include "cases.h"
#include "child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { FL_ATTEMPTS = 100 };

static char file[64], marker[64], fifo[64], said[64];

static pid_t start(const char *const argv[])
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        union {
            const char *const *in;
            char *const *out;
        } args = {.in = argv};
        assert_non_null(freopen(said, "w", stderr));
        execv(argv[0], args.out);
        _exit(99);
    }
    return pid;
}

/* 128 + signal, or the exit status. */
static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void await_file(pid_t pid)
{
    while (access(file, F_OK) != 0) {
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        sched_yield();
    }
}

static bool says_that_it_is_not_written(void)
{
    static char text[4096];
    (void)read_text(said, text, sizeof(text));
    return strstr(text, text_as("interrupted: %s is not written", file)) != NULL;
}

/* Would the signal end it now? While the command runs they are blocked. */
static bool blocks(pid_t pid, int number)
{
    static char text[8192];
    (void)read_text(text_as("/proc/%d/status", (int)pid), text, sizeof(text));
    unsigned long long blocked = strtoull(strstr(text, "SigBlk:") + 7, NULL, 16);
    return (blocked >> (number - 1) & 1) != 0;
}

/* Start record and halt it between the opening of its file and its command. 0: it was too quick. */
static pid_t start_calibrating(int number)
{
    pid_t pid = start(ARGV(FL_FAULTSTAT, "record", "-q", "-o", file, "--", "touch", marker));
    int status;
    await_file(pid);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    if (!WIFSTOPPED(status)) {
        return 0;
    }
    if (!blocks(pid, number) && access(marker, F_OK) != 0) {
        return pid;
    }
    assert_int_equal(kill(pid, SIGCONT), 0);
    (void)end_of(pid);
    return 0;
}

CASE(a_recording_that_has_not_begun_leaves_no_file)
{
    static const int number[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++) {
        pid_t pid = 0;
        for (int k = 0; k < FL_ATTEMPTS && pid == 0; k++) {
            unlink(file);
            unlink(marker);
            pid = start_calibrating(number[i]);
        }
        assert_true(pid != 0);
        assert_int_equal(kill(pid, number[i]), 0);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_int_equal(end_of(pid), 128 + number[i]);
        assert_int_not_equal(access(file, F_OK), 0);
        assert_int_not_equal(access(marker, F_OK), 0);
        assert_true(says_that_it_is_not_written());
    }
}

/* A comparison that has opened its file and waits for its input, which never comes, is interrupted.
 */
static void interrupt_comparison(void)
{
    pid_t pid = start(
        ARGV(FL_FAULTSTAT, "compare", "-a", "glibc", "-j", file, "--input", fifo, "--", "true"));
    int fd = open(fifo, O_WRONLY | O_CLOEXEC); /* returns once the other end is open */
    assert_true(fd >= 0);
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(end_of(pid), 128 + SIGINT);
    close(fd);
    assert_true(says_that_it_is_not_written());
}

CASE(a_comparison_that_has_not_begun_leaves_no_file)
{
    unlink(file);
    interrupt_comparison();
    assert_int_not_equal(access(file, F_OK), 0);
}

CASE(the_lines_of_top_stay)
{
    static char text[1 << 20]; /* a line has all processes of the machine */
    unlink(file);
    pid_t pid = start(ARGV(FL_FAULTSTAT, "top", "--json", file, "-d", "60", "-n", "2"));
    await_file(pid);
    while (strchr(text, '\n') == NULL) { /* the first round is written */
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        sched_yield();
        (void)read_text(file, text, sizeof(text));
    }
    assert_int_equal(kill(pid, SIGINT), 0);
    assert_int_equal(end_of(pid), 128 + SIGINT);
    assert_false(says_that_it_is_not_written());
    assert_string_equal(fl_child_text(fl_child_json_file(file), "kind"), "top");
}

CASE(a_file_that_was_there_is_kept)
{
    char text[16];
    write_text(file, "before");
    interrupt_comparison();
    (void)read_text(file, text, sizeof(text));
    assert_string_equal(text, "before");
}

static void make_paths(void)
{
    fl_child_make_folder();
    snprintf(file, sizeof(file), "%s/figures", fl_child_folder);
    snprintf(marker, sizeof(marker), "%s/ran", fl_child_folder);
    snprintf(fifo, sizeof(fifo), "%s/fifo", fl_child_folder);
    snprintf(said, sizeof(said), "%s/said", fl_child_folder);
    assert_int_equal(mkfifo(fifo, 0600), 0);
}

CASES_MAIN(.group_setup = make_paths, .group_teardown = fl_child_remove_folder)
