/* What others do amid an arena's own changes, and a handler amid its thread's: in the end what is
 * there is known. */
#include "unit/plan_fixture.h"

#include "await.h"

#include <pthread.h>

static struct fl_step_context owner;

/* Others than its owner, too, where memory is there: whatever else of the arena is not. */
static void who_needs_no_memory_may_grow(void **state)
{
    (void)state;
    open_at(MIB(8));
    struct fl_extent *a = block(0, KIB(64), MIB(4));
    assert_true(arena.missing != 0);
    assert_true(fl_plan_resize(a, MIB(2)));
    assert_false(fl_plan_resize(a, MIB(2) + KIB(4)));
    assert_int_equal(a->len, MIB(2));
    give_block(a);
    assert_true(fl_bitmap_is_clear(&arena.claimed));
    assert_sound();
}

static struct fl_extent *edge;
static unsigned refused, stretched;

static void stretch(struct fl_range r)
{
    (void)r;
    if (fl_plan_resize(edge, KIB(128))) {
        stretched++;
    } else {
        refused++;
    }
}

/* What is half brought is not there yet for a handler, whatever it has interrupted. */
static void nothing_grows_into_what_is_on_its_way(void **state)
{
    (void)state;
    open_at(MIB(4));
    fl_plan_mine = &owner;
    owner.serve.arena = &arena;
    edge = block(31, KIB(64), KIB(128));
    (void)fl_region_purge(&region, 0);
    owner.inside = true; /* as fl_plan_take has it */
    fake.on_populate = stretch;
    struct fl_extent *a = block(40, KIB(64), KIB(64));
    fake.on_populate = NULL;
    owner.inside = false;
    assert_true(refused != 0 && stretched == 0);
    assert_true(fl_plan_resize(edge, KIB(128)));
    give_block(edge);
    give_block(a);
    fl_plan_mine = NULL;
    assert_sound();
}

/* It has read its turn, and a handler's requests end the plan before it looks there. */
static void a_handler_may_end_the_plan_before_a_request(void **state)
{
    struct loop l = {.ask = loop_usual(30), .n = 30};
    (void)state;
    plan_begin(NULL);
    loop_declared(&l, NULL, 5);
    assert_int_equal(loop_planned(&l), 30);
    assert_int_equal(fl_plan_begin(NULL), 0);
    void *first = fl_malloc_large(l.ask[0].n);
    struct fl_cursor *t = fl_plan_cursor;
    fl_context_end_plan(fl_plan_mine, FL_END_MISMATCHED);
    assert_null(fl_plan_take_next(t, l.ask[1].n));
    fl_free_ours(first);
    assert_int_equal(fl_plan_end(NULL), 0);
    loop_over(&l);
    assert_sound();
}

static _Atomic bool rose;

static void *raise_it(void *arg)
{
    (void)arg;
    assert_true(fl_arena_raise(&arena, MIB(6)));
    rose = true;
    return NULL;
}

/* Its owner counts what is missing, and another takes out what is idle: not both at once. */
static void it_does_not_rise_while_it_is_trimmed(void **state)
{
    pthread_t t;
    (void)state;
    open_at(MIB(4));
    give_block(block(0, MIB(2), MIB(2)));
    fl_plan_lock(); /* as fl_arena_trim has it */
    assert_int_equal(pthread_create(&t, NULL, raise_it, NULL), 0);
    FL_AWAIT(fake.waited_for == &fl_plan.lock.word || rose);
    assert_false(rose);
    assert_int_equal(arena.limit, MIB(4));
    fl_plan_unlock();
    pthread_join(t, NULL);
    assert_true(rose);
    assert_int_equal(arena.missing, 2);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_needs_no_memory_may_grow),
        cmocka_unit_test(nothing_grows_into_what_is_on_its_way),
        cmocka_unit_test(a_handler_may_end_the_plan_before_a_request),
        cmocka_unit_test(it_does_not_rise_while_it_is_trimmed),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
