/* The loop around one running command: its end, its marks, its output, our signals. */
#include "faultstat/watch.h"

#include "faultless/step.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FL_POLL_END, FL_POLL_STEP, FL_POLL_OUT, FL_POLL_ERR, FL_POLL_SIGNAL, FL_POLL_COUNT };

struct loop {
    struct fl_watch *watch;
    struct fl_child child;
    struct fl_sampler sampler;
    struct pollfd poll[FL_POLL_COUNT];
    const struct fl_watch_hook *hook; /* NULL: none */
    int rc;                           /* the first error of our own: -errno */
};

/* Append, forgetting the older half when there is no room. */
static void keep_tail(struct fl_tail *tail, const char *text, size_t len)
{
    if (tail->len + len >= sizeof(tail->text)) {
        size_t kept = tail->len < sizeof(tail->text) / 2 ? tail->len : sizeof(tail->text) / 2;
        memmove(tail->text, tail->text + tail->len - kept, kept);
        tail->len = kept;
    }
    memcpy(tail->text + tail->len, text, len);
    tail->len += len;
    tail->text[tail->len] = '\0';
}

/* Take what a pipe holds; close the pipe at its end. */
static void drain(struct pollfd *slot, struct fl_tail *tail)
{
    char text[4096];
    ssize_t n;
    if (slot->fd < 0) {
        return;
    }
    while ((n = read(slot->fd, text, sizeof(text))) > 0) {
        keep_tail(tail, text, (size_t)n);
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(slot->fd);
        slot->fd = -1;
    }
}

/* What a program sends at a mark: see faultless/step.h. */
struct message {
    pid_t sender;
    uint64_t resumed_ns; /* 0: it did not say */
    uint64_t called_ns;
};

/* Receive one message into `out`, which is all 0. Returns 1, 0 at the end of the channel, -errno. */
static int receive_message(int fd, struct message *out)
{
    char text[FL_STEP_MESSAGE_LEN];
    char control[CMSG_SPACE(sizeof(struct ucred))] __attribute__((aligned(8)));
    struct iovec data = {text, sizeof(text)};
    struct msghdr header = {
        .msg_iov = &data,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) {
        return n == 0 ? 0 : -errno;
    }
    if (n == FL_STEP_MESSAGE_LEN) {
        memcpy(&out->resumed_ns, text + 1, sizeof(out->resumed_ns));
        memcpy(&out->called_ns, text + 9, sizeof(out->called_ns));
    }
    const struct cmsghdr *head = CMSG_FIRSTHDR(&header);
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
        struct ucred who;
        memcpy(&who, CMSG_DATA(head), sizeof(who));
        out->sender = who.pid;
    }
    return 1;
}

/* Prefer the program's own times, which hold no wake-up of ours; but only such as fit between ours
 * (a program in a time namespace of its own has another clock). */
static void refine_times(struct fl_steps *steps, struct fl_mark *mark, const struct message *m)
{
    struct fl_mark *before = steps->count > 0 ? &steps->mark[steps->count - 1] : NULL;
    if (m->called_ns == 0 || m->called_ns > mark->arrive_ns) {
        return;
    }
    if (before == NULL) {
        mark->arrive_ns = m->called_ns;
    } else if (m->resumed_ns >= before->leave_ns && m->resumed_ns <= m->called_ns) {
        before->leave_ns = m->resumed_ns;
        mark->arrive_ns = m->called_ns;
    }
}

