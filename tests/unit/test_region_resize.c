/* realloc in place: what gives way, what is taken over, what stays as it was. */
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <string.h>

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    return 0;
}

static void shrinking_frees_the_tail(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(1));
    fill(e, 1);
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_int_equal(e->len, KIB(64));
    assert_true(is_filled(e, 1));
    assert_sound();
    assert_int_equal(stats().in_use_bytes, KIB(64));
    struct fl_extent *f = take_zeroed(KIB(512));
    assert_true(f->base == e->base + KIB(64)); /* and it is dirty, so it was cleared */
    assert_true(is_filled(f, 0));
    give(e);
    give(f);
    assert_sound();
}

static void growing_takes_over_populated_memory_without_the_kernel(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(64));
    fill(e, 1);
    fake_forget();
    assert_true(fl_region_resize(&region, e, MIB(2)));
    assert_int_equal(e->len, MIB(2));
    assert_int_equal(fake.nlog, 0);
    assert_int_equal(bytes(e)[KIB(64) - 1], 1);
    assert_int_equal(bytes(e)[KIB(64)], 0);
    assert_sound();
    assert_ptr_equal(fl_region_find(&region, e->base), e);
}

static void growing_into_empty_memory_populates_it(void **state)
{
    (void)state;
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
    assert_sound();
}

static void growing_over_a_run_of_three(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(2)), *x = take(MIB(2)), *y = take(MIB(2)), *z = take(MIB(2)),
                     *guard = take(MIB(2));
    give(y);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(x);
    give(z);
    fill(e, 3);
    assert_true(fl_region_resize(&region, e, MIB(7)));
    assert_int_equal(e->len, MIB(7));
    assert_int_equal(bytes(e)[MIB(2) - 1], 3);
    fill(e, 4);
    assert_sound();
    assert_non_null(guard);
    give(e);
    assert_sound();
}

static void a_live_neighbour_blocks_growth(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(64)), *f = take(KIB(64));
    assert_false(fl_region_resize(&region, e, KIB(128)));
    assert_int_equal(e->len, KIB(64));
    assert_int_equal(stats().in_use_bytes, KIB(128));
    assert_sound();
    assert_true(fl_region_resize(&region, f, KIB(128)));
    assert_false(fl_region_resize(&region, e, KIB(68)));
    assert_sound();
}

static void growth_that_the_limit_forbids_changes_nothing(void **state)
{
    struct fl_region_config c = {.huge = true, .limit = MIB(4)};
    (void)state;
    region_begin(&c);
    struct fl_extent *e = take(MIB(2));
    assert_false(fl_region_resize(&region, e, MIB(6)));
    assert_int_equal(e->len, MIB(2));
    assert_int_equal(region.held.populated, MIB(2));
    assert_sound();
}

static void at_the_limit_growth_over_memory_that_is_there_succeeds(void **state)
{
    struct fl_region_config c = {.huge = true, .limit = MIB(4)};
    (void)state;
    region_begin(&c);
    struct fl_extent *e = take(MIB(1));
    give(take(MIB(3)));
    assert_int_equal(region.held.populated, MIB(4));
    assert_true(fl_region_resize(&region, e, MIB(4))); /* nothing new is populated */
    assert_int_equal(region.held.populated, MIB(4));
    assert_sound();
}

static void growth_that_the_kernel_refuses_changes_nothing(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(2));
    fake.charge_max = fake_usable() + MIB(1);
    assert_false(fl_region_resize(&region, e, MIB(6)));
    assert_int_equal(e->len, MIB(2));
    assert_int_equal(region.held.populated, MIB(2));
    assert_sound();
}

static void lazy_memory_gives_up_whole_huge_pages_in_place(void **state)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};
    (void)state;
    region_begin(&c);
    struct fl_extent *e = take(MIB(32));
    assert_true(fl_region_resize(&region, e, MIB(20)));
    assert_int_equal(e->len, MIB(20));
    assert_true(fl_region_resize(&region, e, MIB(5)));
    assert_int_equal(e->len, MIB(6));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_sound();
    assert_true(fl_region_resize(&region, e, MIB(32)));
    assert_int_equal(e->len, MIB(32));
    assert_sound();
}

