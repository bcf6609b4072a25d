/* How the thread sleeps: in poll, in a descriptor table of its own; it watches for pressure while
 * something may be given back, is woken by a signal, and no wake is lost, nor sent to another
 * thread. */
#include "await.h"
#include "uffd/internal.h"
#include "cases.h"
#include "unit/uffd_fixture.h"

#include <pthread.h>
#include <sched.h>

static const char psi[] = "/proc/pressure/memory";
static _Atomic int runs;

static uint64_t at_once(struct fl_region *r)
{
    (void)r;
    atomic_fetch_add(&runs, 1);
    return FL_JOB_IDLE;
}

static void begin(void)
{
    worker_begin(DECAY_MS);
    fake_events_file(psi, false);
    fl_worker_add(&worker, at_once, 0);
    runs = 0;
    atomic_store(&more, true);
}

CASE(it_polls_while_something_ages)
{
    worker_start();
    await_state(FL_WORKER_ASLEEP);
    assert_int_equal(fake_events.own_tables, 1);
    assert_int_equal(fake_events_open("wake"), 1);
    assert_int_equal(fake_events_open(psi), 1);
    let_it_tick();
    let_it_tick();
    assert_int_equal(fake_events_open(NULL), 2);
}

CASE(it_watches_nothing_when_nothing_ages)
{
    worker_start();
    atomic_store(&more, false);
    let_it_tick();
    await_state(FL_WORKER_ASLEEP);
    assert_int_equal(fake_events_open(NULL), 1);
    assert_int_equal(fake_events_open("wake"), 1);
    atomic_store(&more, true);
    fl_worker_call(&worker, false);
    let_it_tick();
    assert_int_equal(fake_events_open(psi), 1);
    assert_int_equal(guests.begun, 1);
}

CASE(a_call_wakes_it_by_one_signal)
{
    worker_start();
    await(&runs, 1);
    for (int i = 1; i <= 10; i++) {
        await_state(FL_WORKER_ASLEEP);
        atomic_store(&region.wants_worker, true);
        fl_worker_call(&worker, false);
        assert_false(region.wants_worker);
        await(&runs, 1 + i);
        await_sleep();
        assert_int_equal(fake_events.wakes, i);
    }
    assert_int_equal(ticks, 0);
}

CASE(a_wake_that_cannot_be_sent_is_left_to_the_timer_and_to_the_next_call)
{
    worker_start();
    await(&runs, 1);
    atomic_store(&fake_events.wake_send_rc, -EAGAIN);
    for (int i = 0; i < 3; i++) {
        atomic_store(&region.wants_worker, false);
        fl_worker_call(&worker, false);
        assert_int_equal(worker.state, FL_WORKER_ASLEEP);
        assert_true(region.wants_worker);
    }
    await_sleep();
    assert_int_equal(runs, 1);
    let_it_tick(); /* its timer is what it was, and then it sees that it was called */
    assert_int_equal(runs, 2);
    let_it_tick();
    assert_int_equal(runs, 2);
    fl_worker_call(&worker, false);
    atomic_store(&fake_events.wake_send_rc, 0);
    fl_worker_call(&worker, false);
    await(&runs, 3);
    assert_false(region.wants_worker);
}

/* A signal that no thread waits for any more. */
CASE(a_stray_wake_is_dropped)
{
    worker_start();
    for (int i = 0; i < 3; i++) {
        fake_events_stray_wake();
        await_sleep();
    }
    assert_int_equal(ticks, 0);
    let_it_tick();
    fl_worker_call(&worker, false);
    await(&runs, 2);
    assert_int_equal(fake_events.wakes, 1);
}

/* The caller has changed the state, and is late with its signal: the thread must not run on and
 * meet it elsewhere. */
CASE(it_waits_for_a_signal_that_is_late)
{
    worker_start();
    await(&runs, 1);
    uint32_t asleep = FL_WORKER_ASLEEP;
    assert_true(atomic_compare_exchange_strong(&worker.state, &asleep, FL_WORKER_CALLED));
    unsigned from = fake_events.polls;
    pass_ns(TICK_NS);
    FL_AWAIT(fake_events.polls != from); /* it is out of its sleep, and in that wait */
    assert_int_equal(runs, 1);
    fake_events_stray_wake();
    await(&runs, 2);
    await(&ticks, 1);
}

CASE(one_that_never_comes_is_not_waited_for_for_ever)
{
    worker_start();
    uint32_t asleep = FL_WORKER_ASLEEP;
    assert_true(atomic_compare_exchange_strong(&worker.state, &asleep, FL_WORKER_ENDING));
    while (guests.ended == 0) {
        pass_ns(TICK_NS);
        sched_yield();
    }
}

CASE(a_retired_one_ends)
{
    worker_start();
    await_state(FL_WORKER_ASLEEP);
    fl_worker_retire(&worker);
    await(&guests.ended, 1);
    assert_int_equal(fake_events.wakes, 1);
}

