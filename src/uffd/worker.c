/* Starting, sleeping, being called and ending.
 *
 * No call is lost: it changes the state, and the thread falls asleep by changing it too. Out of
 * ASLEEP the caller sends one signal, which the thread takes before it goes on. So it never ends
 * with a signal under way, which would hit the thread that gets its number next. */
#include "uffd/internal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* How long a signal is waited for that is about to be sent. */
enum { SIGNAL_ROUNDS = 100, SIGNAL_ROUND_NS = 10000000 };

static const uint64_t linger_ns = 1000000000; /* without anything to do, before it ends */
static const uint64_t away_ns = 100000000;    /* after it was retired, before it starts again */
static const uint64_t few_ns = 10000000000;   /* places for threads are few: the next look */
static const uint64_t last_one_ns = 10000000; /* until the thread before has ended */
static const uint64_t retire_round_ns = 30000000;
enum { RETIRE_ROUNDS = 100 };

void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms)
{
    memset(w, 0, sizeof *w);
    w->region = r;
    atomic_store(&w->state, FL_WORKER_NONE);
    fl_worker_add(w, fl_worker_decay,
                  decay_ms != 0 ? decay_ms * 1000000 / FL_DECAY_TICKS : FL_JOB_IDLE);
}

static bool change(struct fl_worker *w, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&w->state, &from, to);
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

static void close_sources(struct fl_worker *w)
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

static bool take_wake(const struct fl_worker *w)
{
    return (w->wake_fd >= 0 ? fl_events.take(w->wake_fd) : fl_events.await_wake(0)) == 0;
}

/* The thread was taken out of ASLEEP, and is sent a signal: or it could not be sent, and the state
 * was put back. */
static void await_signal(struct fl_worker *w)
{
    struct pollfd wake = {.fd = w->wake_fd, .events = POLLIN}; /* below 0: it only waits */

    for (int i = 0;
         i < SIGNAL_ROUNDS && !take_wake(w) && !change(w, FL_WORKER_ASLEEP, FL_WORKER_RUNNING);
         i++) {
        (void)fl_events.poll(&wake, 1, SIGNAL_ROUND_NS);
    }
}

/* The descriptors to poll: p[0] for the wake, p[1 + i] for source i. poll skips those below 0.
 * Returns until when. */
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

/* Polls until something is ready, a call came, or `until`. Returns what poll did; *out_signalled:
 * the wake was taken. */
static int poll_until(struct fl_worker *w, struct pollfd p[static 1 + FL_WORKER_SOURCES],
                      uint64_t until, bool *out_signalled)
{
    int ready;

    do {
        uint64_t now = fl_sys.now_ns();
        uint64_t timeout = until == FL_JOB_IDLE ? UINT64_MAX : now < until ? until - now : 0;
        bool woken;
        if (w->wake_fd >= 0) {
            ready = fl_events.poll(p, 1 + FL_WORKER_SOURCES, timeout);
            woken = ready > 0 && p[0].revents != 0;
            ready -= woken;
            woken = woken && take_wake(w);
        } else {
            ready = 0;
            woken = fl_events.await_wake(timeout) == 0;
        }
        /* One that comes while the state is as it was had been waited for in vain, once: dropped.
         * */
        *out_signalled = woken && atomic_load(&w->state) != FL_WORKER_ASLEEP;
    } while ((ready == 0 || ready == -EINTR) && atomic_load(&w->state) == FL_WORKER_ASLEEP &&
             fl_sys.now_ns() < until);
    return ready;
}

static void tell_sources(struct fl_worker *w, const struct pollfd p[static 1 + FL_WORKER_SOURCES])
{
    for (int i = 0; i < FL_WORKER_SOURCES; i++) {
        struct fl_source *s = &w->source[i];
        if (p[1 + i].revents != 0 && !s->handle(w, s, p[1 + i].revents)) {
            fl_source_close(w, s);
        }
    }
}

/* Fewer descriptors are allowed than there are, say: from here on it hears calls alone. */
static void go_deaf(struct fl_worker *w)
{
    if (w->wake_fd >= 0) {
        close_sources(w);
    }
}

/* Until a job is due, a call comes, or something happens. False: none of it did, for so long that
 * the thread ends, and the state says so. */
