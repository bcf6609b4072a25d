/* Which free extent serves a request, what merges with what, and how a run is cut. */
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    return 0;
}

static struct fl_extent *only_free(void)
{
    struct fl_extent *e = fl_tree_lowest(&region.zones.of[0].populated);

    assert_non_null(e);
    assert_null(fl_tree_higher(e));
    return e;
}

static void lowest_address_wins_over_best_fit(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(256)), *b = take(KIB(64)), *c = take(KIB(128)),
                     *d = take(KIB(64));
    uintptr_t a_base = a->base, c_base = c->base;
    assert_true(a->base < b->base && b->base < c->base && c->base < d->base);
    give(c);
    give(a);
    assert_true(take(KIB(128))->base == a_base);
    assert_true(take(KIB(128))->base == a_base + KIB(128));
    assert_true(take(KIB(128))->base == c_base);
    assert_sound();
}

static void too_small_holes_are_passed_over(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(64)), *b = take(KIB(64)), *c = take(KIB(96)), *d = take(KIB(64));
    uintptr_t c_base = c->base;
    give(a);
    give(c);
    assert_true(take(KIB(80))->base == c_base);
    assert_non_null(b);
    assert_non_null(d);
    assert_sound();
}

static void neighbours_merge_in_any_order(void **state)
{
    static const int order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct fl_extent *e[3] = {take(KIB(64)), take(KIB(128)), take(KIB(64))};
        for (int k = 0; k < 3; k++) {
            give(e[order[i][k]]);
            assert_sound();
        }
        assert_true(only_free()->base == region.space.first);
        assert_int_equal(only_free()->len, fl_page.huge);
        assert_int_equal(fl_region_free(&region).bytes, fl_page.huge);
    }
}

static void clean_memory_stays_known_beside_dirty(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(64));
    assert_int_equal(only_free()->zeroed.len, only_free()->len);
    give(a);
    assert_int_equal(only_free()->zeroed.len, fl_page.huge - KIB(64));
}

static void clean_remainders_beside_dirty_memory_count_as_dirty(void **state)
{
    (void)state;
    struct fl_extent *x = take(MIB(2)), *y = take(KIB(64)), *guard = take(MIB(2) - KIB(64));
    uintptr_t base = x->base;
    fill(y, 0xaa);
    give(x);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(y); /* EMPTY, then 64 KiB of dirt */
    struct fl_extent *e = take(KIB(128));
    assert_true(e->base == base); /* what is left of the huge page is clean, and touches the dirt */
    struct fl_extent *z = take_zeroed(MIB(2) - KIB(64));
    assert_true(z->base == base + KIB(128) && is_filled(z, 0));
    assert_non_null(guard);
    assert_sound();
}

static void empty_and_populated_do_not_merge(void **state)
{
    (void)state;
    give(take(MIB(2)));
    assert_int_equal(only_free()->len, MIB(2));
    struct fl_extent *empty = fl_tree_lowest(&region.zones.of[0].empty);
    assert_true(empty->base == region.space.first + MIB(2));
    assert_true(empty->base + empty->len == fl_range_end(region.space.window.all));
    assert_sound();
}

static void alignment_leaves_the_front_free(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(64)), *b = take_aligned(KIB(64), MIB(1));
    assert_int_equal(b->base % MIB(1), 0);
    assert_sound();
    struct fl_extent *between = take(MIB(1) - KIB(64));
    assert_true(between->base == a->base + KIB(64));
    assert_null(in_window(FAKE_POPULATE, 1)); /* one huge page holds them all */
    assert_sound();
}

static void alignment_in_empty_memory_keeps_whole_huge_pages_empty(void **state)
{
    (void)state;
    struct fl_extent *a = take_aligned(KIB(64), MIB(16));
    assert_int_equal(a->base % MIB(16), 0);
    assert_int_equal(region.held.populated, MIB(2));
    assert_sound();
    struct fl_extent *b = take_aligned(MIB(3), MIB(16));
    assert_int_equal(b->base % MIB(16), 0);
    assert_true(b->base != a->base);
    assert_int_equal(region.held.populated, MIB(6));
    assert_sound();
    give(a);
    give(b);
    assert_sound();
}

static void every_alignment_is_met(void **state)
{
    struct fl_extent *e[40];
    size_t n = 0;
    (void)state;
    for (size_t align = KIB(4); align <= MIB(64); align *= 2) {
        e[n] = take_aligned(KIB(68), align);
        assert_non_null(e[n]);
        assert_int_equal(e[n++]->base % align, 0);
        e[n++] = take(KIB(4) + align / 8 % MIB(1) / KIB(4) * KIB(4));
        assert_sound();
    }
    for (size_t i = 0; i < n; i += 2) {
        give(e[i]);
        assert_sound();
    }
    for (size_t i = 1; i < n; i += 2) {
        give(e[i]);
        assert_sound();
    }
}

static void growth_starts_in_the_populated_neighbour(void **state)
{
    (void)state;
    struct fl_extent *a = take(MIB(2) - KIB(512));
    fake_forget();
    struct fl_extent *b = take(MIB(1));
    assert_true(b->base == a->base + a->len);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(2));
    assert_true(in_window(FAKE_POPULATE, 0)->range.base == region.space.first + MIB(2));
    assert_int_equal(region.held.populated, MIB(4));
    assert_sound();
}

