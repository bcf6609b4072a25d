/* Starting, sleeping and ticking of the fl-uffd thread. */
#include "uffd/uffd.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

enum { TICKS_PER_DECAY = 4, STACK_BYTES = 64 * FL_KIB };

void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms)
{
    w->region = r;
    w->decay_ms = decay_ms;
    atomic_store(&w->state, FL_WORKER_NONE);
}

/* Until somebody calls. The state is another one when it returns. */
static void sleep_until_called(struct fl_worker *w)
{
    uint32_t running = FL_WORKER_RUNNING, asleep = FL_WORKER_ASLEEP;

    if (!atomic_compare_exchange_strong(&w->state, &running, FL_WORKER_ASLEEP)) {
        return;
    }
    if (!atomic_load(&w->region->wants_worker)) { /* called between the last tick and now */
        (void)atomic_compare_exchange_strong(&w->state, &asleep, FL_WORKER_RUNNING);
    }
    while (atomic_load(&w->state) == FL_WORKER_ASLEEP) {
        (void)fl_sys.wait(&w->state, FL_WORKER_ASLEEP, 0);
    }
}

static void sleep_a_tick(struct fl_worker *w)
{
    uint64_t until = fl_sys.now_ns() + w->decay_ms * 1000000 / TICKS_PER_DECAY + 1;

    for (uint64_t now = fl_sys.now_ns(); now < until && atomic_load(&w->state) == FL_WORKER_RUNNING;
         now = fl_sys.now_ns()) {
        (void)fl_sys.wait(&w->state, FL_WORKER_RUNNING, until - now);
    }
}

static void *worker_main(void *arg)
{
    struct fl_worker *w = arg;
    uint32_t starting = FL_WORKER_STARTING;

    (void)prctl(PR_SET_NAME, "fl-uffd", 0, 0, 0);
    fl_region_set_worker(w->region, true);
    (void)atomic_compare_exchange_strong(&w->state, &starting, FL_WORKER_RUNNING);
    while (atomic_load(&w->state) == FL_WORKER_RUNNING) {
        sleep_a_tick(w);
        if (atomic_load(&w->state) == FL_WORKER_RUNNING &&
            !fl_region_tick(w->region, TICKS_PER_DECAY)) {
            sleep_until_called(w);
        }
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
        uint32_t starting = FL_WORKER_STARTING;
        (void)atomic_compare_exchange_strong(&w->state, &starting, FL_WORKER_NONE);
    }
}

void fl_worker_call(struct fl_worker *w, bool may_start)
{
    uint32_t none = FL_WORKER_NONE, asleep = FL_WORKER_ASLEEP;

    if (atomic_load(&w->state) == FL_WORKER_NONE) {
        if (may_start && atomic_compare_exchange_strong(&w->state, &none, FL_WORKER_STARTING)) {
            atomic_store(&w->region->wants_worker, false);
            start(w);
        }
        return;
    }
    /* Before the look at the state: a worker about to sleep sees that it was called. */
    atomic_store(&w->region->wants_worker, false);
    if (atomic_compare_exchange_strong(&w->state, &asleep, FL_WORKER_RUNNING)) {
        (void)fl_sys.wake(&w->state, 1);
    }
}

void fl_worker_retire(struct fl_worker *w)
{
    atomic_store(&w->state, FL_WORKER_RETIRED);
    (void)fl_sys.wake(&w->state, 1);
}

void fl_worker_fork_child(struct fl_worker *w)
{
    atomic_store(&w->state, FL_WORKER_NONE);
}
