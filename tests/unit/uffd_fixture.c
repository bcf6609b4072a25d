#include "unit/uffd_fixture.h"

#include "unit/cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

struct fl_worker worker;
_Atomic int ticks;
_Atomic bool more, call_at_end_of_tick, signals_blocked;

/* cppcheck and clang-tidy know the wrapped names by these declarations alone. */
bool __wrap_fl_region_tick(struct fl_region *r, uint32_t age);
bool __real_fl_region_tick(struct fl_region *r, uint32_t age);

bool __wrap_fl_region_tick(struct fl_region *r, uint32_t age)
{
    sigset_t now;

    assert_int_equal(age, 4);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    atomic_store(&signals_blocked,
                 sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGPROF) == 1);
    bool left = __real_fl_region_tick(r, age);
    if (atomic_exchange(&call_at_end_of_tick, false)) {
        fl_worker_call(&worker, false);
    }
    atomic_fetch_add(&ticks, 1);
    return left || atomic_load(&more);
}

void worker_begin(uint64_t decay_ms)
{
    region_begin(NULL);
    fake_events_install();
    fl_home_settle();
    ticks = guests.begun = guests.ended = guests.refusals = 0;
    more = call_at_end_of_tick = signals_blocked = false;
    fl_worker_init(&worker, &region, decay_ms);
}

void worker_start(void)
{
    fl_worker_call(&worker, true);
    await_sleep();
}

void worker_end(void)
{
    fl_worker_retire(&worker);
    await(&guests.ended, guests.begun);
}

void await(_Atomic int *count, int at_least)
{
    while (atomic_load(count) < at_least) {
        sched_yield();
    }
}

void await_state(enum fl_worker_state s)
{
    while (atomic_load(&worker.state) != s) {
        sched_yield();
    }
}

/* Gone, or asleep, and either without a timer or at its second look since we came: the first may
 * have begun before. */
void await_sleep(void)
{
    unsigned from = atomic_load(&fake_events.looks);

    for (bool asleep = false; !asleep;) {
        sched_yield();
        uint32_t s = atomic_load(&worker.state);
        asleep = s == FL_WORKER_NONE ||
                 (s == FL_WORKER_ASLEEP && (atomic_load(&fake_events.untimed) ||
                                            atomic_load(&fake_events.looks) - from >= 2));
    }
}

void pass_ns(uint64_t ns)
{
    atomic_fetch_add(&fake.now_ns, ns);
}

void let_it_tick(void)
{
    int from = atomic_load(&ticks);

    await_sleep();
    pass_ns(TICK_NS);
    await(&ticks, from + 1);
    await_sleep();
    assert_int_equal(ticks, from + 1);
}
