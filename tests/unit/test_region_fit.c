/* Which free extent serves a request, what merges with what, and how a run is cut. */
#include "cases.h"
#include "unit/region_fixture.h"

static struct fl_extent *only_free(void)
{
    struct fl_extent *e = fl_tree_lowest(&region.zones.of[0].populated);

    assert_non_null(e);
    assert_null(fl_tree_higher(e));
    return e;
}

CASE_AFTER(plain_begin, lowest_address_wins_over_best_fit)
{
    struct fl_extent *a = take(KIB(256)), *b = take(KIB(64)), *c = take(KIB(128));
    assert_true(take(KIB(64))->base > c->base);
    uintptr_t a_base = a->base, c_base = c->base;
    assert_true(a->base < b->base && b->base < c->base);
    give(c);
    give(a);
    assert_true(take(KIB(128))->base == a_base);
    assert_true(take(KIB(128))->base == a_base + KIB(128));
    assert_true(take(KIB(128))->base == c_base);
    assert_sound();
}

CASE_AFTER(plain_begin, clean_memory_stays_known_beside_dirty)
{
    struct fl_extent *a = take(KIB(64));
    assert_int_equal(only_free()->zeroed.len, only_free()->len);
    give(a);
    assert_int_equal(only_free()->zeroed.len, fl_page.huge - KIB(64));
}

CASE_AFTER(plain_begin, alignment_leaves_the_front_free)
{
    struct fl_extent *a = take(KIB(64)), *b = take_aligned(KIB(64), MIB(1));
    assert_int_equal(b->base % MIB(1), 0);
    assert_true(take(MIB(1) - KIB(64))->base == a->base + KIB(64));
    assert_null(in_window(FAKE_POPULATE, 1)); /* one huge page holds them all */
    assert_sound();
}

CASE_AFTER(plain_begin, alignment_in_empty_memory_keeps_whole_huge_pages_empty)
{
    for (int i = 0; i < 2; i++) {
        struct fl_extent *e = take_aligned(i == 0 ? KIB(64) : MIB(3), MIB(16));
        assert_int_equal(e->base % MIB(16), 0);
        assert_int_equal(region.held.populated, i == 0 ? MIB(2) : MIB(6));
        assert_sound();
    }
}

CASE_AFTER(plain_begin, growth_starts_in_the_populated_neighbour)
{
    struct fl_extent *a = take(MIB(2) - KIB(512));
    fake_forget();
    struct fl_extent *b = take(MIB(1));
    assert_true(b->base == a->base + a->len);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(2));
    assert_true(in_window(FAKE_POPULATE, 0)->range.base == region.space.first + MIB(2));
    assert_int_equal(region.held.populated, MIB(4));
    assert_sound();
}

/* Populated, EMPTY, populated: 2 MiB to bring in instead of 6. */
CASE_AFTER(plain_begin, growth_prefers_the_run_with_least_to_populate)
{
    struct fl_extent *a = take(MIB(2)), *hole = take(MIB(2)), *b = take(MIB(2));
    uintptr_t a_base = a->base;
    assert_non_null(take(MIB(2)));
    give(hole);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(a);
    give(b);
    fake_forget();
    assert_true(take(MIB(6))->base == a_base);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(2));
    assert_true(in_window(FAKE_POPULATE, 0)->range.base == a_base + MIB(2));
    assert_sound();
}

CASE_AFTER(plain_begin, a_request_beyond_the_window_is_refused)
{
    assert_null(take(region.space.window.all.len + fl_page.base));
    assert_null(take(SIZE_MAX - fl_page.base + 1));
    assert_null(take_aligned(KIB(64), (size_t)1 << 62));
    assert_null(take(region.space.window.all.len)); /* its first huge page is no block's */
    assert_null(fl_fit_first(&region.zones.of[0].populated, SIZE_MAX - 1, MIB(2)));
    assert_sound();
}

CASE_AFTER(plain_begin, the_window_is_served_to_its_last_byte)
{
    region_clear();
    fake.no_quiet_addresses = true; /* a window of 1 GiB instead of 4 TiB */
    fake.pretend_populate = true;
    fake_file("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 33554432 kB\n");
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    size_t all = region.space.window.all.len - fl_page.huge;
    struct fl_extent *e = take(all);
    assert_non_null(e);
    assert_true(e->base + e->len == fl_range_end(region.space.window.all));
    assert_null(take(KIB(64)));
    give(e);
    struct fl_extent *a = take(all - KIB(4)), *b = take(KIB(4));
    assert_sound();
    give(b);
    give(a);
    assert_int_equal(fl_region_purge(&region, 0), all);
    assert_sound();
}

CASES_MAIN()
