/* The decay thread on a fake clock: it starts once, ticks, sleeps, wakes, and no call gets lost. The linker wraps
 * fl_region_tick and pthread_create (CMakeLists.txt), so the tests see each tick and can refuse the thread.
 *
 * One worker serves all tests of this program, as it serves a process: the thread never ends. */
#include "uffd/uffd.h"
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { DECAY_MS = 1000 };

static struct fl_worker worker;
static _Atomic int ticks, threads, refuse_threads, waits;
static _Atomic bool more, call_at_end_of_tick, signals_blocked;

/* cppcheck and clang-tidy know the wrapped names by these declarations alone. */
bool __wrap_fl_region_tick(struct fl_region *r, uint32_t age);
bool __real_fl_region_tick(struct fl_region *r, uint32_t age);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg);

bool __wrap_fl_region_tick(struct fl_region *r, uint32_t age)
{
    sigset_t now;

    assert_int_equal(age, 4);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &now);
    atomic_store(&signals_blocked,
                 sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGPROF) == 1);
    bool left = __real_fl_region_tick(r, age);
    if (atomic_exchange(&call_at_end_of_tick, false)) {
        fl_worker_call(&worker,
                       false); /* as a free on another thread, just after the tick looked */
    }
    atomic_fetch_add(&ticks, 1);
    return left || atomic_load(&more);
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
    if (atomic_load(&refuse_threads) != 0) {
        return EAGAIN;
    }
    atomic_fetch_add(&threads, 1);
    return __real_pthread_create(t, attr, f, arg);
}

/* With a fake clock a timed wait must not last: it looks at the clock again soon. */
static int short_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        return fl_sys_linux.wait(word, expected, 0);
    }
    atomic_fetch_add(&waits, 1);
    return fl_sys_linux.wait(word, expected, 100000);
}

/* Lets the time of one tick pass, once the worker has set its timer, and waits for the tick. */
static void let_it_tick(void)
{
    int from = atomic_load(&ticks), seen = atomic_load(&waits);

    while (atomic_load(&waits) == seen) {
        sched_yield();
    }
    atomic_fetch_add(&fake.now_ns, DECAY_MS * UINT64_C(1000000) / 4 + 1);
    while (atomic_load(&ticks) == from) {
        sched_yield();
    }
    assert_int_equal(ticks, from + 1);
}

static void await_state(enum fl_worker_state s)
{
    while (atomic_load(&worker.state) != s) {
        sched_yield();
    }
}

static void a_refused_thread_is_asked_for_again(void **state)
{
    (void)state;
    fl_worker_init(&worker, &region, DECAY_MS);
    atomic_store(&refuse_threads, 1);
    fl_worker_call(&worker, true);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(threads, 0);
    atomic_store(&refuse_threads, 0);
}

static void a_free_starts_no_thread(void **state)
{
    (void)state;
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, false); /* it may come from a signal handler */
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(threads, 0);
    assert_true(region.wants_worker); /* the next request will */
}

static void it_starts_once_and_ticks_four_times_a_decay(void **state)
{
    (void)state;
    atomic_store(&more, true);
    for (int i = 0; i < 10; i++) {
        fl_worker_call(&worker, true);
    }
    await_state(FL_WORKER_RUNNING);
    assert_int_equal(threads, 1);
    for (int i = 0; i < 8; i++) {
        let_it_tick();
    }
    assert_true(signals_blocked);
}

static void freed_memory_decays(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(4));
    give(e);
    for (int i = 0; i < 3; i++) {
        let_it_tick();
    }
    assert_int_equal(stats().purge_bytes, 0);
    let_it_tick();
    let_it_tick();
    assert_int_equal(stats().purge_bytes, MIB(4));
    assert_sound();
}

static void it_sleeps_when_nothing_is_left_and_wakes_when_called(void **state)
{
    (void)state;
    atomic_store(&more, false);
    let_it_tick();
    await_state(FL_WORKER_ASLEEP);
    assert_true(region.wants_worker);
    int from = atomic_load(&ticks);
    int timers = atomic_load(&waits);
    atomic_fetch_add(&fake.now_ns, DECAY_MS * UINT64_C(100000000));
    sched_yield();
    assert_int_equal(ticks, from);
    assert_int_equal(waits, timers);
    atomic_store(&more, true);
    fl_worker_call(&worker, false);
    assert_false(region.wants_worker);
    let_it_tick();
    let_it_tick();
    assert_int_equal(threads, 1);
}

static void a_call_between_tick_and_sleep_is_not_lost(void **state)
{
    (void)state;
    atomic_store(&more, false);
    atomic_store(&call_at_end_of_tick, true);
    let_it_tick();
    let_it_tick(); /* what the call is owed */
    assert_false(call_at_end_of_tick);
    await_state(FL_WORKER_ASLEEP);
}

static void a_fork_s_child_starts_its_own(void **state)
{
    struct fl_worker child = {.region = &region, .decay_ms = DECAY_MS, .state = FL_WORKER_RUNNING};
    (void)state;
    fl_worker_fork_child(&child);
    assert_int_equal(child.state, FL_WORKER_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_thread_is_asked_for_again),
        cmocka_unit_test(a_free_starts_no_thread),
        cmocka_unit_test(it_starts_once_and_ticks_four_times_a_decay),
        cmocka_unit_test(freed_memory_decays),
        cmocka_unit_test(it_sleeps_when_nothing_is_left_and_wakes_when_called),
        cmocka_unit_test(a_call_between_tick_and_sleep_is_not_lost),
        cmocka_unit_test(a_fork_s_child_starts_its_own),
    };
    region_begin(NULL);
    fl_sys.wait = short_wait;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
