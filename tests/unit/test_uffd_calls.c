/* Calls from many threads, on the real kernel: whatever the thread is doing, each call is followed
 * by a run. */
#include "cases.h"
#include "unit/region_fixture.h"

#include "uffd/uffd.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sched.h>

enum { CALLERS = 3, CALLS = 4000 };

static struct fl_worker worker;
static _Atomic unsigned asked; /* what callers want done, counted */
static _Atomic unsigned seen;  /* of that, what a run has found */
static _Atomic bool
    watched; /* the other job wants to run some day: then there is something to poll */

static uint64_t job(struct fl_region *r)
{
    (void)r;
    atomic_store(&seen, atomic_load(&asked));
    return FL_JOB_IDLE;
}

static uint64_t holder(struct fl_region *r)
{
    (void)r;
    return atomic_load(&watched) ? UINT64_C(3600) * 1000000000 : FL_JOB_IDLE;
}

/* A source of pressure that never speaks, whatever this system has of them. */
static int open_nothing(const char *path, bool writable, int *out_fd)
{
    (void)path;
    (void)writable;
    return fl_events_linux.counter(out_fd);
}

static int tell_nothing(int fd, const char *text, size_t len)
{
    (void)fd;
    (void)text;
    (void)len;
    return 0;
}

/* A lost call makes this wait for ever. */
static void call_and_wait(void)
{
    unsigned ticket = atomic_fetch_add(&asked, 1) + 1;

    fl_worker_call(&worker, true);
    while ((int)(atomic_load(&seen) - ticket) < 0) {
        sched_yield();
    }
}

static void *call(void *arg)
{
    for (int i = 0; i < CALLS; i++) {
        if (i % 64 == 0) {
            atomic_store(&watched, (i / 64) % 2 == 0);
        }
        call_and_wait();
    }
    return arg;
}

CASE(each_call_is_followed_by_a_run)
{
    pthread_t caller[CALLERS];

    fl_worker_init(&worker, &region, 0);
    fl_worker_add(&worker, job, 0);
    fl_worker_add(&worker, holder, 0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&caller[i], NULL, call, NULL), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(caller[i], NULL), 0);
    }
}

/* The wake is this kernel's own there. */
CASE(it_is_woken_out_of_poll)
{
    atomic_store(&watched, true);
    for (int i = 0; i < 1000; i++) {
        call_and_wait();
        while (atomic_load(&worker.state) != FL_WORKER_ASLEEP) {
            sched_yield();
        }
    }
}

CASE(a_retired_one_gives_its_number_back)
{
    int pid = worker.pid, tid = worker.tid;
    fl_worker_retire(&worker);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    while (fl_events.wake_send(pid, tid) == 0) { /* until there is no such thread */
        sched_yield();
    }
}

int main(void)
{
    fl_sys_boot(); /* a container's seccomp filter is known from here on */
    fl_home_settle();
    region_begin(NULL);
    fl_sys.now_ns = fl_sys_linux.now_ns;
    fl_events.open = open_nothing;
    fl_events.tell = tell_nothing;
    return RUN_CASES();
}
