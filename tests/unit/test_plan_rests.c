/* Rests for what all threads were watched in vain, and what ends them. */
#include "unit/plan_fixture.h"

#include <pthread.h>

enum { N = 30, FIRST_WATCH = 16384 };

static struct loop usual;

static int each(void **state)
{
    (void)state;
    plan_begin(&(struct fl_plan_config){.on = true, .detect = true});
    usual = (struct loop){.ask = loop_usual(N), .n = N};
    return 0;
}

static void *come_and_go(void *arg)
{
    (void)arg;
    loop_until_noticed();
    loop_replace(FIRST_WATCH + 1);
    thread_end();
    return NULL;
}

static void as_another(void *(*run)(void *), void *arg)
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, run, arg), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
}

struct begun {
    bool watched;
    uint64_t rest;
};

static void *begin(void *arg)
{
    struct begun *b = arg;

    loop_until_noticed();
    *b = (struct begun){fl_context_is_watched(fl_plan_mine), fl_plan_mine->watch.rest};
    thread_end();
    return NULL;
}

/* Threads that come and go would each be watched from their beginning. */
static void where_none_has_steps_a_thread_begins_with_a_rest(void **state)
{
    struct begun b;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        as_another(come_and_go, NULL);
    }
    as_another(begin, &b);
    assert_true(b.watched);
    as_another(come_and_go, NULL);
    as_another(begin, &b);
    assert_false(b.watched);
    assert_true(b.rest > 3 * FIRST_WATCH && b.rest <= 4 * FIRST_WATCH);
}

static void *be_watched_for_long(void *arg)
{
    loop_until_noticed();
    loop_replace(FIRST_WATCH / 2);
    thread_end();
    return arg;
}

/* So they would if each ended before its watch does. */
static void a_watch_that_ends_with_its_thread_counts(void **state)
{
    struct begun b;
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        as_another(be_watched_for_long, NULL);
    }
    as_another(begin, &b);
    assert_false(b.watched);
}

static void rests_are_as_long_as_all_have_been_watched(void **state)
{
    (void)state;
    loop_until_noticed();
    for (unsigned i = 0; i < 15; i++) {
        fl_plan.in_vain += FIRST_WATCH; /* by so many threads at the same time */
    }
    loop_replace(FIRST_WATCH);
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_mine->watch.rest > 15 * FIRST_WATCH);
}

static pthread_barrier_t rested;

static void *rest_meanwhile(void *arg)
{
    struct begun *b = arg;

    loop_until_noticed();
    b[0] = (struct begun){fl_context_is_watched(fl_plan_mine), fl_plan_mine->watch.rest};
    pthread_barrier_wait(&rested);
    pthread_barrier_wait(&rested);
    loop_replace(96); /* what the cache serves is counted by so many */
    b[1] = (struct begun){fl_context_is_watched(fl_plan_mine), fl_plan_mine->watch.rest};
    thread_end();
    return NULL;
}

/* Else nothing would ever be found where all threads end before their rest does. */
static void one_of_many_threads_is_watched_at_once(void **state)
{
    unsigned watched = 0;
    (void)state;
    fl_plan.in_vain = 4 * FIRST_WATCH;
    for (unsigned i = 0; i < 34; i++) {
        struct begun b;
        as_another(begin, &b);
        watched += b.watched;
    }
    assert_int_equal(watched, 2);
}

/* Nor does a thread whose plans serve leave others to rest. */
static void a_served_step_ends_rests_too(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        loop_step(&usual);
    }
    assert_int_equal(loop_planned(&usual), N);
    fl_plan.in_vain = 4 * FIRST_WATCH;
    loop_step(&usual);
    loop_step(&usual);
    assert_int_equal(fl_plan.in_vain, 0);
    loop_over(&usual);
}

/* Whose steps are declared is not watched. */
static void declared_steps_say_nothing_of_others(void **state)
{
    struct fl_step_context *c;
    (void)state;
    assert_int_equal(fl_plan_context_new(&c), 0);
    fl_plan.in_vain = 4 * FIRST_WATCH;
    loop_declared(&usual, c, 20);
    assert_int_equal(loop_planned(&usual), N);
    assert_int_equal(fl_plan.in_vain, 4 * FIRST_WATCH);
    loop_over(&usual);
}

static void realloc_counts_as_a_request(void **state)
{
    (void)state;
    loop_until_noticed();
    loop_replace(FIRST_WATCH + 100);
    uint64_t rest = fl_plan_mine->watch.rest;
    assert_true(rest > 100);
    char *p = fl_malloc_large(MIB(4)), *wall = p;
    while (wall <= p) { /* it has to move */
        wall = fl_malloc_large(MIB(4));
    }
    fl_plan_mine->watch.rest = 100;
    for (unsigned i = 0; i < 8 && fl_plan_mine->watch.rest == 100; i++) {
        p = fl_realloc_any(p, MIB(8) << i);
    }
    assert_true(fl_plan_mine->watch.rest < 100);
    fl_free_ours(p);
    fl_free_ours(wall);
}

/* What a thread was watched in vain itself it rests for, whatever others find. */
static void its_own_rest_stays_its_own(void **state)
{
    (void)state;
    loop_until_noticed();
    fl_plan.in_vain = 15 * FIRST_WATCH;
    loop_replace(FIRST_WATCH);
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_mine->watch.rest > 15 * FIRST_WATCH);
    fl_watch_found();
    assert_true(fl_plan_mine->watch.rest > FIRST_WATCH / 2);
    assert_true(fl_plan_mine->watch.rest <= FIRST_WATCH);
    fl_plan.in_vain = 1;
    fl_watch_found();
    assert_true(fl_plan_mine->watch.rest > FIRST_WATCH / 2);
}

static void one_step_ends_all_rests_that_came_of_none(void **state)
{
    struct begun b[2];
    pthread_t t;
    (void)state;
    loop_until_noticed();
    fl_plan.in_vain = 4 * FIRST_WATCH;
    assert_int_equal(pthread_barrier_init(&rested, NULL, 2), 0);
    assert_int_equal(pthread_create(&t, NULL, rest_meanwhile, b), 0);
    pthread_barrier_wait(&rested);
    for (unsigned i = 0; i < 20; i++) {
        loop_step(&usual);
    }
    pthread_barrier_wait(&rested);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_false(b[0].watched);
    assert_true(b[1].watched);
    assert_true(fl_plan.in_vain <= 96); /* what that one has been watched for since */
    loop_over(&usual);
    pthread_barrier_destroy(&rested);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, each)
    const struct CMUnitTest tests[] = {
        T(where_none_has_steps_a_thread_begins_with_a_rest),
        T(a_watch_that_ends_with_its_thread_counts),
        T(rests_are_as_long_as_all_have_been_watched),
        T(one_of_many_threads_is_watched_at_once),
        T(a_served_step_ends_rests_too),
        T(its_own_rest_stays_its_own),
        T(declared_steps_say_nothing_of_others),
        T(realloc_counts_as_a_request),
        T(one_step_ends_all_rests_that_came_of_none),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
