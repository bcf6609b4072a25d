/* New memory that waits for its first touch: what a request populates, what serves the next one,
 * what calloc clears, and what is learnt from blocks when they are freed. What is in memory is
 * asked of the real kernel. */
#include "region/free/isolated.h"
#include "unit/region_case.h"

#include <errno.h>

/* Of all kinds half is touched, by what is known. */
static void forget_what_is_sparse(void)
{
    for (int i = 0; i < FL_LEFT_KINDS; i++) {
        region.history.touched[i] = 51;
    }
}

TEST_FROM(waiting_begin, new_memory_is_not_populated)
{
    for (size_t len = KIB(64); len <= MIB(256); len *= 4) {
        struct fl_extent *e = take(len);
        assert_int_equal(bytes_there(e), 0);
        assert_null(in_window(FAKE_POPULATE, 0));
        assert_int_equal(e->content, FL_CONTENT_POPULATED); /* as it counts */
    }
    assert_int_equal(stats().populate_bytes, 0);
    assert_int_equal(stats().stalls, 0);
    assert_int_equal(stats().populated_bytes, region.held.populated);
    assert_true(region.held.populated >= MIB(256));
}

TEST_FROM(waiting_begin, those_who_set_eager_max_get_it_populated)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(16)});
    struct fl_extent *e = take(MIB(8));
    assert_int_equal(bytes_there(e), MIB(8));
    assert_int_equal(e->left, 0);
    assert_int_equal(stats().stalls, 1);
}

TEST_FROM(waiting_begin, what_was_touched_serves_the_next_request)
{
    struct fl_extent *e = take(MIB(8));
    fill(e, 1);
    uintptr_t base = e->base;
    free_looked_at(e);
    fake_forget();
    e = take(MIB(8));
    assert_int_equal(e->base, base);
    assert_int_equal(bytes_there(e), MIB(8));
    assert_int_equal(e->left & FL_LEFT_UNSEEN, 0); /* it is looked at once */
    assert_int_equal(fake.count[FAKE_POPULATE] + fake_purges() + fake.count[FAKE_MAP_AT] +
                         fake.count[FAKE_COMMIT],
                     0);
}

/* Huge pages; base pages, where one look does not tell of all the pieces; and where it is unknown
 * what was touched, so that all is cleared. */
TEST_FROM(NULL, calloc_brings_nothing_in)
{
    static const struct {
        bool huge;
        size_t len, every, most;
        int refusal;
    } row[] = {
        {true, MIB(64), MIB(16), MIB(16), 0},
        {false, MIB(8), KIB(28), MIB(2), 0},
        {true, MIB(8), MIB(8), MIB(2), -EPERM},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        region_begin(&(struct fl_region_config){.huge = row[i].huge, .wait_for_touch = true});
        struct fl_extent *e = take(row[i].len);
        for (size_t at = 0; at < row[i].len; at += row[i].every) {
            touch_at(e, at);
        }
        size_t there = bytes_there(e);
        assert_true(there <= row[i].most);
        free_looked_at(e);
        fake.rc[FAKE_TOUCHED] = row[i].refusal;
        e = take_zeroed(row[i].len);
        assert_int_equal(bytes_there(e), row[i].refusal == 0 ? there : row[i].len);
        assert_true(is_filled(e, 0));
        assert_settled();
    }
}

TEST_FROM(waiting_begin, a_block_is_cleared_where_it_was_touched)
{
    struct fl_extent *e = take(MIB(16));
    touch_at(e, MIB(9));
    touch_at(e, MIB(15));
    size_t there = bytes_there(e);
    fl_region_clear(&region, e);
    assert_int_equal(bytes_there(e), there);
    assert_int_equal(bytes(e)[MIB(9)], 0);
    assert_int_equal(bytes(e)[MIB(15)], 0);
    assert_int_not_equal(e->left, 0);
    fill(e, 0xee);
    fl_region_clear(&region, e);
    assert_int_equal(e->left, 0); /* all of it is there */
    assert_true(is_filled(e, 0));
}

