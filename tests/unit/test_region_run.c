/* Requests that are served from a run of neighbours, populated and EMPTY in turn: which run, and
 * what it costs. */
#include "unit/region_case.h"

#include <string.h>

enum { PIECE = 2 << 20, MOST = 13 };

static struct fl_extent *guard, *far;

/* From the first address on `n` FREE extents of a huge page each, in turn EMPTY and populated (full
 * of 0xee); EMPTY first or not. A guard of `behind` bytes follows, and 10 MiB full of 0xdd,
 * live. */
static uintptr_t make_run(size_t n, bool empty_first, size_t behind)
{
    struct fl_extent *e[MOST] = {NULL};

    for (size_t i = 0; i < n; i++) {
        e[i] = take(PIECE);
        fill(e[i], 0xee);
    }
    guard = take_guard(behind);
    far = take(MIB(10));
    fill(far, 0xdd);
    assert_non_null(take(MIB(2)));
    uintptr_t base = e[0]->base;
    for (size_t i = empty_first ? 0 : 1; i < n; i += 2) {
        give(e[i]);
    }
    size_t gone = (empty_first ? (n + 1) / 2 : n / 2) * PIECE;
    assert_int_equal(fl_region_purge(&region, 0), gone);
    for (size_t i = empty_first ? 1 : 0; i < n; i += 2) {
        give(e[i]);
    }
    fake_forget();
    assert_sound();
    return base;
}

TEST_FROM(NULL, nine_neighbours_serve_one_request)
{
    for (int empty_first = 0; empty_first < 2; empty_first++) {
        region_begin(NULL);
        uintptr_t base = make_run(9, empty_first, MIB(32));
        size_t empty = (empty_first ? 5 : 4) * (size_t)PIECE, populated = region.held.populated;
        struct fl_extent *e = take_zeroed(9 * (size_t)PIECE);
        assert_true(e->base == base && is_filled(e, 0));
        assert_int_equal(region.held.populated, populated + empty);
        assert_int_equal(fake_bytes(FAKE_POPULATE), empty); /* what is there stays there */
        assert_guarded();
        give(e);
        assert_guarded();
        assert_int_equal(fl_region_purge(&region, 0), 9 * (size_t)PIECE); /* one again */
        assert_guarded();
    }
}

TEST(a_run_of_more_is_not_looked_through)
{
    uintptr_t base = make_run(12, false, MIB(32));
    struct fl_extent *e = take(10 * (size_t)PIECE);
    assert_true(e->base > guard->base);
    assert_guarded();
    struct fl_extent *f = take(9 * (size_t)PIECE);
    assert_true(f->base == base);
}

TEST(a_run_is_entered_where_it_costs_least)
{
    uintptr_t base = make_run(5, true, MIB(32)); /* EMPTY, populated, EMPTY, populated, EMPTY */
    struct fl_extent *e = take(3 * (size_t)PIECE);
    assert_true(e->base == base + PIECE); /* one to populate, not two */
    assert_int_equal(fake_bytes(FAKE_POPULATE), PIECE);
}

TEST(an_aligned_request_may_begin_within_a_run)
{
    uintptr_t base = make_run(9, false, MIB(32));
    uintptr_t aligned = fl_align_up(base, MIB(4));
    struct fl_extent *e = take_aligned(5 * (size_t)PIECE, MIB(4));
    assert_true(e->base == aligned);
    fill(e, 1);
    assert_guarded();
    give(e);
}

/* An EMPTY piece of 6 MiB low in the window and, higher, one of 4 MiB with 2 MiB of free memory
 * before it. */
static uintptr_t low_hole_and_high_run(bool more_free, uintptr_t *out_high)
{
    struct fl_extent *low = take_walled(MIB(6)), *x = take(MIB(2)), *y = take(MIB(4));
    assert_non_null(take(MIB(40)));
    struct fl_extent *z = take(MIB(5)), *w = take(MIB(3)), *v = take(MIB(5));
    uintptr_t base = low->base;

    (void)take_guard(MIB(8));
    *out_high = x->base;
    give(low);
    give(y);
    assert_int_equal(fl_region_purge(&region, 0), MIB(10) + MIB(1)); /* and a piece at the end */
    give(x);
    if (more_free) {
        give(z);
        give(v);
    }
    fake_forget();
    assert_non_null(w);
    return base;
}

TEST(the_cheapest_run_while_more_may_be_held)
{
    uintptr_t high;
    uintptr_t low = low_hole_and_high_run(false, &high);
    struct fl_extent *e = take(MIB(6));
    assert_true(e->base == high && e->base != low);
    assert_int_equal(fake_bytes(FAKE_POPULATE), MIB(4));
}

