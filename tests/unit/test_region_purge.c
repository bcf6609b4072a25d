/* What goes back to the kernel, when, and what happens meanwhile. */
#include "region/back/purge.h"
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    return 0;
}

static void whole_huge_pages_go_then_what_is_free_at_the_edges(void **state)
{
    (void)state;
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

static void purged_memory_reads_as_zero_again(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(4));
    uintptr_t base = e->base;
    fill(e, 7);
    give(e);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    e = take_zeroed(MIB(4));
    assert_true(e->base == base && is_filled(e, 0));
}

static void live_memory_is_never_purged(void **state)
{
    (void)state;
    struct fl_extent *e[8];
    for (int i = 0; i < 8; i++) {
        e[i] = take(MIB(3) - KIB(4) * (size_t)i);
        fill(e[i], (unsigned char)i);
    }
    for (int i = 0; i < 8; i += 2) {
        give(e[i]);
    }
    assert_true(fl_region_purge(&region, 0) > 0);
    for (int i = 1; i < 8; i += 2) {
        assert_true(is_filled(e[i], (unsigned char)i));
    }
    assert_sound();
}

static void memory_ages_in_ticks_since_its_free(void **state)
{
    (void)state;
    struct fl_extent *a = take(MIB(2)), *guard = take(MIB(2)), *b = take(MIB(2)),
                     *end = take(MIB(2));
    assert_non_null(guard);
    assert_non_null(end);
    for (int i = 0; i < 6; i++) {
        (void)fl_region_tick(&region, 4);
    }
    assert_true(fl_extent_claim(a, region.epoch));
    struct fl_cache *c = fl_cache_acquire(&region);
    assert_null(fl_cache_put(&region, c, a)); /* the way of free: its age begins here */
    assert_true(fl_region_tick(&region, 4));
    assert_true(fl_region_tick(&region, 4));
    assert_true(fl_extent_claim(b, region.epoch));
    assert_null(fl_cache_put(&region, c, b));
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), 0);
    assert_true(fl_region_tick(&region, 4)); /* a is four ticks old */
    assert_int_equal(fake_purged(), MIB(2));
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(2));
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(4));
    assert_sound();
}

static void memory_given_straight_back_ages_from_then(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(2)), *guard = take(MIB(2));
    assert_non_null(guard);
    for (int i = 0; i < 6; i++) {
        (void)fl_region_tick(&region, 4);
    }
    give(e);
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), 0);
    for (int i = 0; i < 3; i++) {
        (void)fl_region_tick(&region, 4);
    }
    assert_int_equal(fake_purged(), MIB(2));
}

static void a_neighbour_freed_later_makes_the_whole_younger(void **state)
{
    (void)state;
    struct fl_extent *a = take(MIB(2)), *b = take(MIB(2)), *guard = take(MIB(2));
    assert_non_null(guard);
    give(a);
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
    }
    give(b);
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
        assert_int_equal(fake_purged(), 0);
    }
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(4));
}

static void reuse_stops_the_clock(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(2)), *guard = take(MIB(2));
    assert_non_null(guard);
    for (int i = 0; i < 20; i++) {
        give(e);
        (void)fl_region_tick(&region, 4);
        e = take(MIB(2));
    }
    assert_int_equal(fake_purges(), 0);
}

static void large_extents_go_in_pieces_but_all_in_one_call(void **state)
{
    (void)state;
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
    assert_sound();
}

static void an_old_large_extent_does_not_wait_for_younger_ones(void **state)
{
    (void)state;
    fake.pretend_populate = true;
    struct fl_extent *e = take(MIB(700)), *guard = take(MIB(2)), *young = take(MIB(2)),
                     *end = take(MIB(2));
    assert_non_null(guard);
    assert_non_null(end);
    give(e);
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
    }
    give(young);
    fake_forget();
    assert_true(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(700));
    assert_sound();
}

static void a_refused_purge_keeps_the_memory_and_is_not_repeated_at_once(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(4)), *guard = take(MIB(2));
    assert_non_null(guard);
    fill(e, 5);
    give(e);
    fake_forget();
    fake.rc[FAKE_UNMAP] = fake.rc[FAKE_DECOMMIT] = -12;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_int_equal(fake_purges(), 1);
    assert_int_equal(region.held.populated, MIB(6));
    assert_sound();
    (void)fl_region_tick(&region, 4);
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

static void others_work_while_pages_go(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(4)), *guard = take(KIB(64));
    give(e);
    fake.on_purge = use_the_region;
    assert_true(fl_region_purge(&region, 0) >= MIB(4));
    assert_true(is_filled(meanwhile[0], 8) && is_filled(meanwhile[1], 9));
    assert_sound();
    give(guard);
    give(meanwhile[0]);
    give(meanwhile[1]);
    assert_sound();
}

static void tick_says_when_nothing_is_left_and_asks_to_be_called(void **state)
{
    (void)state;
    assert_false(fl_region_tick(&region, 4));
    fl_region_set_worker(&region, true);
    assert_false(region.wants_worker);
    assert_false(fl_region_tick(&region, 4));
    assert_true(region.wants_worker); /* the next free calls */
    struct fl_extent *e = take(MIB(2));
    give(e);
    assert_true(fl_region_tick(&region, 4));
    assert_true(region.wants_worker); /* it was raised, and the call is still to come */
    region.wants_worker = false;
    assert_true(fl_region_tick(&region, 4));
    assert_false(region.wants_worker);
}

static void a_worker_is_wanted_once_enough_is_populated(void **state)
{
    (void)state;
    assert_non_null(take(MIB(14)));
    assert_false(region.wants_worker);
    assert_non_null(take(MIB(2)));
    assert_true(region.wants_worker);
    fl_region_set_worker(&region, true);
    assert_false(region.wants_worker);
    fl_region_set_worker(&region, false);
    assert_true(region.wants_worker);
}

static void small_free_pieces_are_watched_until_they_have_been_looked_at(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(1024)), *b = take(KIB(64)), *c = take(KIB(960));
    give(b); /* within one huge page that others use */
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
    }
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(region.held.populated, MIB(2)); /* too little to split it for */
    assert_non_null(a);
    assert_non_null(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(whole_huge_pages_go_then_what_is_free_at_the_edges, each),
        cmocka_unit_test_setup(purged_memory_reads_as_zero_again, each),
        cmocka_unit_test_setup(live_memory_is_never_purged, each),
        cmocka_unit_test_setup(memory_ages_in_ticks_since_its_free, each),
        cmocka_unit_test_setup(memory_given_straight_back_ages_from_then, each),
        cmocka_unit_test_setup(a_neighbour_freed_later_makes_the_whole_younger, each),
        cmocka_unit_test_setup(reuse_stops_the_clock, each),
        cmocka_unit_test_setup(large_extents_go_in_pieces_but_all_in_one_call, each),
        cmocka_unit_test_setup(an_old_large_extent_does_not_wait_for_younger_ones, each),
        cmocka_unit_test_setup(a_refused_purge_keeps_the_memory_and_is_not_repeated_at_once, each),
        cmocka_unit_test_setup(others_work_while_pages_go, each),
        cmocka_unit_test_setup(tick_says_when_nothing_is_left_and_asks_to_be_called, each),
        cmocka_unit_test_setup(a_worker_is_wanted_once_enough_is_populated, each),
        cmocka_unit_test_setup(small_free_pieces_are_watched_until_they_have_been_looked_at, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
