/* What is free below a huge page goes back by base pages, and comes back. */
#include "cases.h"
#include "region/state/counts.h"
#include "unit/pieces_fixture.h"

#include <errno.h>
#include <string.h>

CASE_AFTER(blocks_begin, what_is_free_between_blocks_goes_when_it_is_old)
{
    give_but(4);
    tick_times(3);
    assert_int_equal(region.held.populated, MIB(8));
    tick_times(1);
    assert_int_equal(region.held.populated, MIB(2));
    assert_int_equal(resident(), MIB(2));
    assert_int_equal(stats().purge_bytes, MIB(6));
    assert_int_equal(fl_region_free(&region).bytes, 0);
    assert_null(in_window(FAKE_UNMAP, 0)); /* it stays mapped */
    assert_null(in_window(FAKE_DECOMMIT, 0));
    assert_live_is_as_it_was();
    assert_false(fl_region_tick(&region, 4)); /* nothing is left to watch */
}

CASE_AFTER(blocks_begin, what_lies_between_split_ones_is_the_same_map)
{
    static const int order[] = {1, 9, 5, 13};
    for (size_t i = 0; i < 4; i++) {
        give_block(order[i]);
        assert_int_equal(fl_region_purge(&region, 0), KIB(512));
        assert_int_equal(region.pages.holes.runs, i == 1 ? 2 : 1);
    }
    assert_live_is_as_it_was();
}

/* Split by the kernel at once, and not made huge behind our back: it is told with each piece, for
 * the program may advise otherwise. */
CASE_AFTER(blocks_begin, each_piece_is_split_off)
{
    give_but(2);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 8);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), 8 * KIB(4));
    assert_int_equal(advised(FL_ADVICE_NO_HUGE), 8 + 1); /* the table's own map */
    assert_int_equal(advised(FL_ADVICE_DROP), 8);
    assert_int_equal(region.pages.holes.split, 4);
    assert_int_equal(region.pages.holes.runs, 1); /* neighbours are one map */
    assert_live_is_as_it_was();
}

/* So that the rest of its place is free. */
static void shorten(int i, size_t len)
{
    give(block[i]);
    block[i] = take(len);
    fill(block[i], (unsigned char)(i + 1));
}

CASE_AFTER(blocks_begin, a_small_share_stays_until_memory_goes_at_once)
{
    shorten(0, KIB(320));
    tick_times(8);
    assert_int_equal(region.held.populated, MIB(8));
    assert_int_equal(fl_region_purge(&region, 0), KIB(192)); /* though it has been looked at */
    shorten(4, KIB(464));                                    /* 48 KiB: less than a thirty-second */
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, pieces_of_a_huge_page_add_up)
{
    for (int i = 0; i < 4; i += 2) {
        shorten(i, KIB(384));
        tick_times(8);
        assert_int_equal(region.held.populated, i == 0 ? MIB(8) : MIB(8) - KIB(256));
    }
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, a_hole_that_is_used_again_is_populated_and_counted)
{
    give_but(2);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    block[1] = take_zeroed(KIB(512));
    assert_true(is_filled(block[1], 0));
    fill(block[1], 2);
    assert_int_equal(fake.count[FAKE_POPULATE], 1);
    assert_int_equal(fake_bytes(FAKE_POPULATE), KIB(512));
    assert_int_equal(region.held.populated, MIB(4) + KIB(512));
    block[3] = take(KIB(256)); /* a half of the next */
    fill(block[3], 4);
    assert_int_equal(region.held.populated, MIB(4) + KIB(768));
    assert_true(fl_region_resize(&region, block[3], KIB(512))); /* and the rest */
    fill(block[3], 4);
    assert_int_equal(region.held.populated, MIB(5));
    assert_int_equal(resident(), MIB(5));
    assert_live_is_as_it_was();
    give_block(3);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    assert_live_is_as_it_was();
}

/* One that was just freed is not as old as the hole that it merges with. */
CASE_AFTER(blocks_begin, a_hole_makes_no_neighbour_old)
{
    give(block[1]);
    give(block[2]);
    tick_times(8);
    assert_int_equal(region.held.populated, MIB(7));
    give(block[3]);
    block[1] = block[2] = block[3] = NULL;
    tick_times(3);
    assert_int_equal(region.held.populated, MIB(7));
    tick_times(1);
    assert_int_equal(region.held.populated, MIB(7) - KIB(512));
    assert_live_is_as_it_was();
}

/* Where pages come from elsewhere to what a request leaves of its last huge page, a hole would be
 * filled unseen. */
