/* The window: how large under which limits, what a refusal costs. */
#include "unit/region_case.h"

#include <errno.h>

enum { METADATA = 512 << 10 }; /* as window.c and vspace.c take it at first */

static const struct fl_region_config plain = {.huge = true};

static int each(void **state)
{
    region_clear();
    return 0;
}

static size_t parts(void)
{
    return region.space.window.all.len + region.space.pagemap.all.len +
           region.space.descriptors.span.all.len;
}

static bool at_quiet_addresses(void)
{
    fake_install();
    return !fake.no_quiet_addresses;
}

TEST_WHERE(at_quiet_addresses, each, start_at_quiet_addresses_maps_nothing)
{
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_false(region.space.window.reserved);
    assert_int_equal(region.space.window.all.len, (size_t)4 << 40);
    assert_int_equal(region.space.window.all.base % fl_page.huge, 0);
    assert_int_equal(fake_mapped(), 0);
    assert_int_equal(fake.count[FAKE_RESERVE], 0);
    assert_int_equal(fake.count[FAKE_POPULATE], 0);
    uintptr_t base = region.space.window.all.base;
    region_clear();
    fake.entropy *= 3;
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_true(region.space.window.all.base != base); /* as hard to guess as mmap's */
}

TEST_WHERE(at_quiet_addresses, each, the_window_is_eight_times_the_memory)
{
    fake.memory_total = (uint64_t)3 << 38;
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_int_equal(region.space.window.all.len, (size_t)6 << 40);
    region_clear();
    fake.memory_total = (uint64_t)8 << 40;
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_int_equal(region.space.window.all.len, (size_t)8 << 40);
}

/* TiB; docs/internals/regions.md says who lies there. Not where those do that take only what is
 * free. */
static const unsigned others[][2] = {
#if defined(__aarch64__)
    {0, 128},
    {170, 256},
#else
    {0, 64},
    {80, 128},
#endif
};

TEST_WHERE(at_quiet_addresses, NULL, it_lies_where_no_other_does)
{
    for (uint64_t i = 0; i < 64; i++) {
        region_clear();
        fake.memory_total = (uint64_t)8 << 40;
        fake.entropy = (i << 40) - (i & 1);
        assert_int_equal(fl_region_start(&region, &plain), 0);
        uintptr_t from = region.space.window.all.base - ((uintptr_t)1 << 40); /* the planner's */
        uintptr_t to = fl_range_end(region.space.descriptors.span.all) + ((uintptr_t)1 << 39);
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
            assert_true(to <= (uintptr_t)others[k][0] << 40 || from >= (uintptr_t)others[k][1]
                                                                           << 40);
        }
    }
}

TEST_WHERE(at_quiet_addresses, NULL, a_taken_address_makes_it_try_another)
{
    for (unsigned part = 1; part <= 3; part++) { /* window, pagemap, descriptors */
        region_clear();
        fake_fail_at(part, 1u << FAKE_MAP_AT);
        assert_int_equal(fl_region_start(&region, &plain), 0);
        assert_true(fake_fired());
        assert_false(region.space.window.reserved);
        assert_int_equal(fake_mapped(), 0);
    }
}

static void assert_nothing_left(void)
{
    assert_int_equal(fake_mapped(), 0);
    assert_int_equal(region.space.window.all.len, 0);
}

static int reserved(void **state)
{
    region_clear();
    fake.no_quiet_addresses = true;
    return 0;
}

TEST_FROM(reserved, refusals_halve_the_window_until_it_fits)
{
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_true(region.space.window.reserved);
    assert_int_equal(region.space.window.all.len,
                     (size_t)1 << 30); /* 4 TiB wanted, 1100 MiB to be had */
    assert_int_equal(fake_nth(FAKE_RESERVE, 0)->range.len, ((size_t)1 << 42) + MIB(2));
    assert_int_equal(fake_mapped(), parts());
    assert_int_equal(fake_usable(), 0);
    assert_int_equal(region.space.window.all.base % MIB(2), 0);
}

TEST_FROM(NULL, a_refused_part_gives_the_others_back)
{
    for (unsigned skip = 1; skip <= 2; skip++) { /* pagemap, descriptors */
        (void)reserved(state);
        fake.reserve_skip = skip;
        fake.reserve_refuse = 1;
        assert_int_equal(fl_region_start(&region, &plain), 0);
        assert_int_equal(region.space.window.all.len, MIB(512));
        assert_int_equal(fake_mapped(), parts());
    }
}

TEST_FROM(reserved, the_smallest_window_is_64_mib)
{
    fake.reserve_max = MIB(66);
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_int_equal(region.space.window.all.len, MIB(64));
    (void)reserved(state);
    fake.reserve_max = MIB(65);
    assert_int_equal(fl_region_start(&region, &plain), -ENOMEM);
    assert_nothing_left();
}

TEST_FROM(reserved, without_metadata_there_is_no_window_and_nothing_mapped)
{
    fake.reserve_skip = 1;
    fake.reserve_refuse = 1000;
    fake.reserve_max = MIB(70);
    assert_int_equal(fl_region_start(&region, &plain), -ENOMEM);
    assert_nothing_left();
}

TEST_FROM(each, what_is_charged_is_what_is_used)
{
    assert_int_equal(fl_region_start(&region, &plain), 0);
    assert_int_equal(fake_usable(), 0);
    assert_int_equal(region.space.descriptors.used, 0);
    assert_null(fl_region_check(&region));
    struct fl_extent *e = take(KIB(64));
    assert_int_equal(fake_usable(), fl_page.huge + METADATA);
    give(e);
    e = take(MIB(40));
    assert_int_equal(fake_usable(), MIB(40) + METADATA);
    give(e);
    assert_int_equal(fl_region_purge(&region, 0), MIB(40));
    assert_int_equal(fake_usable(), METADATA);
}

TEST_WHERE(at_quiet_addresses, each, a_mapping_of_others_in_the_window_is_left_alone)
{
    assert_int_equal(fl_region_start(&region, &plain), 0);
    struct fl_range theirs = {region.space.first + MIB(4), KIB(4)};
    assert_int_equal(fl_sys_linux.map_at(theirs), 0);
    *(unsigned char *)theirs.base = 9;
    struct fl_extent *a = take(MIB(4)), *b = take(MIB(4));
    assert_true(a->base == region.space.first);
    assert_true(b->base > theirs.base);
    fill(b, 1);
    struct fl_extent *lazy = take(MIB(1200)); /* more than an eighth of what is available */
    assert_int_equal(lazy->content, FL_CONTENT_LAZY);
    assert_true(lazy->base > theirs.base);
    assert_sound();
    give(a);
    give(b);
    give(lazy);
    (void)fl_region_purge(&region, 0);
    assert_int_equal(*(unsigned char *)theirs.base, 9);
    assert_null(fl_region_find(&region, theirs.base));
    assert_int_equal(fl_sys_linux.unmap(theirs), 0);
}
