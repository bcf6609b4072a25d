/* What boot, fork and exit do of the folder while no GPU is used makes no system call: the kernel
 * ends the child that makes one. */
#include "cases.h"
#include "gpu/gpu.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct fl_options options;

static void nothing_but_exit(bool planted)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
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