CASE_AFTER(blocks_begin, pieces_wait_while_pages_move)
{
    give_but(2);
    region.held.moving = MIB(2);
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_true(fl_region_tick(&region, 0)); /* and are not forgotten */
    region.held.moving = 0;
    (void)fl_region_tick(&region, 0);
    assert_int_equal(region.held.populated, MIB(4));
    assert_live_is_as_it_was();
}

static void purge_all(struct fl_range r)
{
    (void)r;
    fake.on_populate = NULL;
    assert_int_equal(fl_region_purge(&region, 0), 0);
}

/* The rest of a new block's last huge page is free while all of it is populated. */
CASE_AFTER(blocks_begin, pieces_wait_while_pages_come)
{
    fake.on_populate = purge_all;
    struct fl_extent *e = take(KIB(512));
    fill(e, 1);
    assert_null(fake.on_populate);
    assert_int_equal(region.pages.holes.split, 0);
    assert_live_is_as_it_was();
    assert_int_equal(fl_region_purge(&region, 0), KIB(1536));
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, refused_they_stay_and_nothing_goes_round)
{
    give_but(2);
    fake.rc[FAKE_ADVISE] = -EINVAL; /* as where all is locked in memory */
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_int_equal(region.pages.holes.split, 0); /* nothing is the worse for it */
    tick_times(15);
    assert_true(fake.count[FAKE_ADVISE] <= 4);
    tick_times(17);
    assert_true(fake.count[FAKE_ADVISE] <= 4 + 2 * 3); /* one piece in 16 ticks */
    assert_true(fl_region_tick(&region, 4));
    tick_times(16);
    assert_false(fl_region_tick(&region, 4)); /* the worker is not kept awake for ever */
    assert_int_equal(region.held.populated, MIB(8));
    fake.rc[FAKE_ADVISE] = 0;
    tick_times(32);
    assert_int_equal(region.held.populated, MIB(4));
    assert_live_is_as_it_was();
}

static int next_given;

static void give_the_next(struct fl_range r)
{
    (void)r;
    give_block(next_given);
    next_given += 2;
}

/* Or malloc_trim would not end while another thread frees. */
CASE_AFTER(blocks_begin, what_is_freed_meanwhile_waits_for_the_next_time)
{
    give_block(1);
    next_given = 3;
    fake.on_lazy_free = give_the_next;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fl_region_purge(&region, 0), KIB(512));
        assert_int_equal(next_given, 5 + 2 * i);
    }
    fake.on_lazy_free = NULL;
    assert_live_is_as_it_was();
}

static struct fl_extent *large[3];
static int larges;

static void give_a_large_one(void)
{
    if (larges < 3) {
        give(large[larges++]);
    }
}

/* However much is freed beside it. */
CASE_AFTER(blocks_begin, what_was_free_goes_at_once)
{
    for (int i = 0; i < 3; i++) {
        large[i] = take(MIB(16));
        fill(large[i], 1);
        assert_non_null(take(MIB(2)));
    }
    larges = 0;
    give_a_large_one();
    give_but(2);
    fake.on_purge = give_a_large_one;
    (void)fl_region_purge(&region, 0);
    fake.on_purge = NULL;
    assert_int_equal(larges, 2); /* the second one waits for the next time */
    assert_int_equal(resident(), MIB(4));
    assert_live_is_as_it_was();
}

static size_t gone;

static void purge_while_it_is_mapped(struct fl_range r)
{
    if (fl_range_common(r, region.space.window.all).len != 0) {
        fake.on_map = NULL;
        gone = fl_region_purge(&region, 0);
    }
}

/* No pages come to it. */
CASE_AFTER(blocks_begin, pieces_go_while_a_lazy_one_is_mapped)
{
    give_but(2);
    region.config.eager_max = MIB(1);
    fake.on_map = purge_while_it_is_mapped;
    assert_int_equal(take(MIB(32))->content, FL_CONTENT_LAZY);
    assert_int_equal(gone, MIB(4));
    assert_live_is_as_it_was();
}

static void give_and_take_the_next_one(struct fl_range r)
{
    (void)r;
    fake.on_lazy_free = NULL;
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    uintptr_t base = block[2]->base + KIB(512);
    block[3] = take(KIB(512));
    assert_int_equal(block[3]->base, base);
    fill(block[3], 4);
    fake.rc[FAKE_ADVISE] = -EINVAL;
}