TEST(the_lowest_run_where_pages_have_to_move)
{
    uintptr_t high;
    uintptr_t low = low_hole_and_high_run(true, &high);
    size_t populated = region.held.populated;
    region.held.in_use_peak = region.held.in_use; /* nothing more may be held */
    struct fl_extent *e = take(MIB(6));
    assert_true(e->base == low);
    assert_int_equal(stats().move_bytes, MIB(6)); /* x, and 4 of the first 5 */
    assert_int_equal(region.held.populated, populated);
}

TEST_FROM(NULL, free_pages_elsewhere_fill_each_hole_of_a_run)
{
    for (int empty_first = 0; empty_first < 2; empty_first++) {
        region_begin(NULL);
        uintptr_t base = make_run(9, empty_first, MIB(8));
        give(far);
        size_t populated = region.held.populated, empty = (empty_first ? 5 : 4) * (size_t)PIECE;
        region.held.in_use_peak = 0;
        fake_forget();
        struct fl_extent *e = take_zeroed(9 * (size_t)PIECE);
        assert_true(e->base == base && is_filled(e, 0));
        assert_int_equal(fake_bytes(FAKE_MOVE), empty);
        assert_int_equal(fake.count[FAKE_MOVE_BEGIN], empty / PIECE); /* one for each hole */
        assert_int_equal(region.held.populated, populated);
        assert_null(in_window(FAKE_POPULATE, 0));
        assert_guarded();
    }
}

/* Each populated piece dirty at both ends and known to be zero between: the most parts that one
 * calloc can clear. */
TEST_FROM(NULL, calloc_of_a_run_with_zeroed_parts_clears_the_others)
{
    for (int empty_first = 0; empty_first < 2; empty_first++) {
        region_begin(NULL);
        uintptr_t base = make_run(9, empty_first, MIB(8));
        give(far);
        for (uintptr_t at = base + (empty_first ? PIECE : 0); at < base + 9 * (size_t)PIECE;
             at += 2 * (size_t)PIECE) {
            struct fl_extent *e = fl_extent_free_at(&region.space, at, 0);
            e->zeroed = (struct fl_range){at + KIB(512), MIB(1)};
            memset((void *)e->zeroed.base, 0, MIB(1));
        }
        region.held.in_use_peak = 0;
        struct fl_extent *e = take_zeroed(9 * (size_t)PIECE);
        assert_true(e->base == base && is_filled(e, 0));
        assert_guarded();
    }
}

TEST_FROM(NULL, a_hole_that_others_use_is_left_to_them)
{
    for (unsigned nth = 1; nth <= 4; nth++) {
        region_begin(NULL);
        if (is_reserved()) { /* nothing can be mapped there */
            return;
        }
        uintptr_t base = make_run(9, false, MIB(32));
        uintptr_t refused = base + (2 * nth - 1) * (size_t)PIECE;
        struct fl_range theirs = {refused + KIB(64), KIB(4)};
        assert_int_equal(fl_sys_linux.map_at(theirs), 0);
        *(volatile char *)theirs.base = 7;
        struct fl_extent *e = take_zeroed(9 * (size_t)PIECE);
        assert_true(e->base > guard->base); /* elsewhere */
        assert_true(is_filled(e, 0));
        assert_int_equal(*(volatile char *)theirs.base, 7);
        assert_int_equal(fl_extent_at(&region.space, refused)->state, FL_EXTENT_FOREIGN);
        assert_guarded();
        struct fl_extent *f =
            take((2 * nth - 1) * (size_t)PIECE); /* what lies before is still good */
        assert_true(f->base == base);
        assert_guarded();
        assert_int_equal(fl_sys_linux.unmap(theirs), 0);
    }
}

TEST(growing_over_a_run_of_nine)
{
    struct fl_extent *e = take(PIECE);
    fill(e, 0x55);
    uintptr_t base = make_run(9, true, MIB(32));
    assert_true(base == e->base + PIECE);
    assert_true(fl_region_resize(&region, e, 9 * (size_t)PIECE + KIB(64)));
    assert_int_equal(e->len, 9 * (size_t)PIECE + KIB(64));
    assert_int_equal(bytes(e)[PIECE - 1], 0x55);
    fill(e, 0x56);
    assert_guarded();
    assert_true(fl_region_resize(&region, e, 10 * (size_t)PIECE));
    assert_false(fl_region_resize(&region, e, 10 * (size_t)PIECE + KIB(4)));
    assert_guarded();
    give(e);
}
