/* Huge pages that were split: their holes come back, or they go as a whole. */
#include "region/state/lock.h"
#include "region/state/counts.h"
#include "region/back/purge.h"
#include "unit/region_case.h"
#include "unit/pieces_fixture.h"

#include <string.h>

/* Where new memory waits for its touch a large hole does, too, and calloc brings nothing in. */
TEST_FROM(blocks_begin, holes_wait_for_their_touch)
{
    region.config.wait_for_touch = true;
    give_but(4);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    struct fl_extent *e = take_zeroed(KIB(1536));
    assert_int_equal(e->base, block[0]->base + KIB(512));
    assert_int_equal(e->left, FL_LEFT_HOLLOW);
    assert_int_equal(fake.count[FAKE_POPULATE], 0);
    assert_int_equal(resident(), MIB(2));
    assert_int_equal(region.held.populated, MIB(2) + KIB(1536)); /* what it may become */
    assert_true(is_filled(e, 0));
    fill(e, 0x11);
    fl_region_clear(&region, e);
    assert_true(is_filled(e, 0));
    e = take(KIB(512)); /* a fault for each page costs more than what may be held in vain */
    assert_int_equal(fake_bytes(FAKE_POPULATE), KIB(512));
    fill(e, 0x22);
}

/* Between its holes lies what is untouched so far. */
TEST_FROM(blocks_begin, filling_holes_brings_nothing_else_in)
{
    region.config.wait_for_touch = true;
    struct fl_extent *low = take(KIB(512)), *e = take(MIB(8)), *high = take(KIB(512));
    struct fl_range within = fl_range_inner(fl_extent_range(e), MIB(2));
    size_t there = 0;
    fill(low, 1);
    fill(high, 2);
    memset(bytes(e), 3, KIB(1536));
    memset(bytes(e) + KIB(7680), 3, KIB(512));
    give(e);
    fl_region_lock(&region);
    assert_int_equal(fl_pieces_give_fringes_unlocking(&region, false), MIB(2));
    fl_region_unlock(&region);
    atomic_store(&region.history.touched[23], 101); /* such blocks are touched */
    fake_forget();
    e = take(MIB(8));
    assert_int_equal(within.len, MIB(6));
    assert_int_equal(e->base + KIB(1536), within.base);
    assert_int_equal(fake_bytes(FAKE_POPULATE), MIB(2));
    assert_int_equal(fl_sys_linux.resident(within, &there), 0);
    assert_int_equal(there, 0);
    fill(e, 4);
    assert_true(is_filled(low, 1) && is_filled(high, 2));
}

static size_t populated_in_window(void)
{
    size_t sum = 0;
    const struct fake_call *c;

    for (size_t i = 0; (c = in_window(FAKE_POPULATE, i)) != NULL; i++) {
        sum += c->range.len;
    }
    return sum;
}

/* Its block would come in by base pages. */
TEST_FROM(blocks_begin, what_is_untouched_is_not_split_off)
{
    region.config.wait_for_touch = true;
    struct fl_extent *e = take(KIB(512));
    fake_forget();
    tick_times(8);
    assert_null(in_window(FAKE_ADVISE, 0));
    assert_null(in_window(FAKE_LAZY_FREE, 0));
    assert_int_equal(fake.count[FAKE_RESIDENT], 1); /* one look */
    assert_int_equal(region.pages.holes.split, 0);
    assert_int_equal(region.held.populated, MIB(10));
    memset(bytes(e), 5, MIB(2)); /* a touch brings a huge page */
    assert_int_equal(fl_region_purge(&region, 0), KIB(1536));
    assert_int_equal(region.pages.holes.split, 1);
    assert_true(is_filled(e, 5));
}

/* Of two blocks that were freed; the first one's first fringe stays. */
TEST_FROM(blocks_begin, fringes_are_looked_at_once_each)
{
    region.config.wait_for_touch = true;
    struct fl_extent *low = take(KIB(512)), *a = take(MIB(4)), *mid = take(MIB(1)),
                     *b = take(MIB(4)), *high = take(KIB(512));
    memset(bytes(a) + KIB(3584), 1, KIB(512));
    fill(mid, 2);
    memset(bytes(b), 3, KIB(512));
    memset(bytes(b) + KIB(2560), 3, KIB(1536));
    fill(high, 4);
    give(a);
    give(b);
    fake_forget();
    fl_region_lock(&region);
    assert_int_equal(fl_pieces_give_fringes_unlocking(&region, false), KIB(2560));
    assert_int_equal(fake.count[FAKE_RESIDENT], 3);
    assert_int_equal(fl_pieces_give_fringes_unlocking(&region, false), 0);
    assert_int_equal(fake.count[FAKE_RESIDENT], 4);
    fl_region_unlock(&region);
    assert_int_equal(region.pages.holes.split, 2);
    fill(low, 5);
    assert_true(is_filled(mid, 2) && is_filled(high, 4));
}

static void take_all_again(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i] == NULL) {
            block[i] = take(KIB(512));
            fill(block[i], (unsigned char)(i + 1));
        }
    }
}

