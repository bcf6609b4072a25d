/* The loop around one running command: its end, its marks, its output, our signals. */
#include "faultstat/watch.h"

#include "faultless/step.h"
#include "faultstat/lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FL_GRACE_MS = 2000 }; /* between the polite and the other end of a run out of time */
enum { FL_POLL_END, FL_POLL_STEP, FL_POLL_OUT, FL_POLL_ERR, FL_POLL_SIGNAL, FL_POLL_COUNT };

struct loop {
    struct fl_watch *watch;
    const struct fl_watch_spec *spec;
    struct fl_child child;
    struct fl_sampler sampler;
    struct pollfd poll[FL_POLL_COUNT];
    struct fl_lines out_lines;
    struct fl_lines err_lines;
    uint64_t deadline_ns; /* 0: none */
    int rc;               /* the first error of our own: -errno */
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

/* A line of the output: does it end a step? The command is not paused meanwhile. */
static void take_line(void *arg, const char *line)
{
    struct loop *l = arg;
    if (regexec(l->spec->step_regex, line, 0, NULL, 0) == 0) {
        struct fl_mark mark = {.arrive_ns = fl_proc_now_ns()};
        mark.leave_ns = mark.arrive_ns;
        fl_sampler_look_at_all(&l->sampler, &mark.look);
        int rc = fl_steps_add(&l->watch->steps, &mark);
        l->rc = l->rc != 0 ? l->rc : rc;
    }
}

static void write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return; /* its reader has gone */
        }
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
}

/* Take what a pipe holds; close the pipe at its end. A terminal's end is EIO. */
static void drain(struct loop *l, int slot)
{
    char text[4096];
    ssize_t n;
    bool is_out = slot == FL_POLL_OUT;
    int fd = l->poll[slot].fd;
    if (fd < 0) {
        return;
    }
    while ((n = read(fd, text, sizeof(text))) > 0) {
        keep_tail(is_out ? &l->watch->out : &l->watch->err, text, (size_t)n);
        if (l->spec->step_regex != NULL) {
            fl_lines_feed(is_out ? &l->out_lines : &l->err_lines, text, (size_t)n, take_line, l);
        }
        if (l->spec->forward) {
            write_all(is_out ? STDOUT_FILENO : STDERR_FILENO, text, (size_t)n);
        }
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(fd);
        l->poll[slot].fd = -1;
    }
}

/* What a program sends at a mark: see faultless/step.h. */
struct message {
    pid_t sender;
    uint64_t resumed_ns; /* 0: it did not say */
    uint64_t called_ns;
};

/* Receive one message into `out`, which is all 0. Returns 1, 0 at the end of the channel,
 * -errno. */
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
    bool is_by_regex = l->spec->step_regex != NULL;
    if (!is_by_regex && steps->pid == 0 && message.sender != 0) {
        steps->pid = message.sender;
        fl_sampler_focus(&l->sampler, message.sender);
    }
    bool is_owner = !is_by_regex && message.sender == steps->pid;
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

/* Milliseconds to the deadline, rounded up; many when there is none. */
static int time_left(const struct loop *l)
{
    uint64_t now = fl_proc_now_ns();
    if (l->deadline_ns == 0) {
        return INT_MAX;
    }
    uint64_t left = l->deadline_ns > now ? (l->deadline_ns - now) / 1000000 + 1 : 0;
    return left < 1000000 ? (int)left : 1000000;
}

/* How long a turn of the loop may wait; -1: for ever. */
static int patience(const struct loop *l)
{
    int left = time_left(l);
    if (l->spec->hook != NULL && l->spec->hook->every_ms < left) {
        return l->spec->hook->every_ms;
    }
    return left < INT_MAX ? left : -1;
}

/* The run is out of time: ask it to end, then make it. */
static void press(struct loop *l)
{
    fl_sampler_kill(&l->sampler, l->watch->is_timed_out ? SIGKILL : SIGTERM);
    l->watch->is_timed_out = true;
    l->deadline_ns = fl_proc_now_ns() + UINT64_C(1000000) * FL_GRACE_MS;
}

static void call_hook(struct loop *l)
{
    if (l->spec->hook != NULL) {
        pid_t marking = l->watch->steps.pid;
        l->spec->hook->call(l->spec->hook->arg, l->watch, marking != 0 ? marking : l->child.pid);
    }
}

static void loop_until_end(struct loop *l)
{
    const short wanted = POLLIN;
    while (true) {
        if (poll(l->poll, FL_POLL_COUNT, patience(l)) < 0 && errno != EINTR) {
            l->rc = -errno;
            return;
        }
        if (time_left(l) == 0) {
            press(l);
        }
        if (l->poll[FL_POLL_STEP].revents != 0) {
            take_mark(l);
        }
        if (l->poll[FL_POLL_OUT].revents != 0) {
            drain(l, FL_POLL_OUT);
        }
        if (l->poll[FL_POLL_ERR].revents != 0) {
            drain(l, FL_POLL_ERR);
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
    drain(l, FL_POLL_OUT);
    drain(l, FL_POLL_ERR);
    for (int i = FL_POLL_OUT; i <= FL_POLL_ERR; i++) {
        if (l->poll[i].fd >= 0) {
            close(l->poll[i].fd); /* a process that the command left behind holds the other end */
        }
    }
    watch->helper = fl_threads_sum(&l->sampler.threads, 0);
    watch->helper_lost = l->sampler.threads.lost;
    watch->peaks = l->sampler.peaks;
    watch->served = fl_family_served(&l->sampler.family);
    if (l->spec->library != NULL && watch->served.state == FL_SERVED_UNKNOWN) {
        fl_served_predict(l->spec->spawn.argv[0], l->spec->library, &watch->served);
    }
    watch->processes = l->sampler.family.count + l->sampler.family.lost;
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
    static struct loop l; /* static for its size */
    l = (struct loop){.watch = watch, .spec = spec};
    struct fl_thp thp_before = {0};
    sigset_t signals_before;
    memset(watch, 0, sizeof(*watch));
    int signal_fd = block_signals(&signals_before);
    if (signal_fd < 0) {
        return signal_fd;
    }
    (void)fl_proc_read_thp(&thp_before);
    l.rc = fl_spawn(&l.child, &spec->spawn);
    if (l.rc == 0) {
        watch->exec_error = l.child.exec_error;
        open_slots(&l, signal_fd);
        if (spec->timeout_s > 0) {
            l.deadline_ns = l.child.start_ns + (uint64_t)(spec->timeout_s * 1e9);
        }
        l.rc = fl_sampler_start(&l.sampler, l.child.pid, spec->interval_ms, spec->with_nodes,
                                spec->library);
        if (l.rc != 0) {
            kill(l.child.pid, SIGKILL);
        }
        loop_until_end(&l);
        watch->wall_s = (double)(fl_proc_now_ns() - l.child.start_ns) / 1e9;
        if (watch->is_timed_out) {
            fl_sampler_kill(&l.sampler, SIGKILL); /* those that outlived the command */
        }
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