/* The table must know what the kernel has split, also where one try of two has failed. */
CASE_AFTER(blocks_begin, what_another_has_split_stays_split)
{
    give_block(1);
    give_block(3);
    fake.on_lazy_free = give_and_take_the_next_one;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_int_equal(region.pages.holes.split, 1);
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, without_a_table_they_stay)
{
    give_but(2);
    fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_RESERVE] = fake.rc[FAKE_COMMIT] = -ENOMEM;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    tick_times(8);
    assert_int_equal(advised(FL_ADVICE_DROP), 0);
    assert_live_is_as_it_was();
    fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_RESERVE] = fake.rc[FAKE_COMMIT] = 0;
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, a_confined_process_keeps_them)
{
    give_but(2);
    fl_sys_confine(true);
    size_t given = fl_region_purge(&region, 0);
    fl_sys_confine(false);
    assert_int_equal(given, 0);
    assert_int_equal(fake.count[FAKE_ADVISE], 0);
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, a_hole_is_filled_within_the_limit)
{
    give_but(2);
    (void)fl_region_purge(&region, 0);
    region.config.limit = MIB(5);
    block[1] = take(KIB(512));
    block[3] = take(KIB(512));
    assert_true(block[1] != NULL && block[3] != NULL);
    fill(block[1], 2);
    fill(block[3], 4);
    assert_null(take(KIB(512)));
    assert_int_equal(region.held.populated, MIB(5));
    assert_live_is_as_it_was();
}

/* The kernel is told nothing of pieces: where it is short they go, whatever their age, and whatever
 * they are beside. */
CASE_AFTER(blocks_begin, where_memory_is_short_they_go_at_once)
{
    region.tight = true;
    region.pieces.headroom = MIB(16);
    region.pressure.look_after = SIZE_MAX; /* it stays so */
    for (int i = 1; i < 9; i++) {          /* a whole huge page and pieces of two */
        assert_int_equal(region.held.populated, MIB(8));
        give_block(i);
    }
    assert_int_equal(region.held.populated, MIB(6));
    assert_live_is_as_it_was();
    assert_int_equal(fl_region_purge(&region, 0), MIB(2)); /* which the kernel might have taken */
    assert_int_equal(region.held.populated, MIB(4));
    assert_live_is_as_it_was();
}

static int child_status;

static int uses_what_is_free(void)
{
    if (!fl_region_fork_child(&region, NULL) || fl_region_check(&region) != NULL) {
        return 1;
    }
    struct fl_extent *e = take_zeroed(MIB(3));
    if (e == NULL || !is_filled(e, 0)) {
        return 2;
    }
    fill(e, 1);
    return fl_region_check(&region) == NULL ? 0 : 3;
}

/* What lies on both sides of the piece is freed, so that it is not for children, and another thread
 * forks. */
static void free_around_and_fork(struct fl_range r)
{
    (void)r;
    fake.on_lazy_free = NULL;
    give_block(0);
    for (int i = 4; i < 8; i++) {
        give_block(i);
    }
    child_status = fork_beside(uses_what_is_free);
}

CASE_AFTER(blocks_begin, a_child_finds_a_piece_apart)
{
    for (int i = 1; i < 4; i++) {
        give_block(i);
    }
    fake.on_lazy_free = free_around_and_fork;
    (void)fl_region_purge(&region, 0);
    assert_int_equal(child_status, 0);
    assert_live_is_as_it_was();
}

/* A part of it is rough since a block beside what is not for children was freed. */
CASE_AFTER(blocks_begin, children_get_what_is_split_and_free)
{
    struct fl_extent *big = take(MIB(4));
    assert_non_null(take(MIB(2)));
    give(block[13]);
    (void)fl_region_purge(&region, 0);
    give(big);
    fork_in_vain(); /* `big` is not for children */
    block[13] = NULL;
    for (int i = 12; i < BLOCKS; i++) {
        if (block[i] != NULL) {
            give_block(i);
        }
    }
    assert_int_equal(fork_with(uses_what_is_free), 0);
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, a_worker_less_process_gives_them_back_by_its_calls)
{
    region.config.tick_ns = 100000000;
    fake.now_ns = 1;
    give_but(4);
    for (int i = 0; i < 8; i++) {
        fake.now_ns += 100000001;
        give(take(KIB(512)));
    }
    assert_true(region.held.populated <= MIB(2) + KIB(512));
    assert_live_is_as_it_was();
}

/* Holes elsewhere are no reason for a request to go the long way, which takes the lock anew. */
CASE_AFTER(blocks_begin, what_has_no_hole_is_served_at_once)
{
    give_block(9);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    assert_int_equal(region.pages.holes.split, 1);
    uintptr_t base = block[2]->base;
    give_block(2);
    uint64_t locks = region.stats.locks;
    block[2] = take(KIB(512));
    assert_int_equal(region.stats.locks, locks + 1);
    assert_int_equal(block[2]->base, base);
    fill(block[2], 3);
    assert_live_is_as_it_was();
}

CASES_MAIN()
