/* Starting, sleeping and being called.
 *
 * No call is lost: it changes the state, and the thread falls asleep by changing it too. Out of ASLEEP the caller wakes the
 * futex; out of POLLING it sends one signal, which the thread takes before it goes on. So it never ends with a signal
 * under way, which would hit whatever thread gets its number next. */
#include "uffd/internal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { TICKS_PER_DECAY = 4, STACK_BYTES = 64 * FL_KIB };
/* How long a signal is waited for that somebody is about to send. */
enum { SIGNAL_ROUNDS = 100, SIGNAL_ROUND_NS = 10000000 };

static uint64_t decay(struct fl_region *r)
{
    return fl_region_tick(r, TICKS_PER_DECAY) ? FL_JOB_DELAY : FL_JOB_IDLE;
}

void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms)
{
    memset(w, 0, sizeof *w);
    w->region = r;
    atomic_store(&w->state, FL_WORKER_NONE);
    if (decay_ms != 0) {
        fl_worker_add(w, decay, decay_ms * 1000000 / TICKS_PER_DECAY);
    }
}

void fl_worker_add(struct fl_worker *w, uint64_t (*run)(struct fl_region *r), uint64_t delay_ns)
{
    if (w->njobs == FL_WORKER_JOBS) {
        fl_fatal("too many jobs for fl-uffd");
    }
    w->job[w->njobs++] = (struct fl_job){run, delay_ns, FL_JOB_IDLE};
}

static bool change(struct fl_worker *w, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&w->state, &from, to);
}

static uint64_t later(uint64_t now, uint64_t in)
{
    return in < FL_JOB_IDLE - now ? now + in : FL_JOB_IDLE;
}

static void call_jobs(struct fl_worker *w)
{
    uint64_t now = fl_sys.now_ns();

    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        uint64_t due = later(now, j->delay_ns);
        j->due_ns = due < j->due_ns ? due : j->due_ns;
    }
}

/* Each job once that is due. Returns when the next one is. */
static uint64_t run_jobs(struct fl_worker *w)
{
    uint64_t next = FL_JOB_IDLE;

    for (struct fl_job *j = w->job; j < w->job + w->njobs; j++) {
        if (j->due_ns <= fl_sys.now_ns()) {
            uint64_t in = j->run(w->region);
            in = in == FL_JOB_DELAY ? j->delay_ns : in;
            j->due_ns = in == FL_JOB_IDLE ? FL_JOB_IDLE : later(fl_sys.now_ns(), in);
        }
        next = j->due_ns < next ? j->due_ns : next;
    }
    return next;
}

bool fl_source_add(struct fl_worker *w, struct fl_source s)
{
    for (struct fl_source *free = w->source; free < w->source + FL_WORKER_SOURCES; free++) {
        if (free->fd < 0) {
            *free = s;
            w->nsources++;
            return true;
        }
    }
    (void)fl_events.close(s.fd);
    return false;
}

void fl_source_close(struct fl_worker *w, struct fl_source *s)
{
    (void)fl_events.close(s->fd);
    s->fd = -1;
    w->nsources--;
}

static void give_up_polling(struct fl_worker *w)
{
    for (struct fl_source *s = w->source; s < w->source + FL_WORKER_SOURCES; s++) {
        if (s->fd >= 0) {
            if (!s->pressure) {
                (void)s->handle(w, s, 0);
            }
            fl_source_close(w, s);
        }
    }
    (void)fl_events.close(w->wake_fd);
    w->wake_fd = -1;
    w->watching = false;
}

static void sleep_on_futex(struct fl_worker *w, uint64_t until)
{
    uint64_t now = fl_sys.now_ns();

    if (now >= until || !change(w, FL_WORKER_RUNNING, FL_WORKER_ASLEEP)) {
        return;
    }
    while (atomic_load(&w->state) == FL_WORKER_ASLEEP && now < until) {
        (void)fl_sys.wait(&w->state, FL_WORKER_ASLEEP, until == FL_JOB_IDLE ? 0 : until - now);
        now = fl_sys.now_ns();
    }
    (void)change(w, FL_WORKER_ASLEEP, FL_WORKER_RUNNING);
}

