/* Threads and contexts: one thread at a time is in a context, and what is beside others. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>

enum { N = 30, THREADS = 6, STEPS = 12 };

static struct fl_step_context *context;
static pthread_barrier_t all;
static const struct ask *usual; /* theirs all */
static bool asks;               /* where its blocks lie, each of them */

struct other {
    pthread_t thread;
    struct loop l;
    unsigned steps;
    bool waits;                 /* for all in the midst of each step */
    struct fl_step_context *in; /* NULL: its own */
    int begun, ended, again;
    unsigned same, planned; /* requests of the last step */
};

static void meet(bool waits)
{
    if (waits) {
        (void)pthread_barrier_wait(&all);
    }
}

static void *run(void *arg)
{
    struct other *o = arg;

    for (unsigned s = 0; s < o->steps; s++) {
        meet(o->waits);
        struct fl_plan_layout p;
        o->begun |= fl_plan_begin(o->in);
        (void)(asks && fl_plan_layout(o->in, &p, NULL, 0));
        o->again = fl_plan_begin(o->in);
        loop_step(&o->l);
        meet(o->waits);
        o->ended |= fl_plan_end(o->in);
    }
    o->same = loop_same(&o->l);
    o->planned = loop_planned(&o->l);
    loop_over(&o->l);
    thread_end();
    return NULL;
}

static void start_in(struct fl_step_context *c, struct other *o, bool waits, unsigned steps)
{
    *o = (struct other){.l = {.ask = usual, .n = N}, .steps = steps, .waits = waits, .in = c};
    assert_int_equal(pthread_create(&o->thread, NULL, run, o), 0);
}

static void start(struct other *o, bool waits, unsigned steps)
{
    start_in(context, o, waits, steps);
}

static void finish(struct other *o)
{
    assert_int_equal(pthread_join(o->thread, NULL), 0);
    assert_true(o->begun == 0 && o->ended == 0 && o->again == -EINVAL);
}

static int each(void **state)
{
    (void)state;
    plan_begin(NULL);
    usual = loop_usual(N);
    assert_int_equal(fl_plan_context_new(&context), 0);
    return 0;
}