TEST_FROM(blocks_begin, steps_longer_than_the_age_keep_their_pieces)
{
    give_but(2);
    tick_times(5);
    assert_int_equal(region.held.populated, MIB(4));
    take_all_again();
    for (int step = 0; step < 3; step++) {
        give_but(2);
        fake_forget();
        tick_times(4);
        assert_int_equal(region.held.populated, MIB(8));
        take_all_again();
        assert_int_equal(fake.count[FAKE_POPULATE], 0);
    }
    give_but(2);
    tick_times(5); /* not for ever */
    assert_int_equal(region.held.populated, MIB(4));
    tick_times(64); /* and it is forgotten */
    take_all_again();
    give_but(2);
    tick_times(4);
    assert_int_equal(region.held.populated, MIB(4));
}

/* The last block's hole, and what comes behind it. */
TEST_FROM(blocks_begin, what_grows_over_a_hole_pays_once_for_each)
{
    give_block(15);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    fake_forget();
    region.budget.left = MIB(64);
    size_t granted = region.budget.granted;
    struct fl_extent *e = take(MIB(1));
    assert_int_equal(e->base, block[14]->base + KIB(512));
    assert_int_equal(populated_in_window(), MIB(2) + KIB(512));
    assert_int_equal(region.budget.left, MIB(64) - MIB(2) - KIB(512));
    assert_int_equal(region.budget.granted - granted, MIB(2) + KIB(512));
    fill(e, 1);
}

/* Half of the machine is in use. */
TEST_FROM(blocks_begin, what_may_not_be_filled_waits_for_its_touch)
{
    fake_file("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n");
    give_block(15);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    fake_forget();
    region.budget.left = MIB(2);
    struct fl_extent *e = take(MIB(1));
    assert_int_equal(e->base, block[14]->base + KIB(512));
    assert_int_equal(populated_in_window(), MIB(2));
    assert_int_equal(region.budget.left, 0);
    fill(e, 1);
    give(e);
    give_block(14);
    assert_int_equal(fl_region_purge(&region, 0), MIB(3));
    fake_forget();
    region.budget.left = 0; /* and where a block takes over what lies behind it */
    assert_true(fl_region_resize(&region, block[13], KIB(1536)));
    assert_int_equal(populated_in_window(), 0);
    memset(bytes(block[13]), 14, KIB(1536));
}

TEST_FROM(blocks_begin, what_was_split_and_is_free_as_a_whole_goes_as_a_whole)
{
    give_but(4);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    give_block(4);
    assert_int_equal(fl_region_free(&region).huge, 0); /* no request gets its pages */
    assert_sound();
    (void)fl_region_tick(&region, 4);
    assert_int_equal(fake_purged(), MIB(2));
    assert_int_equal(region.pages.holes.split, 3);
    assert_int_equal(region.held.populated, MIB(1) + KIB(512));
    assert_live_is_as_it_was();
    struct fl_extent *e = take_aligned(MIB(2), MIB(2));
    fill(e, 9);
    assert_int_equal(region.pages.holes.split, 3);
    assert_int_equal(fl_holes_in(&region.pages.holes, fl_extent_range(e)), 0);
}

/* All blocks and `more` bytes are one free extent, of which the first huge page is split; a block
 * lies behind it. */
static struct fl_extent *rough_below_a_block(size_t more)
{
    struct fl_extent *beside = take(more), *wall = take_guard(MIB(2));

    give_block(1);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    give(beside);
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i] != NULL) {
            give_block(i);
        }
    }
    assert_int_equal(fl_region_free(&region).huge, 0);
    fake_forget();
    return wall;
}

TEST_FROM(blocks_begin, what_lies_around_it_gives_its_pages)
{
    (void)rough_below_a_block(MIB(8));
    fill(take(MIB(18)), 1);
    assert_true(fake.count[FAKE_MOVE] != 0);
    assert_int_equal(region.held.populated, MIB(20));
}

TEST_FROM(blocks_begin, what_lies_around_it_is_kept_from_children)
{
    if (is_reserved()) {
        return;
    }
    (void)rough_below_a_block(MIB(8));
    fl_region_fork_lock(&region);
    size_t kept = fake_kept_from_child((struct fl_range){region.space.first, MIB(16)});
    fl_region_fork_parent(&region);
    assert_int_equal(kept, MIB(14));
}

TEST_FROM(blocks_begin, what_lies_around_it_is_the_kernels_to_take)
{
    (void)rough_below_a_block(MIB(8));
    fl_region_soften(&region);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(14));
}

TEST_FROM(blocks_begin, what_lies_around_it_is_bounded_under_a_filter)
{
    struct fl_extent *wall = rough_below_a_block(MIB(40));
    fl_sys_confine(true);
    give(wall);
    fl_sys_confine(false);
    assert_true(region.held.populated <= MIB(16));
}

/* A call that waits does not wait for all of it. */
TEST_FROM(blocks_begin, it_goes_in_part)
{
    give_but(4);
    (void)fl_region_purge(&region, 0);
    for (int i = 0; i < BLOCKS; i += 4) {
        give_block(i);
    }
    fl_region_lock(&region);
    assert_int_equal(fl_pieces_smooth_unlocking(&region, MIB(4)), MIB(1));
    assert_int_equal(region.pages.holes.split, 2);
    assert_int_equal(fl_pieces_smooth_unlocking(&region, SIZE_MAX), MIB(1));
    fl_region_unlock(&region);
    assert_int_equal(region.held.populated, 0);
}
