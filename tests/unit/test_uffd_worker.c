/* The thread's life: it starts once, runs its jobs, ends when nothing is left, is retired, and no
 * call gets lost. */
#include "cases.h"
#include "unit/uffd_fixture.h"

#define LINGER_NS UINT64_C(1000000000)

static void begin(void)
{
    worker_begin(DECAY_MS);
}

CASE(a_refused_thread_is_asked_for_again)
{
    atomic_store(&guests.refuse_as, -EAGAIN);
    atomic_store(&guests.refusals, 1);
    fl_worker_call(&worker, true);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(guests.begun, 0);
    worker_start();
    assert_int_equal(guests.begun, 1);
}

CASE(where_there_are_no_guests_none_is_asked_for_again)
{
    atomic_store(&guests.refuse_as, -ENOSYS);
    atomic_store(&guests.refusals, 1);
    fl_worker_call(&worker, true);
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, true);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(guests.begun, 0);
    assert_false(region.wants_worker);
}

CASE(a_free_starts_no_first_thread)
{
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, false); /* it may come from a signal handler */
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(guests.begun, 0);
    assert_true(region.wants_worker); /* the next request will */
}

CASE(it_starts_once_and_ticks_four_times_a_decay)
{
    atomic_store(&more, true);
    for (int i = 0; i < 10; i++) {
        fl_worker_call(&worker, true);
    }
    for (int i = 0; i < 8; i++) {
        let_it_tick();
    }
    assert_int_equal(guests.begun, 1);
    assert_true(signals_blocked);
}

CASE(without_a_table_of_its_own_it_opens_nothing)
{
    fake_events.own_table_rc = -EPERM;
    fake_events_file("/proc/pressure/memory", false);
    atomic_store(&more, true);
    worker_start();
    let_it_tick();
    fl_worker_call(&worker, false);
    let_it_tick();
    assert_int_equal(fake_events.own_tables, 1);
    assert_int_equal(fake_events_open(NULL), 0);
    assert_int_equal(fake_events.polls, 0);
    assert_int_equal(fake_events.wakes, 1);
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
}

CASE(freed_memory_decays)
{
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

CASE(it_ends_when_nothing_is_left_and_starts_again_when_called)
{
    worker_start();
    let_it_tick();
    assert_true(region.wants_worker);
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
    pass_ns(2 * LINGER_NS);
    await(&guests.ended, 1);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_int_equal(ticks, 1);
    assert_false(region.clock.has_worker);
    assert_int_equal(fake_events_open(NULL), 0);
    atomic_store(&more, true);
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, true);
    assert_false(region.wants_worker);
    let_it_tick();
    let_it_tick();
    assert_int_equal(guests.begun, 2);
    assert_true(region.clock.has_worker);
}

CASE(a_call_between_tick_and_sleep_is_not_lost)
{
    worker_start();
    atomic_store(&call_at_end_of_tick, true);
    let_it_tick();
    let_it_tick(); /* what the call is owed */
    assert_false(call_at_end_of_tick);
    pass_ns(100 * TICK_NS);
    await_sleep();
    assert_int_equal(ticks, 2);
}

/* As where a sandbox refuses signals: nothing wakes it before it would end. */
CASE(a_call_that_cannot_wake_it_keeps_it_from_ending)
{
    worker_start();
    let_it_tick();
    atomic_store(&fake_events.wake_send_rc, -EPERM);
    fl_worker_call(&worker, false);
    pass_ns(2 * LINGER_NS);
    await_sleep();
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
    let_it_tick(); /* what the call is owed */
    pass_ns(2 * LINGER_NS);
    await(&guests.ended, 1);
    assert_int_equal(ticks, 2);
}

/* A call in the midst of a wait brings no tick earlier, and none later. */
CASE(calls_do_not_change_the_time_of_a_tick)
{
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

CASE(a_retired_one_is_gone_and_comes_back_a_moment_later)
{
    pass_ns(1);
    worker_start();
    fl_worker_retire(&worker);
    assert_int_equal(guests.ended, 1);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    assert_false(region.clock.has_worker);
    atomic_store(&region.wants_worker, true);
    fl_worker_call(&worker, true);
    assert_int_equal(guests.begun, 1);
    assert_true(region.wants_worker);
    pass_ns(LINGER_NS);
    worker_start();
    assert_int_equal(guests.begun, 2);
}

CASE(a_confined_process_starts_none)
{
    fl_sys_confine(true);
    fl_worker_call(&worker, true);
    fl_sys_confine(false);
    assert_int_equal(guests.begun, 0);
}

CASE(a_fork_s_child_starts_its_own)
{
    worker_start();
    worker_end(); /* fork leaves it there; here it must not write to what is changed below */
    atomic_store(&worker.state, FL_WORKER_ASLEEP);
    fl_worker_fork_child(&worker);
    assert_int_equal(worker.state, FL_WORKER_NONE);
    worker_start();
    assert_int_equal(guests.begun, 2);
}

CASES_MAIN(.setup = begin, .teardown = worker_end)