/* Free extents give their pages, and they have next to none. */
TEST_FROM(waiting_begin, holes_move_as_holes)
{
    struct fl_extent *low = take(MIB(16)), *wall = take_guard(MIB(2)), *high = take(MIB(16));
    assert_true(wall != NULL && take_guard(MIB(2)) != NULL);
    touch_at(low, MIB(3));
    touch_at(high, MIB(7));
    free_looked_at(low);
    free_looked_at(high);
    forget_what_is_sparse();
    fake_forget();
    struct fl_extent *e = take_zeroed(MIB(30));
    assert_true(fake.count[FAKE_MOVE] != 0);
    assert_true(bytes_there(e) <= MIB(4));
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_true(is_filled(e, 0));
}

static struct fl_extent *stranger;

static void *ask(void *arg)
{
    stranger = take_zeroed(KIB(512));
    return NULL;
}

static int calloc_amid_the_move(struct fl_range from, uintptr_t to, size_t *most)
{
    if (stranger == NULL) {
        run_beside(ask, NULL);
    }
    return 0;
}

/* What is free behind a request lies in a huge page that another's pages still move into. */
TEST_FROM(waiting_begin, what_comes_after_the_look_is_cleared_too)
{
    struct fl_extent *a = take_walled(MIB(8)), *b = take_walled(MIB(8));
    fill(a, 0xa1);
    fill(b, 0xb2);
    free_looked_at(a);
    free_looked_at(b);
    stranger = NULL;
    fake.on_move = calloc_amid_the_move;
    struct fl_extent *e = take(MIB(31) / 2); /* all that is free */
    fake.on_move = NULL;
    assert_non_null(stranger);
    assert_int_equal(stranger->base, e->base + e->len);
    assert_true(is_filled(stranger, 0));
}

TEST_FROM(waiting_begin, growing_brings_nothing_in)
{
    struct fl_extent *e = take(MIB(8));
    touch_at(e, 0);
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_true(bytes_there(e) <= MIB(2));
    assert_non_null(take(MIB(2))); /* in the way */
    struct fl_extent *to = fl_region_move(&region, e, MIB(128));
    assert_non_null(to);
    assert_int_equal(bytes(to)[0], 0xee);
    assert_true(bytes_there(to) <= MIB(4));
    assert_int_not_equal(to->left, 0);
    assert_true(fl_region_resize(&region, to, MIB(16)));
    touch_at(to, MIB(12));
    free_looked_at(to);
    e = take_zeroed(MIB(100));
    assert_true(bytes_there(e) <= MIB(6));
    assert_true(is_filled(e, 0));
}

/* A whole block takes over a hollow neighbour, when it is freed and when it grows; and what is cut
 * off stays hollow. */
TEST_FROM(waiting_begin, holes_are_known_of_what_merges)
{
    struct fl_extent *whole = take(MIB(8)), *hollow = take_walled(MIB(32));
    fill(whole, 1);
    fl_region_note_touched(&region, whole);
    assert_int_equal(whole->left, 0);
    touch_at(hollow, MIB(31));
    free_looked_at(hollow);
    forget_what_is_sparse();
    uintptr_t base = whole->base;
    free_looked_at(whole);
    struct fl_extent *e = take_zeroed(MIB(40));
    assert_int_equal(e->base, base);
    assert_true(bytes_there(e) <= MIB(10));
    assert_true(is_filled(e, 0));
    assert_true(fl_region_resize(&region, e, MIB(8)));
    fill(e, 1);
    fl_region_clear(&region, e);
    assert_int_equal(e->left, 0);
    assert_true(fl_region_resize(&region, e, MIB(24)));
    assert_int_equal(e->left, FL_LEFT_HOLLOW);
}

TEST_FROM(waiting_begin, holes_are_known_beside_what_is_apart)
{
    struct fl_extent *e = take(MIB(16));
    struct fl_range part = {fl_align_up(e->base, MIB(2)) + MIB(4), MIB(4)};
    uintptr_t base = e->base;
    free_looked_at(e);
    fl_region_lock(&region);
    assert_int_equal(fl_extent_reserve(&region.space, 2), 0);
    e = fl_isolated_claim_part(&region, fl_extent_free_at(&region.space, base, 0), part);
    assert_int_equal(fl_extent_free_at(&region.space, base, 0)->left, FL_LEFT_HOLLOW);
    assert_int_equal(fl_extent_free_at(&region.space, fl_range_end(part), 0)->left, FL_LEFT_HOLLOW);
    fl_isolated_return(&region, e, false);
    fl_region_unlock(&region);
}

