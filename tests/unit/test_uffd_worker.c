/* The thread without descriptors, as where close_range(2) is refused: it starts once, runs its jobs, sleeps on a futex,
 * and no call gets lost. */
#include "unit/cmocka_all.h"
#include "unit/uffd_fixture.h"

#include <errno.h>
#include <pthread.h>

static int begin(void **state)
{
    (void)state;
    worker_begin(DECAY_MS);
    fake_events.own_table_rc = -EPERM;
    return 0;
}

static void a_refused_thread_is_asked_for_again(void **state)
{
    (void)state;
    atomic_store(&refuse_threads, 1);
    fl_worker_call(&worker, true);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(threads_begun, 0);
    atomic_store(&refuse_threads, 0);
    worker_start();
    assert_int_equal(threads_begun, 1);
}

static void a_free_starts_no_thread(void **state)
{
    (void)state;
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, false); /* it may come from a signal handler */
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(threads_begun, 0);
    assert_true(region.wants_worker); /* the next request will */
}

static void it_starts_once_and_ticks_four_times_a_decay(void **state)
{
    (void)state;
    atomic_store(&more, true);
    for (int i = 0; i < 10; i++) {
        fl_worker_call(&worker, true);
    }
    for (int i = 0; i < 8; i++) {
        let_it_tick();
    }
    assert_int_equal(threads_begun, 1);
    assert_true(signals_blocked);
}

static void it_asks_for_no_descriptor(void **state)
{
    (void)state;
    fake_events_file("/proc/pressure/memory", false);
    atomic_store(&more, true);
    worker_start();
    let_it_tick();
    assert_int_equal(fake_events.own_tables, 1);
    assert_int_equal(fake_events_open(NULL), 0);
    assert_int_equal(fake_events.polls, 0);
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
}

static void freed_memory_decays(void **state)
{
    (void)state;
    atomic_store(&more, true);
    worker_start();
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
    worker_start();
    let_it_tick();
    assert_true(region.wants_worker);
    pass_ns(100 * DECAY_MS * UINT64_C(1000000));
    for (int i = 0; i < 100; i++) {
        await_state(FL_WORKER_ASLEEP);
    }
    assert_int_equal(ticks, 1);
    atomic_store(&more, true);
    fl_worker_call(&worker, false);
    assert_false(region.wants_worker);
    let_it_tick();
    let_it_tick();
    assert_int_equal(threads_begun, 1);
}

static void a_call_between_tick_and_sleep_is_not_lost(void **state)
{
    (void)state;
    worker_start();
    atomic_store(&call_at_end_of_tick, true);
    let_it_tick();
    let_it_tick(); /* what the call is owed */
    assert_false(call_at_end_of_tick);
    pass_ns(100 * TICK_NS);
    await_sleep();
    assert_int_equal(ticks, 2);
}

/* A call in the midst of a wait brings no tick earlier, and none later. */
static void calls_do_not_change_the_time_of_a_tick(void **state)
{
    (void)state;
    atomic_store(&more, true);
    worker_start();
    pass_ns(TICK_NS / 2);
    for (int i = 0; i < 10; i++) {
        fl_worker_call(&worker, false);
        await_sleep();
    }
    assert_int_equal(ticks, 0);
    pass_ns(TICK_NS - TICK_NS / 2);
    await(&ticks, 1);
    await_sleep();
    assert_int_equal(ticks, 1);
}

static void a_retired_one_ends_and_stays_away(void **state)
{
    (void)state;
    worker_start();
    fl_worker_retire(&worker);
    await(&threads_ended, 1);
    fl_worker_call(&worker, true);
    assert_int_equal(worker.state, FL_WORKER_RETIRED);
    assert_int_equal(threads_begun, 1);
}

static void a_fork_s_child_starts_its_own(void **state)
{
    (void)state;
    worker_start();
    worker_end(NULL); /* fork leaves it there; here it must not write to what is changed below */
    atomic_store(&worker.state, FL_WORKER_ASLEEP);
    fl_worker_fork_child(&worker);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    worker_start();
    assert_int_equal(threads_begun, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_refused_thread_is_asked_for_again, begin, worker_end),
        cmocka_unit_test_setup_teardown(a_free_starts_no_thread, begin, worker_end),
        cmocka_unit_test_setup_teardown(it_starts_once_and_ticks_four_times_a_decay, begin,
                                        worker_end),
        cmocka_unit_test_setup_teardown(it_asks_for_no_descriptor, begin, worker_end),
        cmocka_unit_test_setup_teardown(freed_memory_decays, begin, worker_end),
        cmocka_unit_test_setup_teardown(it_sleeps_when_nothing_is_left_and_wakes_when_called, begin,
                                        worker_end),
        cmocka_unit_test_setup_teardown(a_call_between_tick_and_sleep_is_not_lost, begin,
                                        worker_end),
        cmocka_unit_test_setup_teardown(calls_do_not_change_the_time_of_a_tick, begin, worker_end),
        cmocka_unit_test_setup_teardown(a_retired_one_ends_and_stays_away, begin, worker_end),
        cmocka_unit_test_setup_teardown(a_fork_s_child_starts_its_own, begin, worker_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