/* One mark: the process whose mark comes first owns the steps; it may be a child of the command. */
static void take_mark(struct loop *l)
{
    struct fl_steps *steps = &l->watch->steps;
    struct fl_mark mark = {.arrive_ns = fl_proc_now_ns()};
    struct message message = {0};
    int rc = receive_message(l->poll[FL_POLL_STEP].fd, &message);
    if (rc <= 0) {
        if (rc != -EAGAIN && rc != -EINTR) {
            l->poll[FL_POLL_STEP].fd = -1; /* every holder has closed it */
        }
        return;
    }
    if (steps->pid == 0 && message.sender != 0) {
        steps->pid = message.sender;
        fl_sampler_focus(&l->sampler, message.sender);
    }
    bool is_owner = message.sender == steps->pid;
    if (is_owner) {
        refine_times(steps, &mark, &message);
        rc = fl_sampler_look(&l->sampler, &mark.look);
        l->rc = l->rc != 0 ? l->rc : rc;
    } else {
        steps->foreign++;
    }
    mark.leave_ns = fl_proc_now_ns();
    char answer = 'a';
    (void)send(l->poll[FL_POLL_STEP].fd, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (is_owner && rc == 0 && (rc = fl_steps_add(steps, &mark)) != 0) {
        l->rc = rc;
    }
}

static void take_signal(struct loop *l)
{
    struct signalfd_siginfo info;
    if (read(l->poll[FL_POLL_SIGNAL].fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return;
    }
    l->watch->interrupt = (int)info.ssi_signo;
    if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) {
        kill(l->child.pid, (int)info.ssi_signo);
    }
}

static void call_hook(struct loop *l)
{
    if (l->hook != NULL) {
        pid_t marking = l->watch->steps.pid;
        l->hook->call(l->hook->arg, l->watch, marking != 0 ? marking : l->child.pid);
    }
}

static void loop_until_end(struct loop *l)
{
    const short wanted = POLLIN;
    int timeout_ms = l->hook != NULL ? l->hook->every_ms : -1;
    while (true) {
        if (poll(l->poll, FL_POLL_COUNT, timeout_ms) < 0 && errno != EINTR) {
            l->rc = -errno;
            return;
        }
        if (l->poll[FL_POLL_STEP].revents != 0) {
            take_mark(l);
        }
        if (l->poll[FL_POLL_OUT].revents != 0) {
            drain(&l->poll[FL_POLL_OUT], &l->watch->out);
        }
        if (l->poll[FL_POLL_ERR].revents != 0) {
            drain(&l->poll[FL_POLL_ERR], &l->watch->err);
        }
        if ((l->poll[FL_POLL_SIGNAL].revents & wanted) != 0) {
            take_signal(l);
        }
        call_hook(l);
        if ((l->poll[FL_POLL_END].revents & wanted) != 0) {
            return;
        }
    }
}

static int block_signals(sigset_t *before)
{
    sigset_t handled;
    sigemptyset(&handled);
    sigaddset(&handled, SIGINT);
    sigaddset(&handled, SIGQUIT);
    sigaddset(&handled, SIGTERM);
    sigaddset(&handled, SIGHUP);
    sigprocmask(SIG_BLOCK, &handled, before);
    int fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

static void open_slots(struct loop *l, int signal_fd)
{
    l->poll[FL_POLL_END] = (struct pollfd){l->child.pidfd, POLLIN, 0};
    l->poll[FL_POLL_STEP] = (struct pollfd){l->child.step_fd, POLLIN, 0};
    l->poll[FL_POLL_OUT] = (struct pollfd){l->child.out_fd, POLLIN, 0};
    l->poll[FL_POLL_ERR] = (struct pollfd){l->child.err_fd, POLLIN, 0};
    l->poll[FL_POLL_SIGNAL] = (struct pollfd){signal_fd, POLLIN, 0};
}

static void finish(struct loop *l, const struct fl_thp *thp_before)
{
    struct fl_watch *watch = l->watch;
    struct fl_thp after;
    drain(&l->poll[FL_POLL_OUT], &watch->out);
    drain(&l->poll[FL_POLL_ERR], &watch->err);
    for (int i = FL_POLL_OUT; i <= FL_POLL_ERR; i++) {
        if (l->poll[i].fd >= 0) {
            close(l->poll[i].fd); /* a process that the command left behind holds the other end */
        }
    }
    watch->helper = fl_threads_sum(&l->sampler.threads, 0);
    watch->helper_lost = l->sampler.threads.lost;
    watch->peaks = l->sampler.peaks;
    watch->perf_user_only = l->child.perf.user_only;
    watch->perf_error = fl_perf_stop(&l->child.perf, &watch->perf_minor, &watch->perf_major);
    if (fl_proc_read_thp(&after) == 0) {
        watch->thp = (struct fl_thp){
            after.fault_alloc - thp_before->fault_alloc,
            after.fault_fallback - thp_before->fault_fallback,
            after.split_page - thp_before->split_page,
            after.split_pmd - thp_before->split_pmd,
        };
    }
    close(l->child.pidfd);
    close(l->child.step_fd);
}

/* Those that came after the last look were for the command, which has ended. */
static void forget_interrupts(void)
{
    const struct timespec at_once = {0, 0};
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGQUIT);
    while (sigtimedwait(&interrupts, NULL, &at_once) > 0) {
    }
}

int fl_watch_run(struct fl_watch *watch, const struct fl_watch_spec *spec)
{
    struct loop l = {.watch = watch, .hook = spec->hook};
    struct fl_thp thp_before = {0};
    sigset_t signals_before;
    memset(watch, 0, sizeof(*watch));
    int signal_fd = block_signals(&signals_before);
    if (signal_fd < 0) {
        return signal_fd;
    }
    (void)fl_proc_read_thp(&thp_before);
    l.rc =
        fl_spawn(&l.child, spec->argv, spec->env, spec->env_count, spec->use_perf, spec->capture);
    if (l.rc == 0) {
        watch->exec_error = l.child.exec_error;
        open_slots(&l, signal_fd);
        l.rc = fl_sampler_start(&l.sampler, l.child.pid, spec->interval_ms, spec->with_nodes);
        if (l.rc != 0) {
            kill(l.child.pid, SIGKILL);
        }
        loop_until_end(&l);
        watch->wall_s = (double)(fl_proc_now_ns() - l.child.start_ns) / 1e9;
        fl_sampler_stop(&l.sampler);
        while (wait4(l.child.pid, &watch->status, 0, &watch->usage) < 0 && errno == EINTR) {
        }
        finish(&l, &thp_before);
    }
    close(signal_fd);
    forget_interrupts();
    sigprocmask(SIG_SETMASK, &signals_before, NULL);
    return l.rc;
}

int fl_watch_exit_status(const struct fl_watch *watch)
{
    return WIFSIGNALED(watch->status) ? 128 + WTERMSIG(watch->status) : WEXITSTATUS(watch->status);
}

/* The total is exact (wait4), the helpers' part was sampled: the difference is too high by at most
 * what helpers faulted after their last sample, one interval of 20 ms. */
uint64_t fl_watch_app_minor(const struct fl_watch *watch)
{
    uint64_t all = (uint64_t)watch->usage.ru_minflt;
    return all > watch->helper.minor ? all - watch->helper.minor : 0;
}

uint64_t fl_watch_app_major(const struct fl_watch *watch)
{
    uint64_t all = (uint64_t)watch->usage.ru_majflt;
    return all > watch->helper.major ? all - watch->helper.major : 0;
}

void fl_watch_clear(struct fl_watch *watch)
{
    fl_steps_clear(&watch->steps);
}
