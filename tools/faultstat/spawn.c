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
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
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

/* A pseudo-terminal that passes every byte as it is. It controls no process. */
static int open_terminal(int pair[FL_PAIR])
{
    struct termios raw;
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    pair[FL_OURS] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pair[FL_OURS] < 0 || grantpt(pair[FL_OURS]) != 0 || unlockpt(pair[FL_OURS]) != 0) {
        return -errno;
    }
    pair[FL_THEIRS] = ioctl(pair[FL_OURS], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pair[FL_THEIRS] < 0 || tcgetattr(pair[FL_THEIRS], &raw) != 0) {
        return -errno;
    }
    cfmakeraw(&raw);
    (void)ioctl(pair[FL_THEIRS], TIOCSWINSZ, &size);
    return tcsetattr(pair[FL_THEIRS], TCSANOW, &raw) == 0 ? 0 : -errno;
}

static int open_outputs(struct plumbing *p, enum fl_output_kind kind)
{
    if (kind == FL_OUTPUT_INHERITED) {
        return 0;
    }
    int rc = kind == FL_OUTPUT_TERMINAL      ? open_terminal(p->out)
             : pipe2(p->out, O_CLOEXEC) != 0 ? -errno
                                             : 0;
    if (rc == 0 &&
        (pipe2(p->err, O_CLOEXEC) != 0 || fcntl(p->out[FL_OURS], F_SETFL, O_NONBLOCK) != 0 ||
         fcntl(p->err[FL_OURS], F_SETFL, O_NONBLOCK) != 0)) {
        rc = -errno;
    }
    return rc;
}

static int open_plumbing(struct plumbing *p, enum fl_output_kind kind)
{
    int on = 1;
    memset(p, -1, sizeof(*p));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->meet) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->step) != 0 ||
        setsockopt(p->step[FL_OURS], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
        return -errno;
    }
    return open_outputs(p, kind);
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

static _Noreturn void run_child(struct plumbing *p, const struct fl_spawn_spec *spec)
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
    if (spec->input_fd != STDIN_FILENO) {
        dup2(spec->input_fd, STDIN_FILENO);
    }
    fcntl(p->step[FL_THEIRS], F_SETFD, 0);
    apply_environment(spec->env, spec->env_count, p->step[FL_THEIRS]);
    reset_signals();
    execvp(spec->argv[0], spec->argv);
    int error = -errno;
    (void)send(p->meet[FL_THEIRS], &error, sizeof(error), MSG_NOSIGNAL);
    _exit(error == -ENOENT ? 127 : 126);
}

int fl_spawn(struct fl_child *child, const struct fl_spawn_spec *spec)
{
    struct plumbing p;
    int rc = open_plumbing(&p, spec->output);
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
        run_child(&p, spec);
    }
    close_side(&p, FL_THEIRS);
    child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0U); /* glibc has it from 2.36 on */
    child->step_fd = p.step[FL_OURS];
    child->out_fd = p.out[FL_OURS];
    child->err_fd = p.err[FL_OURS];
    child->perf = (struct fl_perf){.minor_fd = -1, .major_fd = -1, .error = -ENODATA};
    if (spec->use_perf) {
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