/* Somebody took the thread out of POLLING, and sends a signal: or could not, and put the state back. */
static void await_signal(struct fl_worker *w)
{
    struct pollfd wake = {.fd = w->wake_fd, .events = POLLIN};

    for (int i = 0; i < SIGNAL_ROUNDS && fl_events.take(w->wake_fd) != 0 &&
                    !change(w, FL_WORKER_POLLING, FL_WORKER_RUNNING);
         i++) {
        (void)fl_events.poll(&wake, 1, SIGNAL_ROUND_NS);
    }
}

/* The descriptors to poll: p[0] for the wake, p[1 + i] for source i. poll skips those below 0. Returns until when. */
static uint64_t gather(const struct fl_worker *w, uint64_t until,
                       struct pollfd p[static 1 + FL_WORKER_SOURCES])
{
    bool quiet = fl_sys.now_ns() < w->quiet_ns;

    p[0] = (struct pollfd){.fd = w->wake_fd, .events = POLLIN};
    for (int i = 0; i < FL_WORKER_SOURCES; i++) {
        const struct fl_source *s = &w->source[i];
        bool wait = quiet && s->fd >= 0 && s->pressure;
        p[1 + i] = (struct pollfd){.fd = wait ? -1 : s->fd, .events = s->events};
        until = wait && w->quiet_ns < until ? w->quiet_ns : until;
    }
    return until;
}

static void sleep_in_poll(struct fl_worker *w, uint64_t until)
{
    struct pollfd p[1 + FL_WORKER_SOURCES];
    bool signalled = false;
    int ready;

    until = gather(w, until, p);
    if (!change(w, FL_WORKER_RUNNING, FL_WORKER_POLLING)) {
        return;
    }
    do {
        uint64_t now = fl_sys.now_ns();
        uint64_t timeout = until == FL_JOB_IDLE ? UINT64_MAX : now < until ? until - now : 0;
        ready = fl_events.poll(p, 1 + FL_WORKER_SOURCES, timeout);
        if (ready > 0 && p[0].revents != 0) {
            /* One that comes while nobody has changed the state was waited for in vain, once: dropped. */
            signalled =
                fl_events.take(w->wake_fd) == 0 && atomic_load(&w->state) != FL_WORKER_POLLING;
            ready--;
        }
    } while ((ready == 0 || ready == -EINTR) && atomic_load(&w->state) == FL_WORKER_POLLING &&
             fl_sys.now_ns() < until);
    if (!change(w, FL_WORKER_POLLING, FL_WORKER_RUNNING) && !signalled) {
        await_signal(w);
    }
    if (ready < 0 && ready != -EINTR) { /* fewer descriptors allowed than there are, say */
        give_up_polling(w);
        return;
    }
    for (int i = 0; ready > 0 && i < FL_WORKER_SOURCES; i++) {
        struct fl_source *s = &w->source[i];
        if (p[1 + i].revents != 0 && !s->handle(w, s, p[1 + i].revents)) {
            fl_source_close(w, s);
        }
    }
}

/* Until a job is due, somebody calls, or something happens. */
static void sleep_until(struct fl_worker *w, uint64_t due)
{
    bool holding = due != FL_JOB_IDLE;

    if (w->wake_fd >= 0 && holding != w->watching) {
        if (holding) {
            fl_pressure_watch(w);
        } else {
            fl_pressure_unwatch(w);
        }
    }
    /* The futex where it does: every signal to the process, whoever's it is, makes the kernel look at a signalfd. */
    if (w->nsources == 0) {
        sleep_on_futex(w, due);
    } else {
        sleep_in_poll(w, due);
    }
}