static bool sleep_until(struct fl_worker *w, uint64_t due)
{
    struct pollfd p[1 + FL_WORKER_SOURCES];
    bool holding = due != FL_JOB_IDLE, signalled = false;

    if (w->wake_fd >= 0 && holding != w->watching) {
        if (holding) {
            fl_pressure_watch(w);
        } else {
            fl_pressure_unwatch(w);
        }
    }
    bool lingers = !holding && w->nsources == 0;
    uint64_t until = gather(w, lingers ? fl_jobs_later(fl_sys.now_ns(), linger_ns) : due, p);
    /* Jobs call wrappers of mmap and its like. One that blocks all signals and restores them by
     * pthread_sigmask(3) leaves the C library's own unblocked, and ours would end the process. */
    (void)fl_signals_block();
    if (!change(w, FL_WORKER_RUNNING, FL_WORKER_ASLEEP)) {
        return true;
    }
    int ready = poll_until(w, p, until, &signalled);
    bool by_itself = change(w, FL_WORKER_ASLEEP, FL_WORKER_RUNNING);
    if (!by_itself && !signalled) {
        await_signal(w);
    }
    /* From here on a call sends no signal, so none that could not be sent comes after this look. */
    if (by_itself && ready == 0 && lingers && !atomic_load(&w->unsent) &&
        change(w, FL_WORKER_RUNNING, FL_WORKER_NONE)) {
        return false;
    }
    if (ready < 0 && ready != -EINTR) {
        go_deaf(w);
    } else if (ready > 0) {
        tell_sources(w, p);
    }
    return true;
}

static void begin(struct fl_worker *w)
{
    (void)fl_call(SYS_prctl, PR_SET_NAME, "fl-uffd");
    w->pid = fl_call_pid();
    w->tid = fl_call_tid();
    atomic_store(&w->unsent, false);
    w->wake_fd = -1;
    w->nsources = 0;
    w->watching = false;
    for (int i = 0; i < FL_WORKER_SOURCES; i++) {
        w->source[i].fd = -1;
    }
    fl_jobs_forget(w);
    if (fl_events.own_table() == 0) {
        fl_thread = FL_THREAD_APART;
        if (fl_events.wake_open(&w->wake_fd) != 0) {
            w->wake_fd = -1;
        }
        fl_touch_open(w);
    }
}

static void end(struct fl_worker *w)
{
    go_deaf(w);
    fl_region_set_worker(w->region, false);
    (void)change(w, FL_WORKER_ENDING, FL_WORKER_NONE);
}

static void worker_main(void *arg)
{
    struct fl_worker *w = arg;

    if (!change(w, FL_WORKER_STARTING, FL_WORKER_CALLED)) {
        return;
    }
    begin(w);
    fl_region_set_worker(w->region, true);
    for (bool stays = true; stays;) {
        bool called = change(w, FL_WORKER_CALLED, FL_WORKER_RUNNING);
        if (atomic_exchange(&w->unsent, false) || called) {
            fl_jobs_call(w);
        }
        uint64_t due = fl_jobs_run(w);
        stays = atomic_load(&w->state) != FL_WORKER_ENDING && sleep_until(w, due) &&
                atomic_load(&w->state) != FL_WORKER_ENDING;
    }
    end(w);
}

/* The one before may not have ended yet, though it does not run jobs any more. */
static void start(struct fl_worker *w)
{
    if (fl_places_are_few()) {
        atomic_store(&w->away_until_ns, fl_jobs_later(fl_sys.now_ns(), few_ns));
        (void)change(w, FL_WORKER_STARTING, FL_WORKER_NONE);
        return;
    }
    int rc = fl_guest_start(&w->guest, worker_main, w);

    if (rc == -EBUSY && fl_guest_await(&w->guest, last_one_ns)) {
        rc = fl_guest_start(&w->guest, worker_main, w);
    }
    if (rc != 0) {
        (void)change(w, FL_WORKER_STARTING, FL_WORKER_NONE);
        atomic_store(&w->barred, rc == -ENOSYS);
    }
}