static void lazy_memory_grows_in_place_and_stays_lazy(void **state)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};
    (void)state;
    region_begin(&c);
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
    assert_int_equal(stats().in_use_bytes, MIB(36));
    assert_ptr_equal(fl_region_find(&region, base), e);
    assert_null(fl_region_find(&region, base + MIB(32)));
    assert_true(bytes(e)[0] == 7 && bytes(e)[MIB(32) - 1] == 7);
    bytes(e)[MIB(36) - 1] = 7;
    assert_sound();
    give(e); /* hollow: all of it goes at once */
    assert_int_equal(fake_purged(), MIB(36));
    assert_int_equal(region.held.populated, populated);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_sound();
}

static void lazy_growth_needs_empty_addresses_that_suffice(void **state)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};
    (void)state;
    region_begin(&c);
    struct fl_extent *e = take(MIB(32)), *hole = take(MIB(4)), *guard = take(MIB(2));
    assert_true(hole->base == e->base + MIB(32));
    assert_false(fl_region_resize(&region, e, MIB(34))); /* LIVE */
    give(hole);
    assert_false(fl_region_resize(&region, e, MIB(34))); /* populated: dirty, which LAZY is not */
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_false(fl_region_resize(&region, e, MIB(38))); /* too far */
    fake.charge_max = fake_usable() + MIB(1);
    assert_false(fl_region_resize(&region, e, MIB(36))); /* the kernel refuses */
    assert_int_equal(e->len, MIB(32));
    assert_int_equal(stats().in_use_bytes, MIB(34));
    assert_sound();
    fake.charge_max = SIZE_MAX;
    assert_true(fl_region_resize(&region, e, MIB(36)));
    assert_int_equal(e->len, MIB(36));
    assert_sound();
    assert_non_null(guard);
}

static void lazy_memory_does_not_grow_to_an_absurd_size(void **state)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};
    (void)state;
    region_clear();
    fake.memory_total = MIB(64); /* these are the most */
    assert_int_equal(fl_region_start(&region, &c), 0);
    struct fl_extent *e = take(MIB(32));
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_false(fl_region_resize(&region, e, MIB(66)));
    assert_int_equal(e->len, MIB(64));
    assert_sound();
}

static void shrinking_succeeds_without_descriptors_and_keeps_the_tail(void **state)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};
    (void)state;
    region_begin(&c);
    struct fl_extent *e = take(MIB(1)), *lazy = take(MIB(32));
    size_t used = region.space.descriptors.used;
    SLIST_INIT(&region.space.descriptors.stash.spare);
    region.space.descriptors.stash.n = 0;
    region.space.descriptors.used = UINT32_MAX; /* no more are to be had */
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_int_equal(e->len, MIB(1));
    assert_false(fl_region_resize(&region, e, MIB(2)));
    assert_true(fl_region_resize(&region, lazy, MIB(16)));
    assert_true(fl_region_resize(&region, lazy, MIB(15)));
    assert_false(fl_region_resize(&region, lazy, MIB(34)));
    assert_true(e->len == MIB(1) && lazy->len == MIB(32));
    region.space.descriptors.used = used;
    assert_sound();
}

static void the_same_size_is_no_work(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(1));
    fake_forget();
    assert_true(fl_region_resize(&region, e, MIB(1)));
    assert_int_equal(fake.nlog, 0);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(shrinking_frees_the_tail, each),
        cmocka_unit_test_setup(growing_takes_over_populated_memory_without_the_kernel, each),
        cmocka_unit_test_setup(growing_into_empty_memory_populates_it, each),
        cmocka_unit_test_setup(growing_over_a_run_of_three, each),
        cmocka_unit_test_setup(a_live_neighbour_blocks_growth, each),
        cmocka_unit_test_setup(growth_that_the_limit_forbids_changes_nothing, each),
        cmocka_unit_test_setup(at_the_limit_growth_over_memory_that_is_there_succeeds, each),
        cmocka_unit_test_setup(growth_that_the_kernel_refuses_changes_nothing, each),
        cmocka_unit_test_setup(lazy_memory_gives_up_whole_huge_pages_in_place, each),
        cmocka_unit_test_setup(lazy_memory_grows_in_place_and_stays_lazy, each),
        cmocka_unit_test_setup(lazy_growth_needs_empty_addresses_that_suffice, each),
        cmocka_unit_test_setup(lazy_memory_does_not_grow_to_an_absurd_size, each),
        cmocka_unit_test_setup(shrinking_succeeds_without_descriptors_and_keeps_the_tail, each),
        cmocka_unit_test_setup(the_same_size_is_no_work, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
