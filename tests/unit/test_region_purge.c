/* What goes back to the kernel, when, and what happens meanwhile. */
#include "region/back/purge.h"
#include "unit/region_case.h"

TEST(whole_huge_pages_go_then_what_is_free_at_the_edges)
{
    struct fl_extent *a = take(KIB(512)), *e = take(MIB(5)), *b = take(KIB(64));
    fill(a, 1);
    fill(e, 2);
    fill(b, 3);
    give(e); /* from 512 KiB to 5.5 MiB: one whole huge page and a half on each side */
    fake_forget();
    size_t edges = KIB(1536) + KIB(1536) + KIB(448); /* the last behind b */
    assert_int_equal(fl_region_purge_some(&region, 0, MIB(2)), MIB(2));
    assert_int_equal(fake_purges(), 1);
    assert_int_equal(fake_purged(), MIB(2));
    assert_int_equal(region.held.populated, MIB(4));
    assert_int_equal(stats().purge_bytes, MIB(2));
    assert_sound();
    assert_true(is_filled(a, 1) && is_filled(b, 3));
    assert_int_equal(fl_region_purge(&region, 0), edges);
    assert_int_equal(fake_purges(), 1); /* those stay mapped */
    assert_int_equal(region.held.populated, MIB(4) - edges);
    assert_true(is_filled(a, 1) && is_filled(b, 3));
    struct fl_extent *edge = take(KIB(256));
    assert_true(edge->base == a->base + KIB(512) && is_filled(edge, 0));
    assert_int_equal(fl_region_purge(&region, 0), 0);
}

static void tick(int n)
{
    for (int i = 0; i < n; i++) {
        (void)fl_region_tick(&region, 4);
    }
}

TEST(memory_ages_in_ticks_since_its_free)
{
    struct fl_extent *a = take_walled(MIB(2)), *b = take_walled(MIB(2));
    tick(6);
    struct fl_cache *c = fl_cache_acquire(&region);
    (void)cache_put(c, a); /* the way of free: its age begins here */
    tick(2);
    (void)cache_put(c, b);
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), 0);
    assert_true(fl_region_tick(&region, 4)); /* a is four ticks old */
    assert_int_equal(fake_purged(), MIB(2));
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(2));
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(4));
}

TEST(memory_given_straight_back_ages_from_then)
{
    struct fl_extent *e = take_walled(MIB(2));
    tick(6);
    give(e);
    tick(3);
    assert_int_equal(fake_purged(), 0);
    tick(1);
    assert_int_equal(fake_purged(), MIB(2));
}

TEST(a_neighbour_freed_later_makes_the_whole_younger)
{
    struct fl_extent *a = take(MIB(2)), *b = take_walled(MIB(2));
    give(a);
    tick(3);
    give(b);
    tick(2);
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), 0);
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(4));
}

TEST(reuse_stops_the_clock)
{
    struct fl_extent *e = take_walled(MIB(2));
    for (int i = 0; i < 20; i++) {
        give(e);
        tick(1);
        e = take(MIB(2));
    }
    assert_int_equal(fake_purges(), 0);
}

TEST(large_extents_go_in_pieces_but_all_in_one_call)
{
    fake.pretend_populate = true;
    struct fl_extent *e = take(MIB(700));
    fake_forget();
    give(e);
    assert_int_equal(fl_region_purge(&region, 0), MIB(700));
    assert_int_equal(fake_purges(), 3);
    for (size_t i = 0; i < fake.nlog; i++) {
        assert_true(fake.log[i].range.len <= MIB(256));
    }
    assert_int_equal(region.held.populated, 0);
}

TEST(an_old_large_extent_does_not_wait_for_younger_ones)
{
    fake.pretend_populate = true;
    struct fl_extent *e = take_walled(MIB(700)), *young = take_walled(MIB(2));
    give(e);
    tick(3);
    give(young);
    fake_forget();
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(700));
}

TEST(a_refused_purge_keeps_the_memory_and_is_not_repeated_at_once)
{
    struct fl_extent *e = take_walled(MIB(4));
    fill(e, 5);
    give(e);
    fake_forget();
    fake.rc[FAKE_UNMAP] = fake.rc[FAKE_DECOMMIT] = -12;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_int_equal(fake_purges(), 1);
    assert_int_equal(region.held.populated, MIB(6));
    assert_sound();
    tick(1);
    assert_int_equal(fake_purges(), 1);
    e = take(MIB(4));
    assert_true(is_filled(e, 5));
}

static struct fl_extent *meanwhile[2];

static void use_the_region(void)
{
    fake.on_purge = NULL;
    assert_false(fl_region_busy());
    assert_sound();
    meanwhile[0] = take(MIB(1));
    meanwhile[1] = take(MIB(6));
    fill(meanwhile[0], 8);
    fill(meanwhile[1], 9);
    assert_sound();
}

TEST(others_work_while_pages_go)
{
    struct fl_extent *e = take_walled(MIB(4));
    give(e);
    fake.on_purge = use_the_region;
    assert_true(fl_region_purge(&region, 0) >= MIB(4));
    assert_true(is_filled(meanwhile[0], 8) && is_filled(meanwhile[1], 9));
    assert_sound();
    give(meanwhile[0]);
    give(meanwhile[1]);
}

TEST(tick_says_when_nothing_is_left_and_asks_to_be_called)
{
    assert_false(fl_region_tick(&region, 4));
    fl_region_set_worker(&region, true);
    assert_false(region.wants_worker);
    assert_false(fl_region_tick(&region, 4));
    assert_true(region.wants_worker); /* the next free calls */
    give(take(MIB(2)));
    assert_true(fl_region_tick(&region, 4));
    assert_true(region.wants_worker); /* it was raised, and the call is still to come */
    region.wants_worker = false;
    assert_true(fl_region_tick(&region, 4));
    assert_false(region.wants_worker);
}

TEST(a_worker_is_wanted_once_enough_is_populated)
{
    assert_non_null(take(MIB(14)));
    assert_false(region.wants_worker);
    assert_non_null(take(MIB(2)));
    assert_true(region.wants_worker);
    fl_region_set_worker(&region, true);
    assert_false(region.wants_worker);
    fl_region_set_worker(&region, false);
    assert_true(region.wants_worker);
}

TEST(small_free_pieces_are_watched_until_they_have_been_looked_at)
{
    assert_non_null(take(KIB(1024)));
    struct fl_extent *e = take(KIB(64));
    assert_non_null(take(KIB(960)));
    give(e); /* within one huge page that others use */
    tick(2);
    assert_true(fl_region_tick(&region, 4));
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(region.held.populated, MIB(2)); /* too little to split it for */
}

TEST(where_nothing_was_asked_for_nothing_goes_back)
{
    assert_int_equal(fl_region_clear_out(&region), 0);
    assert_int_equal(fl_holes_table(&region.pages.holes).len, 0);
}
