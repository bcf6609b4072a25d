/* realloc in place: what gives way, what is taken over, what stays as it was. test_prop_region
 * asserts that bytes, lengths and figures are right. */
#include "unit/region_case.h"

static const struct fl_region_config lazy_from_8_mib = {.huge = true, .eager_max = MIB(8)};

static int lazy_begin(void **state)
{
    region_begin(&lazy_from_8_mib);
    return 0;
}

TEST(shrinking_frees_the_tail)
{
    struct fl_extent *e = take(MIB(1));
    fill(e, 1);
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_int_equal(e->len, KIB(64));
    struct fl_extent *f = take_zeroed(KIB(512));
    assert_true(f->base == e->base + KIB(64)); /* and it is dirty, so it was cleared */
    assert_true(is_filled(e, 1) && is_filled(f, 0));
}

TEST(growing_takes_over_populated_memory_without_the_kernel)
{
    struct fl_extent *e = take(KIB(64));
    fake_forget();
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_true(fl_region_resize(&region, e, MIB(2)));
    assert_int_equal(e->len, MIB(2));
    assert_int_equal(fake.nlog, 0);
}

TEST(growing_into_empty_memory_populates_it)
{
    struct fl_extent *e = take(KIB(64));
    fake_forget();
    assert_true(fl_region_resize(&region, e, MIB(5)));
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(4));
    assert_int_equal(region.held.populated, MIB(6));
    fill(e, 2);
    assert_sound();
    struct fl_extent *f = take(MIB(1)); /* what is left of the last huge page */
    assert_true(f->base == e->base + MIB(5));
    assert_int_equal(region.held.populated, MIB(6));
}

TEST(a_live_neighbour_blocks_growth)
{
    struct fl_extent *e = take(KIB(64)), *f = take(KIB(64));
    assert_false(fl_region_resize(&region, e, KIB(128)));
    assert_int_equal(e->len, KIB(64));
    assert_true(fl_region_resize(&region, f, KIB(128)));
    assert_false(fl_region_resize(&region, e, KIB(68)));
}

TEST_FROM(NULL, at_the_limit_growth_over_memory_that_is_there_succeeds)
{
    region_begin(&(struct fl_region_config){.huge = true, .limit = MIB(4)});
    struct fl_extent *e = take(MIB(1));
    give(take(MIB(3)));
    assert_int_equal(region.held.populated, MIB(4));
    assert_true(fl_region_resize(&region, e, MIB(4))); /* nothing new is populated */
    assert_int_equal(region.held.populated, MIB(4));
}

TEST_FROM(lazy_begin, lazy_memory_gives_up_whole_huge_pages_in_place)
{
    static const size_t asked[] = {MIB(20), MIB(5), MIB(32)}, len[] = {MIB(20), MIB(6), MIB(32)};
    struct fl_extent *e = take(MIB(32));
    for (size_t i = 0; i < 3; i++) {
        assert_true(fl_region_resize(&region, e, asked[i]));
        assert_int_equal(e->len, len[i]);
        assert_int_equal(e->content, FL_CONTENT_LAZY);
        assert_sound();
    }
}

TEST_FROM(lazy_begin, lazy_memory_grows_in_place_and_stays_lazy)
{
    struct fl_extent *e = take(MIB(32));
    uintptr_t base = e->base;
    size_t populated = region.held.populated;
    bytes(e)[0] = bytes(e)[MIB(32) - 1] = 7;
    fake_forget();
    assert_true(fl_region_resize(&region, e, MIB(34) + KIB(4)));
    assert_true(e->base == base && e->content == FL_CONTENT_LAZY);
    assert_int_equal(e->len, MIB(36)); /* whole huge pages */
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_int_equal(in_window(FAKE_ADVISE, 0)->advice, FL_ADVICE_HUGE);
    assert_int_equal(region.held.populated, populated);
    assert_null(fl_region_find(&region, base + MIB(32)));
    assert_true(bytes(e)[0] == 7 && bytes(e)[MIB(32) - 1] == 7);
    bytes(e)[MIB(36) - 1] = 7;
    assert_sound();
    give(e); /* hollow: all of it goes at once */
    assert_int_equal(fake_purged(), MIB(36));
    assert_int_equal(region.held.populated, populated);
}

TEST_FROM(lazy_begin, lazy_growth_needs_empty_addresses_that_suffice)
{
    struct fl_extent *e = take(MIB(32)), *hole = take_walled(MIB(4));
    assert_true(hole->base == e->base + MIB(32));
    assert_false(fl_region_resize(&region, e, MIB(34))); /* LIVE */
    give(hole);
    assert_false(fl_region_resize(&region, e, MIB(34))); /* populated: dirty, which LAZY is not */
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_false(fl_region_resize(&region, e, MIB(38))); /* too far */
    fake.charge_max = fake_usable() + MIB(1);
    assert_false(fl_region_resize(&region, e, MIB(36))); /* the kernel refuses */
    assert_int_equal(e->len, MIB(32));
    fake.charge_max = SIZE_MAX;
    assert_true(fl_region_resize(&region, e, MIB(36)));
    assert_int_equal(e->len, MIB(36));
}

TEST_FROM(NULL, lazy_memory_does_not_grow_to_an_absurd_size)
{
    region_clear();
    fake.memory_total = MIB(64); /* these are the most */
    assert_int_equal(fl_region_start(&region, &lazy_from_8_mib), 0);
    struct fl_extent *e = take(MIB(32));
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_false(fl_region_resize(&region, e, MIB(66)));
    assert_int_equal(e->len, MIB(64));
}

TEST_FROM(lazy_begin, shrinking_succeeds_without_descriptors_and_keeps_the_tail)
{
    struct fl_extent *e = take(MIB(1)), *lazy = take(MIB(32));
    withhold_descriptors(true);
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_false(fl_region_resize(&region, e, MIB(2)));
    assert_true(fl_region_resize(&region, lazy, MIB(16)));
    assert_true(fl_region_resize(&region, lazy, MIB(15)));
    assert_false(fl_region_resize(&region, lazy, MIB(34)));
    assert_true(e->len == MIB(1) && lazy->len == MIB(32));
    withhold_descriptors(false);
}