static void *let_it_be_sent(void *arg)
{
    await_state(FL_WORKER_ENDING);
    atomic_store(&fake_events.wake_send_rc, 0);
    return arg;
}

CASE(a_wake_to_leave_is_sent_until_it_can_be)
{
    pthread_t other;
    worker_start();
    await_state(FL_WORKER_ASLEEP);
    atomic_store(&fake_events.wake_send_rc, -EAGAIN);
    assert_int_equal(pthread_create(&other, NULL, let_it_be_sent, NULL), 0);
    fl_worker_retire(&worker);
    assert_int_equal(guests.ended, 1);
    assert_int_equal(pthread_join(other, NULL), 0);
}

/* RLIMIT_NOFILE below what is polled, or a sandbox. */
CASE(where_poll_is_refused_it_goes_on_without)
{
    worker_start();
    atomic_store(&fake_events.poll_rc, -EINVAL);
    fl_worker_call(&worker, false); /* out of the poll that goes on */
    await(&runs, 2);
    FL_AWAIT(fake_events_open(NULL) == 0);
    atomic_store(&fake_events.poll_rc, 0);
    let_it_tick();
    let_it_tick();
    assert_int_equal(fake_events_open(NULL), 0);
    fl_worker_call(&worker, false);
    await(&runs, 3);
    assert_int_equal(guests.begun, 1);
}

static _Atomic int told, told_last;

static bool listen(struct fl_worker *w, const struct fl_source *s, short came)
{
    (void)w;
    (void)s;
    atomic_store(&told_last, came);
    atomic_fetch_add(&told, 1);
    return came == POLLIN;
}

static uint64_t add_source(struct fl_region *r)
{
    int fd;
    (void)r;

    if (atomic_load(&told_last) == -1 && fl_events.open("/some/file", false, &fd) == 0) {
        atomic_store(&told_last, 0);
        (void)fl_source_add(&worker, (struct fl_source){fd, POLLIN, false, listen});
    }
    return FL_JOB_IDLE;
}

/* It polls as long as there is one, though nothing is held; then it is told of each event, and of
 * the end. */
CASE(another_source_is_listened_to)
{
    told = 0;
    told_last = -1;
    atomic_store(&more, false);
    fake_events_file("/some/file", false);
    fl_worker_add(&worker, add_source, 0);
    worker_start();
    let_it_tick();
    await_state(FL_WORKER_ASLEEP);
    assert_true(fake_events.untimed);
    assert_int_equal(fake_events_open(psi), 0);
    for (int i = 1; i <= 3; i++) {
        fake_events_raise("/some/file", POLLIN);
        await(&told, i);
        fake_events_raise("/some/file", 0);
        assert_int_equal(told_last, POLLIN);
    }
    fl_worker_call(&worker, false);
    await(&runs, 2);
    atomic_store(&fake_events.poll_rc, -EPERM);
    fl_worker_call(&worker, false);
    FL_AWAIT(fake_events_open(NULL) == 0);
    assert_int_equal(told_last, 0);
    assert_int_equal(fake_events_open(NULL), 0);
}

CASE(a_source_that_is_of_no_use_is_closed)
{
    told = 0;
    told_last = -1;
    fake_events_file("/some/file", false);
    fl_worker_add(&worker, add_source, 0);
    worker_start();
    fake_events_raise("/some/file", POLLERR);
    await(&told, 1);
    await_sleep();
    assert_int_equal(told, 1);
    assert_int_equal(fake_events_open("/some/file"), 0);
}

CASE(an_interrupted_poll_goes_on)
{
    worker_start();
    atomic_store(&fake_events.poll_rc, -EINTR);
    fl_worker_call(&worker, false);
    await(&runs, 2);
    unsigned polls = fake_events.polls;
    FL_AWAIT(fake_events.polls >= polls + 10);
    assert_int_equal(ticks, 0);
    atomic_store(&fake_events.poll_rc, 0);
    let_it_tick();
    assert_int_equal(fake_events_open(psi), 1);
}

CASE(without_a_descriptor_to_wake_it_nothing_is_watched)
{
    fake_events.wake_open_rc = -EPERM;
    worker_start();
    let_it_tick();
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
    assert_int_equal(fake_events.own_tables, 1);
    assert_int_equal(fake_events_open(NULL), 0);
    fl_worker_call(&worker, false);
    await(&runs, 2);
}

/* After a fork that ran no handlers. The thread is not there, and its number may be another
 * thread's. */
static int call_in_child(void)
{
    for (int i = 0; i < 3; i++) {
        fl_worker_call(&worker, true);
    }
    fl_worker_retire(&worker);
    return (int)fake_events.wakes;
}

CASE(a_child_signals_no_thread)
{
    worker_start();
    await_state(FL_WORKER_ASLEEP);
    assert_int_equal(fake_child(call_in_child), 0);
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
}

CASES_MAIN(.setup = begin, .teardown = worker_end)