static void begin(struct fl_worker *w)
{
    bool own = fl_events.own_table() == 0;

    (void)prctl(PR_SET_NAME, "fl-uffd", 0, 0, 0);
    w->pid = getpid();
    w->tid = gettid();
    atomic_store(&w->unsent, false);
    w->wake_fd = -1;
    w->nsources = 0;
    w->watching = false;
    for (int i = 0; i < FL_WORKER_SOURCES; i++) {
        w->source[i].fd = -1;
    }
    for (unsigned i = 0; i < w->njobs; i++) {
        w->job[i].due_ns = FL_JOB_IDLE;
    }
    if (own) {
        fl_crew_is_ours();
        if (fl_events.wake_open(&w->wake_fd) != 0) {
            w->wake_fd = -1;
        }
        fl_touch_open(w);
    }
}

static void *worker_main(void *arg)
{
    struct fl_worker *w = arg;

    begin(w);
    fl_region_set_worker(w->region, true);
    (void)change(w, FL_WORKER_STARTING, FL_WORKER_CALLED);
    while (atomic_load(&w->state) != FL_WORKER_RETIRED) {
        bool called = change(w, FL_WORKER_CALLED, FL_WORKER_RUNNING);
        if (atomic_exchange(&w->unsent, false) || called) {
            call_jobs(w);
        }
        sleep_until(w, run_jobs(w));
    }
    return NULL;
}

static void start(struct fl_worker *w)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    bool started = false;

    if (pthread_attr_init(&attr) == 0) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        (void)pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN + STACK_BYTES);
        (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        int rc = pthread_create(&thread, &attr, worker_main, w);
        if (rc ==
            EINVAL) { /* the program's static thread-local storage fills that: as its own threads, then */
            (void)pthread_attr_destroy(&attr);
            (void)pthread_attr_init(&attr);
            (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
            rc = pthread_create(&thread, &attr, worker_main, w);
        }
        started = rc == 0;
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
    }
    if (!started) {
        (void)change(w, FL_WORKER_STARTING, FL_WORKER_NONE);
    }
}

/* False: it is in another state by now. */
static bool call_from_poll(struct fl_worker *w)
{
    if (!change(w, FL_WORKER_POLLING, FL_WORKER_CALLED)) {
        return false;
    }
    if (fl_events.wake_send(w->pid, w->tid) != 0) {
        /* It sees so when it wakes by itself; the next one to call tries again. */
        atomic_store(&w->unsent, true);
        if (change(w, FL_WORKER_CALLED, FL_WORKER_POLLING)) {
            atomic_store(&w->region->wants_worker, true);
        }
    }
    return true;
}

/* The thread is in this process: not so after vfork, or a fork without handlers. */
static bool is_here(const struct fl_worker *w)
{
    return w->pid == getpid();
}

void fl_worker_call(struct fl_worker *w, bool may_start)
{
    uint32_t state = atomic_load(&w->state);

    if (state == FL_WORKER_NONE) {
        if (may_start && change(w, FL_WORKER_NONE, FL_WORKER_STARTING)) {
            atomic_store(&w->region->wants_worker, false);
            start(w);
        }
        return;
    }
    if (state == FL_WORKER_POLLING && !is_here(w)) {
        return;
    }
    /* Before the state changes: a job that runs because of that may raise it again. */
    atomic_store(&w->region->wants_worker, false);
    for (bool called = false; !called; state = atomic_load(&w->state)) {
        if (state == FL_WORKER_RUNNING) {
            called = change(w, FL_WORKER_RUNNING, FL_WORKER_CALLED);
        } else if (state == FL_WORKER_ASLEEP) {
            called = change(w, FL_WORKER_ASLEEP, FL_WORKER_CALLED);
            if (called) {
                (void)fl_sys.wake(&w->state, 1);
            }
        } else {
            called = state != FL_WORKER_POLLING || call_from_poll(w);
        }
    }
}

void fl_worker_retire(struct fl_worker *w)
{
    uint32_t was = atomic_exchange(&w->state, FL_WORKER_RETIRED);

    if (was == FL_WORKER_ASLEEP) {
        (void)fl_sys.wake(&w->state, 1);
    } else if (was == FL_WORKER_POLLING && is_here(w)) {
        (void)fl_events.wake_send(w->pid, w->tid); /* refused: it sees so when its timer fires */
    }
}

void fl_worker_fork_child(struct fl_worker *w)
{
    atomic_store(&w->state, FL_WORKER_NONE);
}
