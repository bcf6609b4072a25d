/* fork, a rendezvous, exec. The child waits for one byte before exec, so that the parent can attach
 * perf events to it; the same socket, closed by a successful exec, brings back exec's error. */
#include "faultstat/spawn.h"

#include "faultstat/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FL_OURS, FL_THEIRS, FL_PAIR };

/* The descriptors of one start; -1 where there is none. */
struct plumbing {
    int meet[FL_PAIR];
    int step[FL_PAIR];
    int out[FL_PAIR];
    int err[FL_PAIR];
};

static void close_one(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void close_side(struct plumbing *p, int side)
{
    close_one(&p->meet[side]);
    close_one(&p->step[side]);
    close_one(&p->out[side]);
    close_one(&p->err[side]);
}

static int open_plumbing(struct plumbing *p, bool capture)
{
    int on = 1;
    memset(p, -1, sizeof(*p));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->meet) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->step) != 0 ||
        setsockopt(p->step[FL_OURS], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
        return -errno;
    }
    if (capture && (pipe2(p->out, O_CLOEXEC) != 0 || pipe2(p->err, O_CLOEXEC) != 0 ||
                    fcntl(p->out[FL_OURS], F_SETFL, O_NONBLOCK) != 0 ||
                    fcntl(p->err[FL_OURS], F_SETFL, O_NONBLOCK) != 0)) {
        return -errno;
    }
    return 0;
}

static void apply_environment(const struct fl_env *env, size_t env_count, int step_fd)
{
    char number[16];
    for (size_t i = 0; i < env_count; i++) {
        if (env[i].value != NULL) {
            setenv(env[i].name, env[i].value, 1);
        } else {
            unsetenv(env[i].name);
        }
    }
    snprintf(number, sizeof(number), "%d", step_fd);
    setenv("FAULTSTAT_STEP_FD", number, 1);
}

static void reset_signals(void)
{
    static const int changed[] = {SIGINT, SIGQUIT, SIGPIPE};
    sigset_t none;
    sigemptyset(&none);
    for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++) {
        signal(changed[i], SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_child(struct plumbing *p, char *const argv[], const struct fl_env *env,
                                size_t env_count)
{
    char go;
    close_side(p, FL_OURS);
    if (recv(p->meet[FL_THEIRS], &go, 1, 0) != 1) {
        _exit(126);
    }
    if (p->out[FL_THEIRS] >= 0) {
        dup2(p->out[FL_THEIRS], STDOUT_FILENO);
        dup2(p->err[FL_THEIRS], STDERR_FILENO);
    }
    fcntl(p->step[FL_THEIRS], F_SETFD, 0);
    apply_environment(env, env_count, p->step[FL_THEIRS]);
    reset_signals();
    execvp(argv[0], argv);
    int error = -errno;
    (void)send(p->meet[FL_THEIRS], &error, sizeof(error), MSG_NOSIGNAL);
    _exit(error == -ENOENT ? 127 : 126);
}

int fl_spawn(struct fl_child *child, char *const argv[], const struct fl_env *env, size_t env_count,
             bool use_perf, bool capture)
{
    struct plumbing p;
    int rc = open_plumbing(&p, capture);
    if (rc == 0) {
        fflush(NULL);
        child->pid = fork();
        rc = child->pid < 0 ? -errno : 0;
    }
    if (rc != 0) {
        close_side(&p, FL_OURS);
        close_side(&p, FL_THEIRS);
        return rc;
    }
    if (child->pid == 0) {
        run_child(&p, argv, env, env_count);
    }
    close_side(&p, FL_THEIRS);
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0U); /* glibc has it from 2.36 on */
    child->step_fd = p.step[FL_OURS];
    child->out_fd = p.out[FL_OURS];
    child->err_fd = p.err[FL_OURS];
    child->perf = (struct fl_perf){.minor_fd = -1, .major_fd = -1, .error = -ENODATA};
    if (use_perf) {
        (void)fl_perf_start(&child->perf, child->pid); /* perf.error keeps the answer */
    }
    child->exec_error = 0;
    char go = 'g';
    int error;
    child->start_ns = fl_proc_now_ns();
    if (send(p.meet[FL_OURS], &go, 1, MSG_NOSIGNAL) == 1 &&
        recv(p.meet[FL_OURS], &error, sizeof(error), 0) == (ssize_t)sizeof(error)) {
        child->exec_error = error;
    }
    close(p.meet[FL_OURS]);
    return 0;
}
