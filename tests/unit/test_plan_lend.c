/* What is idle in an arena is free memory: other requests, and other arenas, have it before the
 * kernel is asked for more. */
#include "unit/plan_fixture.h"

#include <string.h>

enum { N = 40 };

static struct loop l, other;
static struct ask asks[N];

/* Two blocks at a time, of 8 MiB each; or of 4 to 8. */
static void begin_with(size_t least)
{
    plan_begin(NULL);
    for (unsigned i = 0; i < N; i++) {
        asks[i] = (struct ask){fl_min(least + i % 5 * MIB(1), MIB(8)), i + 2 <= N ? 2 : 1};
    }
    l = (struct loop){.ask = asks, .n = N};
}

static int begin(void **state)
{
    (void)state;
    begin_with(MIB(8));
    return 0;
}

/* A plan of long blocks serves. */
static int serve_long_blocks(void **state)
{
    (void)state;
    begin_with(MIB(4));
    loop_declared(&l, NULL, 20);
    assert_planned(&l);
    return 0;
}

static bool moves(void)
{
    return region.pages.move.method != FL_METHOD_NONE;
}

/* Beside what it is without plans: two huge pages may be held in any case. */
static size_t most_more(void)
{
    return moves() ? MIB(4) : MIB(16);
}

/* Before the first request of a step, when nothing else is live: as much as all of its blocks. It
 * is aligned to more than a granule, so no plan has it. */
static void aligned(unsigned i)
{
    if (i == 0) {
        char *p = fl_memalign_large(MIB(2), MIB(16));
        assert_non_null(p);
        memset(p, 0x5a, MIB(16));
        fl_free_ours(p);
    }
}

static void what_is_not_planned_takes_what_is_idle(void **state)
{
    (void)state;
    l.also = aligned;
    loop_declared(&l, NULL, 3);
    size_t without = region.held.populated;
    loop_declared(&l, NULL, 40);
    assert_planned(&l);
    assert_int_equal(plan_stats().drops, 0);
    assert_true(region.held.populated <= without + most_more());
    loop_over(&l);
}

static void an_arena_takes_what_is_idle_in_another(void **state)
{
    (void)state;
    struct fl_step_context *c = NULL;
    other = l;
    assert_int_equal(fl_plan_context_new(&c), 0);
    loop_declared(&l, NULL, 3);
    loop_declared(&other, c, 3);
    size_t without = region.held.populated;
    for (unsigned i = 0; i < 20; i++) {
        loop_declared(&l, NULL, 1);
        loop_declared(&other, c, 1);
    }
    assert_planned(&l);
    assert_planned(&other);
    assert_true(region.held.populated <= without + most_more());
    loop_over(&l);
    loop_over(&other);
}

static size_t lent;

/* Other arenas take all idle pages of this one. */
static void hand_round(unsigned i)
{
    struct fl_arena *a = fl_plan_mine != NULL ? fl_plan_mine->serve.arena : NULL;

    lent += i == 0 && a != NULL ? fl_plan_lend(a->inner.outer->zone, SIZE_MAX / 2) : 0;
}

/* It costs moves; addresses repeat, at the peak that there is without. */
static void a_plan_whose_pages_are_handed_round_goes_on(void **state)
{
    (void)state;
    l.also = hand_round;
    loop_declared(&l, NULL, 20);
    assert_true(lent != 0 || !moves());
    assert_int_equal(plan_stats().drops, 0);
    assert_repeated(&l);
    loop_over(&l);
}

static void hand_all_round(unsigned i)
{
    (void)i;
    hand_round(0);
}

/* Each request's pages have gone elsewhere: to serve it where it was costs more than it gives. */
static void a_plan_whose_pages_never_stay_is_given_up(void **state)
{
    (void)state;
    l.also = hand_all_round;
    loop_declared(&l, NULL, 8);
    assert_int_equal(plan_stats().drops, moves());
    assert_int_equal(fl_plan_default->state, moves() ? FL_REST : FL_SERVE);
    loop_over(&l);
    assert_sound();
}

static void give_up(unsigned i)
{
    (void)i;
    (void)fl_plan_release();
}

/* As where a step takes longer than idle memory is kept, or the program trims in each: new pages
 * come, as they would without a plan, and none moves. */
static void what_goes_to_the_kernel_is_not_held_against_a_plan(void **state)
{
    (void)state;
    uint64_t moved = region.stats.move_bytes;
    l.freed = give_up;
    loop_declared(&l, NULL, 20);
    assert_int_equal(region.stats.move_bytes, moved);
    assert_int_equal(plan_stats().drops, 0);
    assert_planned(&l);
    loop_over(&l);
}

/* All that is idle leaves the arena when its plan ends, to the region or to the kernel, and when
 * memory is short: that it comes again is not held against the next plan. */
static void what_left_and_was_not_lent_does_not_count_as_moved(void **state)
{
    (void)state;
    open_at(MIB(16));
    struct fl_extent *stays = block(0, MIB(8), MIB(8));
    for (int i = 0; i < 4; i++) {
        give_block(block(MIB(8) / FL_GRANULE, MIB(8), MIB(8)));
        size_t left = i % 2 == 0 ? fl_arena_trim(&arena) : fl_arena_give_up(&arena);
        assert_int_equal(left, MIB(8));
    }
    assert_int_equal(arena.moved, 0);
    give_block(stays);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_not_planned_takes_what_is_idle, begin),
        cmocka_unit_test_setup(an_arena_takes_what_is_idle_in_another, begin),
        cmocka_unit_test_setup(a_plan_whose_pages_are_handed_round_goes_on, serve_long_blocks),
        cmocka_unit_test_setup(a_plan_whose_pages_never_stay_is_given_up, serve_long_blocks),
        cmocka_unit_test_setup(what_goes_to_the_kernel_is_not_held_against_a_plan,
                               serve_long_blocks),
        cmocka_unit_test(what_left_and_was_not_lent_does_not_count_as_moved),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