static void each_thread_that_asks_has_its_plan(void **state)
{
    static struct other o[THREADS];

    (void)each(state);
    asks = true;
    assert_int_equal(pthread_barrier_init(&all, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        start_in(NULL, &o[i], true, STEPS);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        finish(&o[i]);
        assert_int_equal(o[i].planned, N);
        assert_int_equal(o[i].same, N);
    }
    assert_int_equal(plan_stats().layouts, THREADS);
    assert_int_equal(plan_stats().missed_bytes, 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

/* They would take each other's idle pages, and move them back. Alone, the thread is planned again
 * after a rest. */
static void steps_beside_others_are_not_planned(void **state)
{
    static struct other o[2];

    (void)each(state);
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    start(&o[0], true, STEPS);
    start_in(NULL, &o[1], true, STEPS);
    finish(&o[0]);
    finish(&o[1]);
    assert_int_equal(o[0].planned + o[1].planned, 0);
    assert_int_equal(plan_stats().layouts, 0);
    start(&o[0], false, 2 * FL_LONG_SERVICE);
    finish(&o[0]);
    assert_int_equal(o[0].planned, N);
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
}

/* Nor where they come between, one after the other. */
static void nor_are_those_that_take_turns(void **state)
{
    struct fl_step_context *own;
    struct loop l;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    assert_int_equal(fl_plan_context_new(&own), 0);
    for (unsigned s = 0; s < STEPS; s++) {
        static struct other o;
        loop_declared(&l, own, 1);
        start(&o, false, 1);
        finish(&o);
    }
    assert_int_equal(loop_planned(&l), 0);
    loop_over(&l);
}

/* Asked amid a rest, it learns at once. */
static void who_asks_is_planned_beside_others(void **state)
{
    static struct loop l;
    struct fl_plan_layout p;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    atomic_fetch_add(&fl_plan.stepping, 1); /* another one, for ever */
    loop_declared(&l, context, 4);
    assert_int_equal(context->state, FL_REST);
    assert_int_equal(fl_plan_begin(context), 0);
    assert_int_equal(fl_plan_layout(context, &p, NULL, 0), -ENODATA);
    loop_step(&l);
    assert_int_equal(fl_plan_end(context), 0);
    loop_declared(&l, context, 4);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

static struct loop marks;
static void mark(unsigned i)
{
    if (i == N / 2) {
        assert_int_equal(fl_plan_mark_zone(marks.at[i - 1], 1), 0);
        marks.also = NULL;
    }
}

static void whose_block_is_marked_is_planned(void **state)
{
    (void)each(state);
    marks = (struct loop){.ask = usual, .n = N, .also = mark};
    atomic_fetch_add(&fl_plan.stepping, 1);
    assert_int_equal(fl_plan_begin(context), 0);
    loop_step(&marks);
    assert_int_equal(fl_plan_end(context), 0);
    loop_declared(&marks, context, 5);
    assert_int_equal(loop_planned(&marks), N);
    loop_over(&marks);
}

/* The thread ends within its step, or is not in the child of a fork. */
static void who_is_gone_is_beside_none(void **state)
{
    (void)each(state);
    assert_int_equal(fl_plan_begin(context), 0);
    thread_end();
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
    assert_int_equal(fl_plan_begin(NULL), 0);
    atomic_fetch_add(&fl_plan.stepping, 1); /* another one */
    fl_plan_fork_child(true);
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 1);
}

static void those_that_come_one_after_the_other_share_one(void **state)
{
    static struct other o;

    (void)each(state);
    for (unsigned i = 0; i < STEPS; i++) {
        start(&o, false, 1);
        finish(&o);
        assert_int_equal(o.planned, i < 3 ? 0 : N);
    }
    assert_int_equal(fl_plan.ncontexts, 1 + 1);
}

static void *find_it_busy(void *arg)
{
    bool refused = fl_plan_begin(context) == -EBUSY && fl_plan_end(context) == -EINVAL &&
                   fl_plan_context_free(context) == -EBUSY;

    thread_end();
    return refused ? arg : NULL;
}

/* Who is refused was beside it all the same. */
static void one_thread_at_a_time(void **state)
{
    static struct loop l;
    struct fl_step_context *other;
    pthread_t t;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    assert_int_equal(fl_plan_context_new(&other), 0);
    for (unsigned s = 0; s < STEPS; s++) {
        assert_int_equal(fl_plan_begin(context), 0);
        assert_int_equal(fl_plan_begin(other), 0);
        assert_int_equal(fl_plan_end(context), -EINVAL); /* not the innermost */
        assert_int_equal(fl_plan_begin(context), -EINVAL);
        assert_int_equal(fl_plan_end(other), 0);
        void *refused = NULL;
        assert_int_equal(pthread_create(&t, NULL, find_it_busy, &l), 0);
        loop_step(&l);
        assert_int_equal(pthread_join(t, &refused), 0);
        assert_non_null(refused);
        assert_int_equal(fl_plan_context_free(context), -EBUSY);
        assert_int_equal(fl_plan_end(context), 0);
    }
    assert_int_equal(loop_planned(&l), 0);
    loop_over(&l);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(fl_plan_context_free(context), -EINVAL);
    assert_int_equal(fl_plan_begin(context), -EINVAL);
}

static atomic_bool over;

static void *look_all_the_time(void *arg)
{
    struct fl_plan_layout p;

    while (!atomic_load(&over)) {
        (void)fl_plan_layout(context, &p, NULL, 0);
    }
    thread_end();
    return arg;
}

/* Who only looks where blocks lie is in no step. */
static void a_look_refuses_no_step(void **state)
{
    struct loop l;
    pthread_t t;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&t, NULL, look_all_the_time, NULL), 0);
    for (unsigned s = 0; s < 300; s++) {
        assert_int_equal(fl_plan_begin(context), 0);
        loop_step(&l);
        assert_int_equal(fl_plan_end(context), 0);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    loop_over(&l);
    assert_int_equal(fl_plan_context_free(context), 0);
}

static void *come_and_go(void *arg)
{
    bool right = true;

    for (unsigned s = 0; s < 4 * STEPS; s++) {
        int rc = fl_plan_begin(context);
        loop_step(arg);
        right &= (rc == 0 && fl_plan_end(context) == 0) ||
                 (rc == -EBUSY && fl_plan_end(context) == -EINVAL);
    }
    loop_over(arg);
    thread_end();
    return right ? arg : NULL;
}

/* Each as fast as it can: whose step it is is left to chance. */
static void threads_come_and_go(void **state)
{
    static struct loop l[THREADS];
    pthread_t t[THREADS];

    (void)each(state);
    for (unsigned i = 0; i < THREADS; i++) {
        l[i] = (struct loop){.ask = usual, .n = N};
        assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &l[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *right = NULL;
        assert_int_equal(pthread_join(t[i], &right), 0);
        assert_non_null(right);
    }
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_that_asks_has_its_plan),
        cmocka_unit_test(steps_beside_others_are_not_planned),
        cmocka_unit_test(nor_are_those_that_take_turns),
        cmocka_unit_test(who_asks_is_planned_beside_others),
        cmocka_unit_test(whose_block_is_marked_is_planned),
        cmocka_unit_test(who_is_gone_is_beside_none),
        cmocka_unit_test(those_that_come_one_after_the_other_share_one),
        cmocka_unit_test(one_thread_at_a_time),
        cmocka_unit_test(a_look_refuses_no_step),
        cmocka_unit_test(threads_come_and_go),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
