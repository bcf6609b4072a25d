/* Several threads in one context at once: each has plans of its own there, and finds them again. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>

enum { N = 30, THREADS = 6, STEPS = 12 };

static struct fl_step_context *context;
static pthread_barrier_t all;
static const struct ask *usual; /* theirs all */

struct other {
    pthread_t thread;
    struct loop l;
    unsigned steps;
    bool waits; /* for all in the midst of each step */
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
        o->begun |= fl_plan_begin(context);
        o->again = fl_plan_begin(context);
        loop_step(&o->l);
        meet(o->waits);
        o->ended |= fl_plan_end(context);
    }
    o->same = loop_same(&o->l);
    o->planned = loop_planned(&o->l);
    loop_over(&o->l);
    thread_end();
    return NULL;
}

static void start(struct other *o, bool waits, unsigned steps)
{
    *o = (struct other){.l = {.ask = usual, .n = N}, .steps = steps, .waits = waits};
    assert_int_equal(pthread_create(&o->thread, NULL, run, o), 0);
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

/* As many as there are threads, and no more, however often they come. */
static void each_thread_has_its_plan_and_finds_it_again(void **state)
{
    static struct other o[THREADS];

    (void)each(state);
    assert_int_equal(pthread_barrier_init(&all, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        start(&o[i], true, STEPS);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        finish(&o[i]);
        assert_int_equal(o[i].planned, N);
        assert_int_equal(o[i].same, N);
    }
    assert_int_equal(fl_plan.ncontexts, THREADS);
    assert_int_equal(plan_stats().layouts, THREADS);
    assert_int_equal(plan_stats().missed_bytes, 0);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
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
    assert_int_equal(fl_plan.ncontexts, 1);
}

static void a_member_is_as_good_as_the_context(void **state)
{
    static struct other o;
    static struct loop l;
    struct fl_plan_layout p;
    struct fl_step_context *other;

    (void)each(state);
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    start(&o, true, 4);
    l = (struct loop){.ask = usual, .n = N};
    for (unsigned s = 0; s < 4; s++) {
        meet(true);
        assert_int_equal(fl_plan_begin(context), 0);
        loop_step(&l);
        if (s == 3) { /* what a thread asks of it is about its own */
            assert_int_equal(fl_plan_layout(context, &p, NULL, 0), 0);
            assert_true((uintptr_t)l.at[0] - p.base < p.limit);
            assert_int_equal(fl_plan_context_new(&other), 0);
            assert_int_equal(fl_plan_begin(other), 0);
            assert_int_equal(fl_plan_end(context), -EINVAL); /* not the innermost */
            assert_int_equal(fl_plan_begin(context), -EINVAL);
            assert_int_equal(fl_plan_end(other), 0);
        }
        assert_int_equal(fl_plan_context_free(context), -EBUSY);
        meet(true);
        assert_int_equal(fl_plan_end(context), 0);
    }
    finish(&o);
    loop_over(&l);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(fl_plan_context_free(context), -EINVAL);
    assert_int_equal(fl_plan_begin(context), -EINVAL);
}

/* Each as fast as it can: who gets which is left to chance. */
static void threads_come_and_go(void **state)
{
    static struct other o[THREADS];

    (void)each(state);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < THREADS; i++) {
            start(&o[i], false, STEPS);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            finish(&o[i]);
        }
    }
    assert_true(fl_plan.ncontexts <= THREADS);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_has_its_plan_and_finds_it_again),
        cmocka_unit_test(those_that_come_one_after_the_other_share_one),
        cmocka_unit_test(a_member_is_as_good_as_the_context),
        cmocka_unit_test(threads_come_and_go),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
