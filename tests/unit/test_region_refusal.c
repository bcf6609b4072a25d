/* What is refused, or handed out for the kernel to fill on touch, and why. */
#include "region/state/budget.h"
#include "unit/region_case.h"

/* Half of the machine is in use, or nearly. */
static const char nearly_half[] =
    "MemTotal: 2097152 kB\nMemAvailable: 1052672 kB\n"; /* 4 MiB less */
static const char half_used[] = "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n";

TEST(may_populate_says_why_not)
{
    static const struct {
        size_t eager_max, limit, len, fresh;
        enum fl_refusal why;
    } table[] = {
        {MIB(64), 0, MIB(2), MIB(4), FL_REFUSED_NOT},
        {MIB(64), 0, MIB(2), MIB(4) + KIB(4), FL_REFUSED_HALF},
        {MIB(64), 0, MIB(64), MIB(64), FL_REFUSED_HALF},
        {MIB(64), 0, MIB(64) + KIB(4), MIB(2), FL_REFUSED_LENGTH},
        {MIB(64), 0, MIB(64), MIB(514), FL_REFUSED_HALF},
        {MIB(64), 0, MIB(64), MIB(514) + KIB(4), FL_REFUSED_MEMORY},
        {MIB(64), MIB(8), MIB(64), MIB(8) + KIB(4), FL_REFUSED_MEMORY},
        {0, 0, KIB(512), MIB(2), FL_REFUSED_NOT},
        {0, 0, KIB(512) + KIB(4), MIB(2), FL_REFUSED_LENGTH}, /* an eighth of 4 MiB */
        {0, 0, KIB(512), MIB(6), FL_REFUSED_HALF},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct fl_region_config c = {
            .huge = true, .eager_max = table[i].eager_max, .limit = table[i].limit};
        region_begin(&c);
        fake_file("/proc/meminfo", nearly_half);
        fl_region_lock(&region);
        enum fl_refusal why = fl_region_may_populate(&region, table[i].len, table[i].fresh, NULL);
        if (why == FL_REFUSED_LOOK) {
            assert_true(fl_look_unlocking(&region));
            why = fl_region_may_populate(&region, table[i].len, table[i].fresh, &region.look.noted);
        }
        fl_region_unlock(&region);
        assert_int_equal(why, table[i].why);
    }
}

TEST(beyond_half_small_requests_take_what_they_touch)
{
    fake_file("/proc/meminfo", half_used);
    struct fl_extent *e = take(MIB(3));
    assert_non_null(e);
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_int_equal(in_window(FAKE_ADVISE, 0)->advice, FL_ADVICE_NO_HUGE);
    assert_null(in_window(FAKE_ADVISE, 1));
    assert_int_equal(bytes_there(e), 0);
    bytes(e)[MIB(1)] = 1;
    assert_int_equal(bytes_there(e), KIB(4));
    assert_true(stats().lazy == 1 && stats().stalls == 0 && stats().populate_bytes == 0);
    assert_int_equal(region.held.populated, MIB(4)); /* it is committed, so it counts */
    assert_sound();
    give(e);
    e = take_zeroed(MIB(3)); /* and is first fit's from then on */
    assert_true(is_filled(e, 0));
}

TEST(beyond_half_large_requests_are_lazy_in_huge_pages)
{
    fake_file("/proc/meminfo", half_used);
    assert_int_equal(take(MIB(16) - KIB(4))->content, FL_CONTENT_POPULATED);
    fake_forget();
    assert_int_equal(take(MIB(16))->content, FL_CONTENT_LAZY);
    assert_int_equal(in_window(FAKE_ADVISE, 0)->advice, FL_ADVICE_HUGE);
    assert_null(in_window(FAKE_POPULATE, 0));
}

TEST(on_touch_growth_takes_what_is_there_as_it_is)
{
    struct fl_extent *x = take(MIB(2)), *y = take_walled(MIB(2));
    uintptr_t base = x->base;
    fill(x, 1);
    fill(y, 2);
    give(y);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(x);
    fake_file("/proc/meminfo", half_used);
    region.budget.left = 0;
    fake_forget();
    struct fl_extent *e = take_zeroed(MIB(3)); /* dirty, then EMPTY */
    assert_true(e->base == base);
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_int_equal(bytes_there(e), MIB(2));
    assert_true(is_filled(e, 0));
}

TEST(small_eager_max_grows_on_touch_too)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(1)});
    assert_non_null(take(MIB(1)));
    assert_int_equal(fake.count[FAKE_POPULATE] != 0, 1);
    fake_forget();
    struct fl_extent *e = take(MIB(4));
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_null(in_window(FAKE_POPULATE, 0));
}

TEST(under_a_limit_small_requests_are_left_to_the_next)
{
    region_begin(&(struct fl_region_config){.huge = true, .limit = MIB(4)});
    assert_non_null(take(MIB(4)));
    assert_null(take(MIB(16) - KIB(4)));
    assert_int_equal(region.held.populated, MIB(4));
    assert_int_equal(take(MIB(16))->content, FL_CONTENT_LAZY);
}

TEST(only_what_was_missing_counts_as_populated)
{
    struct fl_extent *x = take(MIB(2)), *y = take(MIB(2)), *z = take_walled(MIB(2));
    give(x);
    give(z);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    give(y);
    uint64_t before = stats().populate_bytes;
    fake_forget();
    assert_non_null(take(MIB(5))); /* EMPTY, dirty, EMPTY */
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(2));
    assert_int_equal(in_window(FAKE_POPULATE, 1)->range.len, MIB(2));
    assert_int_equal(stats().populate_bytes - before, MIB(4));
}

TEST(absurd_sizes_are_refused_before_anything_is_asked)
{
    region_clear();
    fake.memory_total = MIB(48);
    fake.swap_total = MIB(16);
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    fake_forget();
    assert_null(take(MIB(64) + KIB(4)));
    assert_null(take_aligned(MIB(64) + KIB(4), MIB(2)));
    assert_null(take(SIZE_MAX - KIB(4) + 1));
    assert_int_equal(fake.nlog, 0);
    assert_non_null(take(MIB(64)));
}

TEST(nothing_is_absurd_where_the_memory_is_unknown)
{
    region_clear();
    fake.memory_total = 0;
    fake.pretend_populate = true;
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    assert_non_null(take(fl_align_down(region.space.window.all.len / 2, fl_page.huge)));
}
