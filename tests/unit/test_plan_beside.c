/* What happens beside steps: memory is short, handlers run. */
#include "region/state/lock.h"
#include "unit/plan_fixture.h"

#include <string.h>

enum { N = USUAL };

static uint64_t arena_bytes(void)
{
    return plan_stats().arena_bytes;
}

/* The names and the strict comparisons are DeepRec's. */
static void when_it_learns_may_be_said(void **state)
{
    (void)state;
    usual_begin(&(struct fl_plan_config){.on = true, .start = 10, .stable = 5, .max = 100});
    loop_declared(&usual, NULL, 10);
    /* The first has nothing before it; six repeat, more than five; what was packed then is seen a
     * step later. */
    for (unsigned i = 0; i < 8; i++) {
        loop_declared(&usual, NULL, 1);
        assert_int_equal(plan_stats().layouts, i == 7 ? 1 : 0);
    }
    loop_declared(&usual, NULL, 1);
    assert_true(loop_planned(&usual) != 0);
    loop_over(&usual);
}

static void what_varies_is_planned_in_the_end(void **state)
{
    (void)state;
    usual_begin(&(struct fl_plan_config){.on = true, .max = 6});
    for (unsigned i = 0; i < 10 && plan_stats().layouts == 0; i++) {
        usual.scale = 10 + i % 5;
        loop_declared(&usual, NULL, 1);
        assert_true(plan_stats().layouts == 0 || i == 7);
    }
    assert_int_equal(plan_stats().layouts, 1);
    loop_over(&usual);
}

static void an_unused_arena_goes_back_and_comes_again(void **state)
{
    (void)state;
    usual_learn();
    for (int i = 0; i < 6; i++) { /* in use: it stays, and is looked at again */
        assert_true(fl_plan_age(&region) != UINT64_MAX);
        loop_declared(&usual, NULL, 1);
    }
    assert_int_equal(loop_same(&usual), N);
    for (int i = 0; i < 20 && arena_bytes() != 0; i++) {
        (void)fl_plan_age(&region);
    }
    assert_int_equal(arena_bytes(), 0);
    assert_true(fl_plan_age(&region) == UINT64_MAX);
    assert_settled();
    uint64_t misses = plan_stats().misses;
    region.wants_worker = false;
    loop_declared(&usual, NULL, 1);
    assert_true(region.wants_worker);
    assert_planned(&usual);
    assert_int_equal(plan_stats().misses, misses);
    assert_int_equal(plan_stats().layouts, 1);
}

/* What the last requests got is in memory; now the rest goes. */
static void look_and_release(unsigned i)
{
    const struct fl_cursor *t = &fl_plan_mine->serve.cursor;

    for (unsigned k = 0; k < i; k++) {
        struct fl_extent *e = extent_of(usual.live[usual.step % 2][k]);
        if (e != NULL && e->content == FL_CONTENT_INNER) {
            struct fl_bitmap absent = {t->absent, SIZE_MAX};
            assert_true(fl_bitmap_are_free(&absent, (size_t)(e - t->block), fl_granules(e->len)));
        }
    }
    if (i % 3 == 2) {
        assert_true(fl_plan_cursor == t); /* the shortest way */
        fl_plan_release();
    }
}

static void amid_a_step_memory_may_go(void **state)
{
    (void)state;
    usual_learn();
    usual.also = look_and_release;
    for (int i = 0; i < 4; i++) {
        loop_declared(&usual, NULL, 1);
        assert_repeated(&usual);
    }
    usual.also = NULL;
    assert_sound();
}

/* A request that a handler makes amid another one that comes as planned. */
static void amid_a_planned_request_a_handler_has_no_plan(void **state)
{
    (void)state;
    usual_learn();
    assert_int_equal(fl_plan_begin(NULL), 0);
    void *first = fl_malloc_large(usual.ask[0].n);
    assert_ptr_equal(first, usual.at[0]);
    struct fl_cursor *t = fl_plan_cursor;
    const struct fl_plan_entry *next = t->next;
    fl_plan_cursor = NULL; /* as it is meanwhile */
    void *p = fl_malloc_large(usual.ask[1].n);
    assert_int_not_equal(extent_of(p)->content, FL_CONTENT_INNER);
    fl_free_ours(p);
    assert_null(fl_plan_cursor);
    assert_ptr_equal(t->next, next);
    fl_plan_cursor = t;
    fl_free_ours(first);
    assert_int_equal(fl_plan_end(NULL), 0);
    assert_sound();
}

/* It has read its turn, and a handler's requests end the plan before it looks there. */
static void a_handler_may_end_the_plan_before_a_request(void **state)
{
    (void)state;
    usual_learn();
    assert_int_equal(fl_plan_begin(NULL), 0);
    void *first = fl_malloc_large(usual.ask[0].n);
    struct fl_cursor *t = fl_plan_cursor;
    fl_context_end_plan(fl_plan_mine, FL_END_MISMATCHED);
    assert_null(fl_plan_take_next(t, usual.ask[1].n));
    fl_free_ours(first);
    assert_int_equal(fl_plan_end(NULL), 0);
    loop_over(&usual);
    assert_sound();
}

static unsigned handled;

/* As a signal handler does that allocates. */
static void handler(struct fl_range r)
{
    (void)r;
    assert_true(!fl_plan_mine->inside || fl_plan_cursor != &fl_plan_mine->serve.cursor);
    unsigned char *p = fl_malloc_large(KIB(300)), *q = fl_calloc_large(KIB(200));
    assert_true(p != NULL && q != NULL && p != q);
    memset(p, 1, KIB(300));
    p = fl_realloc_any(p, KIB(500));
    assert_int_equal(p[KIB(300) - 1], 1);
    struct fl_extent *e = extent_of(p);
    assert_true(e == NULL || e->content != FL_CONTENT_INNER || !fl_plan_mine->inside);
    void *both[] = {p, q};
    for (int i = 0; i < 2; i++) {
        if (fl_is_ours(both[i])) {
            fl_free_ours(both[i]);
        } else {
            fl_route.next.free(both[i]);
        }
    }
    handled++;
}

static void handle_in_the_lock(unsigned i)
{
    (void)i;
    fl_region_lock(&region);
    handler((struct fl_range){0, 0});
    fl_region_unlock(&region);
}

static void handlers_may_allocate_at_any_time(void **state)
{
    (void)state;
    usual_learn();
    fl_plan_release();
    (void)fl_region_purge(&region, 0);
    fake.on_populate = handler; /* amid the request that brings the arena's memory */
    loop_declared(&usual, NULL, 1);
    fake.on_populate = NULL;
    assert_true(handled != 0);
    usual.also = handle_in_the_lock;
    loop_declared(&usual, NULL, 4);
    usual.also = NULL;
    loop_declared(&usual, NULL, 2);
    assert_repeated(&usual);
    assert_sound();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, usual_each)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_it_learns_may_be_said),
        cmocka_unit_test(what_varies_is_planned_in_the_end),
        T(an_unused_arena_goes_back_and_comes_again),
        T(amid_a_step_memory_may_go),
        T(amid_a_planned_request_a_handler_has_no_plan),
        T(a_handler_may_end_the_plan_before_a_request),
        T(handlers_may_allocate_at_any_time),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