static void call_none(struct fl_worker *w, bool may_allocate)
{
    uint64_t away = atomic_load(&w->away_until_ns), now = away != 0 ? fl_sys.now_ns() : 0;

    if (atomic_load(&w->barred) || fl_sys_is_confined()) {
        atomic_store(&w->region->wants_worker, false);
        return;
    }
    if (now < away && away - now > away_ns) { /* for long: no request need look at the clock */
        atomic_store(&w->region->wants_worker, false);
        return;
    }
    if ((!may_allocate && !fl_guest_is_ready(&w->guest)) || fl_home_is_borrowed() || now < away) {
        return;
    }
    /* No handler runs between the states and what they say: it could wait for what this thread has
     * yet to do. */
    uint64_t signals = fl_signals_block();
    if (change(w, FL_WORKER_NONE, FL_WORKER_STARTING)) {
        atomic_store(&w->region->wants_worker, false);
        start(w);
    }
    fl_signals_restore(signals);
}

/* False: it is in another state by now. */
static bool call_asleep(struct fl_worker *w)
{
    uint64_t signals = fl_signals_block();
    bool mine = change(w, FL_WORKER_ASLEEP, FL_WORKER_CALLED);

    if (mine && fl_events.wake_send(w->pid, w->tid) != 0) {
        /* It sees so when it wakes by itself; the next one to call tries again. */
        atomic_store(&w->unsent, true);
        if (change(w, FL_WORKER_CALLED, FL_WORKER_ASLEEP)) {
            atomic_store(&w->region->wants_worker, true);
        }
    }
    fl_signals_restore(signals);
    return mine;
}

/* The thread is in this process: not so after vfork, or a fork without handlers. */
static bool is_here(const struct fl_worker *w)
{
    return w->pid == fl_call_pid();
}

void fl_worker_call(struct fl_worker *w, bool may_allocate)
{
    uint32_t state = atomic_load(&w->state);

    if (state == FL_WORKER_NONE) {
        call_none(w, may_allocate);
        return;
    }
    if (state == FL_WORKER_ASLEEP && !is_here(w)) {
        return;
    }
    /* Before the state changes: a job that runs because of that may raise it again. */
    atomic_store(&w->region->wants_worker, state == FL_WORKER_ENDING);
    for (bool called = false; !called; state = atomic_load(&w->state)) {
        called = state == FL_WORKER_RUNNING  ? change(w, FL_WORKER_RUNNING, FL_WORKER_CALLED)
                 : state == FL_WORKER_ASLEEP ? call_asleep(w)
                                             : true;
        if (state == FL_WORKER_NONE) { /* it ended meanwhile */
            call_none(w, may_allocate);
        }
    }
}

/* True: it is asleep, and wants a signal. */
static bool ask_to_leave(struct fl_worker *w)
{
    for (;;) {
        uint32_t state = atomic_load(&w->state);
        if (state == FL_WORKER_NONE || state == FL_WORKER_ENDING) {
            return false;
        }
        if (state == FL_WORKER_STARTING) {
            (void)fl_call(SYS_sched_yield);
        } else if (change(w, state, FL_WORKER_ENDING)) {
            return state == FL_WORKER_ASLEEP;
        }
    }
}

void fl_worker_retire(struct fl_worker *w)
{
    bool owes_signal = false, gone = false;

    if ((atomic_load(&w->state) == FL_WORKER_NONE && atomic_load(&w->guest.tid) == 0) ||
        fl_region_busy() || fl_home_is_borrowed()) {
        return; /* busy: it may wait for this thread. Borrowed: it is not of this process */
    }
    uint64_t signals = fl_signals_block();
    atomic_store(&w->away_until_ns, fl_jobs_later(fl_sys.now_ns(), away_ns));
    for (int i = 0; i < RETIRE_ROUNDS && !gone; i++) {
        owes_signal = ask_to_leave(w) || owes_signal;
        owes_signal = owes_signal && fl_events.wake_send(w->pid, w->tid) != 0;
        gone = fl_guest_await(&w->guest, retire_round_ns);
    }
    fl_signals_restore(signals);
}

void fl_worker_fork_child(struct fl_worker *w)
{
    fl_guest_fork_child(&w->guest);
    atomic_store(&w->state, FL_WORKER_NONE);
    atomic_store(&w->away_until_ns, 0);
}