/* Ranges below a huge page are not looked at, and what was cleared as a whole is known to be
 * there. */
TEST_FROM(waiting_begin, small_blocks_are_not_looked_at)
{
    struct fl_extent *e = take(KIB(64));
    assert_int_equal(e->left & FL_LEFT_UNSEEN, 0);
    fl_region_clear(&region, e);
    assert_int_equal(e->left, 0);
    assert_int_equal(fake.count[FAKE_TOUCHED], 0);
}

TEST_FROM(waiting_begin, a_free_is_looked_at_once)
{
    struct fl_extent *e = take(MIB(256));
    free_looked_at(e);
    unsigned looks = fake.count[FAKE_RESIDENT];
    assert_true(looks != 0 && looks <= 16);
    forget_what_is_sparse();
    e = take(MIB(256));
    free_looked_at(e);
    assert_int_equal(fake.count[FAKE_RESIDENT], looks);
}

TEST_FROM(waiting_begin, frees_tell_what_is_touched)
{
    struct fl_extent *full = take(MIB(8)), *hollow = take(MIB(16)), *most = take(MIB(64));
    fill(full, 1);
    touch_at(hollow, 0);
    fill(most, 1);
    free_looked_at(full);
    free_looked_at(hollow);
    free_looked_at(most);
    assert_true(fl_left_was_touched(&region, MIB(8)));
    assert_true(fl_left_was_touched(&region, MIB(15)));
    assert_false(fl_left_was_touched(&region, MIB(16)));
    assert_true(fl_left_was_touched(&region, MIB(64)));
    assert_false(fl_left_was_touched(&region, MIB(256)));
    full = take(MIB(9)); /* in free memory: it tells nothing */
    free_looked_at(full);
    assert_true(fl_left_was_touched(&region, MIB(8)));
}

TEST_FROM(waiting_begin, the_stock_follows_what_is_touched)
{
    if (is_reserved()) {
        return;
    }
    struct fl_extent *e = take(MIB(8));
    assert_int_equal(region.refill.demand, 0);
    assert_non_null(take(MIB(8)));
    fill(e, 1);
    free_looked_at(e);
    assert_non_null(take(MIB(8)));
    assert_int_equal(region.refill.demand, 0); /* it was there */
    assert_non_null(take(MIB(8)));
    assert_int_equal(region.refill.demand, MIB(8));
    assert_non_null(take(MIB(32)));
    assert_int_equal(region.refill.demand, MIB(8));
}

TEST_FROM(waiting_begin, base_pages_are_populated_where_they_are_touched)
{
    region_begin(&(struct fl_region_config){.wait_for_touch = true});
    struct fl_extent *e = take(MIB(8));
    assert_int_equal(bytes_there(e), 0);
    fill(e, 1);
    free_looked_at(e);
    assert_non_null(take(MIB(8)));
    e = take(MIB(8));
    assert_int_equal(bytes_there(e), MIB(8));
    e = take(MIB(1)); /* a fault for each page costs more than what may be held in vain */
    assert_int_equal(bytes_there(e), MIB(1));
}

/* Its pagemap, a page for 4 MiB, comes in with what is cut to other blocks later. */
TEST_FROM(waiting_begin, the_pagemap_waits_too)
{
    assert_non_null(take(MIB(2)));
    uintptr_t window = region.space.window.all.base, pagemap = region.space.pagemap.all.base;
    struct fl_extent *e = take(MIB(768));
    struct fl_range part = {
        fl_align_up(pagemap + ((e->base - window) >> fl_page.shift) * 4 + 4, fl_page.base),
        (MIB(760) >> fl_page.shift) * 4};
    size_t there = 0;
    assert_int_equal(fl_sys_linux.resident(part, &there), 0);
    assert_true(there <= KIB(256));
    for (size_t at = 0; at < MIB(768); at += MIB(24)) { /* where it is looked at */
        touch_at(e, at);
    }
    free_looked_at(e);
    assert_int_equal(fl_sys_linux.resident(part, &there), 0);
    assert_int_equal(there, part.len);
}