static void growth_prefers_the_run_with_least_to_populate(void **state)
{
    (void)state;
    struct fl_extent *a = take(MIB(2)), *hole = take(MIB(2)), *b = take(MIB(2)), *c = take(MIB(2));
    uintptr_t a_base = a->base;
    give(hole);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(a);
    give(b);
    fake_forget();
    struct fl_extent *e =
        take(MIB(6)); /* populated, EMPTY, populated: 2 MiB to bring in instead of 6 */
    assert_true(e->base == a_base);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(2));
    assert_true(in_window(FAKE_POPULATE, 0)->range.base == a_base + MIB(2));
    assert_non_null(c);
    assert_sound();
}

static void an_aligned_start_behind_the_populated_neighbour(void **state)
{
    (void)state;
    struct fl_extent *a = take_aligned(MIB(2), MIB(8));
    uintptr_t base = a->base;
    fill(a, 0xee);
    /* Populated, then EMPTY: the next multiple of 8 MiB lies beyond the first of the two. */
    give(a);
    struct fl_extent *guard = take(MIB(1)), *b = take_aligned(MIB(3), MIB(8));
    assert_true(b->base >= base && b->base % MIB(8) == 0);
    assert_sound();
    struct fl_extent *z = take_zeroed(MIB(32));
    assert_true(is_filled(z, 0));
    give(z);
    give(b);
    give(guard);
    assert_sound();
}

static void fit_knows_the_longest_below_each_node(void **state)
{
    enum { N = 300 };
    struct fl_extent *e[N];
    (void)state;
    for (size_t i = 0; i < N; i++) {
        e[i] = take(KIB(4) * (1 + i * 7 % 13));
    }
    for (size_t i = 0; i < N; i += 2) {
        give(e[i]);
    }
    for (size_t len = KIB(4); len <= KIB(80); len += KIB(4)) {
        struct fl_extent *want = fl_tree_lowest(&region.zones.of[0].populated);
        while (want != NULL && want->len < len) {
            want = fl_tree_higher(want);
        }
        assert_ptr_equal(fl_fit_first(&region.zones.of[0].populated, len, fl_page.base), want);
    }
    assert_null(fl_fit_first(&region.zones.of[0].populated, SIZE_MAX - 1, MIB(2)));
    assert_sound();
}

static void a_request_beyond_the_window_is_refused(void **state)
{
    (void)state;
    assert_null(take(region.space.window.all.len + fl_page.base));
    assert_null(take(SIZE_MAX - fl_page.base + 1));
    assert_null(take_aligned(KIB(64), (size_t)1 << 62));
    assert_null(take(region.space.window.all.len)); /* its first huge page is no block's */
    assert_sound();
}

static void the_window_is_served_to_its_last_byte(void **state)
{
    (void)state;
    region_clear();
    fake.no_quiet_addresses = true; /* a window of 1 GiB instead of 4 TiB */
    fake.pretend_populate = true;
    fake_file("/proc/meminfo", "MemTotal: 33554432 kB\nMemAvailable: 33554432 kB\n");
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    size_t all = region.space.window.all.len - fl_page.huge;
    struct fl_extent *e = take(all);
    assert_non_null(e);
    assert_true(e->base + e->len == fl_range_end(region.space.window.all));
    assert_sound();
    assert_null(take(KIB(64)));
    give(e);
    assert_sound();
    struct fl_extent *a = take(all - KIB(4)), *b = take(KIB(4));
    assert_non_null(a);
    assert_non_null(b);
    assert_sound();
    give(b);
    give(a);
    assert_sound();
    assert_int_equal(fl_region_purge(&region, 0), all);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lowest_address_wins_over_best_fit, each),
        cmocka_unit_test_setup(too_small_holes_are_passed_over, each),
        cmocka_unit_test_setup(neighbours_merge_in_any_order, each),
        cmocka_unit_test_setup(clean_memory_stays_known_beside_dirty, each),
        cmocka_unit_test_setup(clean_remainders_beside_dirty_memory_count_as_dirty, each),
        cmocka_unit_test_setup(empty_and_populated_do_not_merge, each),
        cmocka_unit_test_setup(alignment_leaves_the_front_free, each),
        cmocka_unit_test_setup(alignment_in_empty_memory_keeps_whole_huge_pages_empty, each),
        cmocka_unit_test_setup(every_alignment_is_met, each),
        cmocka_unit_test_setup(growth_starts_in_the_populated_neighbour, each),
        cmocka_unit_test_setup(growth_prefers_the_run_with_least_to_populate, each),
        cmocka_unit_test_setup(an_aligned_start_behind_the_populated_neighbour, each),
        cmocka_unit_test_setup(fit_knows_the_longest_below_each_node, each),
        cmocka_unit_test_setup(a_request_beyond_the_window_is_refused, each),
        cmocka_unit_test_setup(the_window_is_served_to_its_last_byte, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
