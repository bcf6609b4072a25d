/* Each way out of FL_SERVE, as src/plan/README.md has them: what becomes of the plan, and what its
 * context does then. */
#include "unit/plan_fixture.h"

#include <string.h>

enum { N = USUAL };

static int served(void **state)
{
    (void)usual_each(state);
    loop_declared(&usual, NULL, 12);
    assert_planned(&usual);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
    loop_over(&usual);
    return 0;
}

/* Steps of whose requests one in so many has a size that no step had before, or all of them; and
 * then no two have as many requests, so that no plan is made of them. */
static void unknown_steps(unsigned steps, unsigned one_in)
{
    static unsigned ever;
    struct ask ask[N];
    struct loop l = {.ask = ask, .n = N};

    memcpy(ask, usual.ask, sizeof ask);
    for (unsigned s = 0; s < steps; s++) {
        for (unsigned i = 0; i < N; i += one_in) {
            ask[i].n = MIB(2) + ++ever * KIB(4);
        }
        l.n = one_in == 1 ? N - 3 * s : N;
        loop_declared(&l, NULL, 1);
        loop_over(&l);
    }
}

/* As if so many huge pages had been moved for each step. */
static void moving_steps(unsigned steps, size_t pages)
{
    for (unsigned s = 0; s < steps; s++) {
        assert_int_equal(fl_plan_begin(NULL), 0);
        loop_step(&usual);
        fl_plan_default->serve.arena->moved += pages;
        assert_int_equal(fl_plan_end(NULL), 0);
    }
}

/* Its plan is forgotten, or not; nothing of it is held. */
static void ended(const struct fl_step_context *c, enum fl_plan_state state, bool known)
{
    assert_int_equal(c->state, state);
    assert_null(c->serve.layout);
    assert_int_equal(fl_context_knows_any(c), known);
    assert_int_equal(plan_stats().free_bytes, 0);
    assert_sound();
}

static void bad(void **state)
{
    (void)state;
    unknown_steps(2, 3);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
    unknown_steps(1, 3);
    ended(fl_plan_default, FL_REST, false);
    assert_int_equal(plan_stats().drops, 1);
    uint64_t first = fl_plan_default->rest.steps;
    loop_declared(&usual, NULL, FL_LONG_SERVICE + 24);
    assert_planned(&usual);
    unknown_steps(3, 3);
    ended(fl_plan_default, FL_REST, false);
    assert_true(first != 0 && fl_plan_default->rest.steps == 2 * first);
}

static void mismatched(void **state)
{
    (void)state;
    unknown_steps(7, 1);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
    assert_int_equal(fl_plan_default->serve.mismatched_steps, 7);
    unknown_steps(1, 1);
    assert_true(fl_plan_default->state == FL_LEARN || fl_plan_default->state == FL_PACK);
    assert_true(fl_context_knows_any(fl_plan_default));
    assert_int_equal(plan_stats().drops, 1);
    assert_int_equal(plan_stats().free_bytes, 0);
    loop_declared(&usual, NULL, 2); /* it was another phase's */
    assert_planned(&usual);
    assert_sound();
}

static void without_memory(void **state)
{
    (void)state;
    fl_region_release(&region);
    fake.charge_max = fake_usable();
    assert_int_equal(fl_plan_begin(NULL), 0);
    ended(fl_plan_default, FL_REST, true);
    assert_int_equal(plan_stats().drops, 0);
    fake.charge_max = SIZE_MAX;
    assert_int_equal(fl_plan_end(NULL), 0);
    loop_declared(&usual, NULL, 20);
    assert_planned(&usual);
}

static int rest_without_what_is_held(void)
{
    plan_in_child();
    bool as_said = fl_plan_default->state == FL_REST && fl_plan_default->serve.layout == NULL &&
                   fl_context_knows_any(fl_plan_default);
    loop_declared(&usual, NULL, 20);
    return as_said && loop_planned(&usual) == N ? 0 : 2;
}

static void forked(void **state)
{
    struct fl_plan_layout p;

    (void)state;
    assert_int_equal(fl_plan_hold(NULL, &p), 0);
    assert_int_equal(plan_fork(rest_without_what_is_held), 0);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
}

/* It would hold what it asks for beside the places that wait. */
static void another_step_that_began_alike(void **state)
{
    struct ask ask[N];
    struct loop l = {.ask = ask, .n = N};

    (void)state;
    memcpy(ask, usual.ask, sizeof ask);
    for (unsigned i = 4; i < 20; i++) {
        ask[i].n += MIB(3) + i * KIB(64);
    }
    assert_int_equal(fl_plan_begin(NULL), 0);
    loop_step(&l);
    ended(fl_plan_default, FL_REST, false);
    assert_int_equal(fl_plan_end(NULL), 0);
    loop_over(&l);
}

/* Two of eight; and what moves into a new arena is not held against its first step. */
static void memory_moves(void **state)
{
    enum { MUCH = 100, FEW = 4 };

    (void)state;
    moving_steps(8, FEW);
    moving_steps(1, MUCH);
    moving_steps(7, 0);
    moving_steps(1, MUCH);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
    loop_over(&usual);
    fl_region_release(&region); /* the arena, too */
    moving_steps(1, MUCH);
    assert_int_equal(fl_plan_default->state, FL_SERVE);
    moving_steps(1, MUCH);
    loop_over(&usual);
    ended(fl_plan_default, FL_REST, false);
    assert_int_equal(fl_plan_default->rest.steps, FL_LONG_SERVICE);
    assert_int_equal(fl_plan_default->rest.doublings, 4);
}

/* Nothing waits for what is asked after all that was expected. */
static void more_at_the_end_ends_no_plan(void **state)
{
    (void)state;
    void *more[6];
    for (unsigned s = 0; s < 60; s++) {
        assert_int_equal(fl_plan_begin(NULL), 0);
        loop_step(&usual);
        for (unsigned i = 0; i < 6 && s % 10 == 9; i++) {
            more[i] = fl_malloc_large(MIB(3));
        }
        for (unsigned i = 0; i < 6 && s % 10 == 9; i++) {
            fl_free_ours(more[i]);
        }
        assert_int_equal(fl_plan_end(NULL), 0);
    }
    assert_int_equal(plan_stats().drops, 0);
    assert_int_equal(plan_stats().layouts, 1);
    loop_over(&usual);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, served)
    const struct CMUnitTest tests[] = {
        T(bad),
        T(memory_moves),
        T(another_step_that_began_alike),
        T(more_at_the_end_ends_no_plan),
        T(mismatched),
        T(without_memory),
        T(forked),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
