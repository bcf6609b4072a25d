/* What boot, fork and exit do of the folder while no GPU is used makes no system call: the kernel
 * ends the child that makes one. */
#include "cases.h"
#include "gpu/gpu.h"
#include "seccomp.h"

#include <sys/wait.h>

static struct fl_options options;

static void nothing_but_exit(bool planted)
{
    static struct filter f;

    filter_begin(&f);
    filter_answer(&f, SYS_exit_group, SECCOMP_RET_ALLOW);
    filter_end(&f, SECCOMP_RET_KILL_PROCESS);
    if (filter_install(&f) != 0) {
        _exit(77);
    }
    fl_gpu_start(NULL, &options);
    fl_gpu_fork_child();
    if (planted) {
        (void)syscall(SYS_gettid);
    }
    (void)syscall(SYS_exit_group, 0); /* before _exit AddressSanitizer asks for the signal stack */
}

static int status_of(bool planted)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        nothing_but_exit(planted);
    }
    (void)waitpid(child, &status, 0);
    return status;
}

CASE(nothing_is_asked_of_the_kernel)
{
    assert_int_equal(status_of(false), 0);
    assert_true(WIFSIGNALED(status_of(true)));
}

int main(void)
{
    fl_sys_boot();
    fl_options_read(&options, NULL);
    if (WEXITSTATUS(status_of(false)) == 77) {
        printf("SKIP test_gpu_start: needs seccomp, got: refused\n");
        return 77;
    }
    return RUN_CASES();
}
