/* What boot, fork and exit do of the folder while no GPU is used makes no system call: a tracer
 * counts them. */
#include "gpu/gpu.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = SYS_getppid };

static struct fl_options options;

/* Between two marks; with one call more when `planted`. */
static void traced(bool planted)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        _exit(77);
    }
    raise(SIGSTOP);
    syscall(MARK);
    fl_gpu_start(NULL, &options);
    fl_gpu_fork_child();
    if (planted) {
        syscall(SYS_gettid);
    }
    syscall(MARK);
    _exit(0);
}

/* System calls of the child between its marks; -1: it cannot be traced. */
static int count(bool planted)
{
    int status, marks = 0, calls = 0;
    pid_t child = fork();

    if (child == 0) {
        traced(planted);
    }
    while (waitpid(child, &status, 0) == child && !WIFEXITED(status) && !WIFSIGNALED(status)) {
        struct __ptrace_syscall_info info = {.op = PTRACE_SYSCALL_INFO_NONE};
        if (WSTOPSIG(status) == SIGSTOP) { /* the information needs it */
            (void)ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD);
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
            ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) > 0 &&
            info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            bool mark = info.entry.nr == MARK;
            calls += marks == 1 && !mark;
            marks += mark;
        }
        (void)ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && marks == 2 ? calls : -1;
}

static void nothing_is_asked_of_the_kernel(void **state)
{
    (void)state;
    assert_int_equal(count(false), 0);
    assert_int_equal(count(true), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_asked_of_the_kernel)};

    fl_sys_boot();
    fl_options_read(&options, NULL);
    if (count(false) < 0) {
        printf("SKIP test_gpu_start: needs ptrace, got: refused\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
