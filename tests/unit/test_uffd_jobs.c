/* Jobs: each has its own time, a call has them all run, and none keeps the others waiting. */
#include "cases.h"
#include "unit/uffd_fixture.h"

enum { JOBS = 3 };

static _Atomic int runs[JOBS];
static _Atomic uint64_t answer[JOBS]; /* of the next run, then FL_JOB_IDLE */
static _Atomic int
    call_within[JOBS];    /* so many runs call the worker, as a thread would meanwhile */
static _Atomic bool busy; /* the first one has more to do at once */
static _Atomic(struct fl_region *) given;

static uint64_t run(int i, struct fl_region *r)
{
    atomic_store(&given, r);
    if (atomic_load(&call_within[i]) > 0) {
        atomic_fetch_sub(&call_within[i], 1);
        fl_worker_call(&worker, false);
    }
    uint64_t in = atomic_exchange(&answer[i], FL_JOB_IDLE);
    atomic_fetch_add(&runs[i], 1);
    return i == 0 && atomic_load(&busy) ? 0 : in;
}

static uint64_t run_a(struct fl_region *r)
{
    return run(0, r);
}

static uint64_t run_b(struct fl_region *r)
{
    return run(1, r);
}

static uint64_t run_c(struct fl_region *r)
{
    return run(2, r);
}

/* a: at once after a call. b: 100 ns after. c: 1000 ns after. */
static void begin(void)
{
    worker_begin(0);
    for (int i = 0; i < JOBS; i++) {
        runs[i] = call_within[i] = 0;
        answer[i] = FL_JOB_IDLE;
    }
    fl_worker_add(&worker, run_a, 0);
    fl_worker_add(&worker, run_b, 100);
    fl_worker_add(&worker, run_c, 1000);
}

static void assert_runs(int a, int b, int c)
{
    await(&runs[0], a);
    await(&runs[1], b);
    await(&runs[2], c);
    await_sleep();
    assert_int_equal(runs[0], a);
    assert_int_equal(runs[1], b);
    assert_int_equal(runs[2], c);
}

CASE(each_runs_after_its_own_delay)
{
    worker_start();
    assert_runs(1, 0, 0);
    assert_ptr_equal(given, &region);
    pass_ns(99);
    assert_runs(1, 0, 0);
    pass_ns(1);
    assert_runs(1, 1, 0);
    pass_ns(900);
    assert_runs(1, 1, 1);
    pass_ns(1000000);
    assert_runs(1, 1, 1);
}

CASE(a_call_has_them_all_run)
{
    worker_start();
    pass_ns(1000);
    assert_runs(1, 1, 1);
    fl_worker_call(&worker, false);
    assert_runs(2, 1, 1);
    pass_ns(1000);
    assert_runs(2, 2, 2);
}

CASE(they_say_when_they_want_to_run_again)
{
    atomic_store(&answer[0], 5000);
    atomic_store(&answer[1], FL_JOB_DELAY);
    worker_start();
    pass_ns(100);
    assert_runs(1, 1, 0);
    pass_ns(100);
    assert_runs(1, 2, 0);
    pass_ns(5000 - 200);
    assert_runs(2, 2, 1);
}

CASE(a_delay_may_change_and_a_job_may_be_off)
{
    worker_start();
    assert_runs(1, 0, 0);
    fl_worker_set_delay(&worker, run_b, FL_JOB_IDLE); /* it is due */
    fl_worker_set_delay(&worker, run_c, 200);
    fl_worker_call(&worker, false);
    assert_runs(2, 0, 0);
    pass_ns(200);
    assert_runs(2, 0, 1);
    pass_ns(1000000);
    assert_runs(2, 0, 1);
    fl_worker_set_delay(&worker, run_b, 50);
    fl_worker_call(&worker, false);
    assert_runs(3, 0, 1);
    pass_ns(50);
    assert_runs(3, 1, 1);
    pass_ns(150);
    assert_runs(3, 1, 2);
}

CASE(what_is_far_off_does_not_wrap)
{
    atomic_store(&answer[0], FL_JOB_DELAY - 1);
    worker_start();
    pass_ns(UINT64_MAX / 2);
    assert_runs(1, 1, 1);
}

CASE(one_that_has_more_to_do_lets_others_run)
{
    atomic_store(&busy, true);
    fl_worker_call(&worker, true);
    await(&runs[0], 10);
    pass_ns(100);
    await(&runs[1], 1);
    fl_worker_call(&worker, false);
    await(&runs[0], runs[0] + 2); /* the call is seen, and its time counts from there */
    pass_ns(100);
    await(&runs[1], 2);
    atomic_store(&busy, false);
    await_sleep();
}

CASE(a_call_while_they_run_is_not_lost)
{
    atomic_store(&call_within[0], 20);
    worker_start();
    assert_runs(21, 0, 0);
}

CASE(without_jobs_it_sleeps)
{
    worker_begin(0);
    worker_start();
    fl_worker_call(&worker, false);
    await_sleep();
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
}

CASES_MAIN(.setup = begin, .teardown = worker_end)
