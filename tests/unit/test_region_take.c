/* What a request costs: what is populated, what is cleared, what is left to the kernel to fill on
 * touch, what is refused, and why. */
#include "region/state/budget.h"
#include "unit/region_case.h"

#include <errno.h>

static const struct fl_region_config small_pages = {.huge = false};

/* Of more than that a block is left to the kernel. */
static int eager_begin(void **state)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(16)});
    return 0;
}

TEST(memory_is_there_before_it_is_handed_out)
{
    struct fl_extent *e = take(MIB(3));
    assert_int_equal(bytes_there(e), MIB(3));
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(4));
    assert_true(in_window(FAKE_POPULATE, 0)->range.base == e->base);
    give(e);
    fake_forget();
    assert_ptr_equal(bytes(take(MIB(3))), (void *)region.space.first);
    assert_null(in_window(FAKE_POPULATE, 0)); /* freed memory stays populated */
}

TEST(calloc_of_fresh_memory_clears_nothing)
{
    region_begin(&small_pages);
    fake.pretend_populate = true; /* so whatever becomes resident was touched by us */
    struct fl_extent *e = take_zeroed(MIB(5));
    assert_int_equal(bytes_there(e), 0);
    assert_true(is_filled(e, 0));
}

TEST(calloc_of_a_mixed_run_clears_only_the_dirty_parts)
{
    region_begin(&small_pages);
    struct fl_extent *x = take(MIB(2)), *y = take(MIB(2)), *z = take_walled(MIB(2));
    uintptr_t x_base = x->base;
    fill(x, 1);
    fill(y, 2);
    fill(z, 3);
    give(y);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(x);
    give(z);
    fake.pretend_populate = true;
    struct fl_extent *e = take_zeroed(MIB(6)); /* dirty, EMPTY, dirty */
    assert_true(e->base == x_base);
    assert_int_equal(bytes_there(e), MIB(4));
    assert_true(is_filled(e, 0));
}

TEST(a_kernel_without_populate_gets_a_touch_of_each_page)
{
    for (int how = 0; how < 2; how++) {
        struct fl_region_config c = {.huge = false, .populate_by_touch = how == 0};
        region_begin(&c);
        fake.rc[FAKE_POPULATE] = how == 0 ? 0 : -EINVAL;
        struct fl_extent *e = take_zeroed(MIB(3));
        assert_int_equal(bytes_there(e), MIB(3));
        assert_true(is_filled(e, 0));
        assert_int_equal(stats().populate_errors, 0);
        assert_sound();
    }
}

static struct fl_extent *other; /* what another thread gets while ours populates */

static void take_and_write_the_rest(struct fl_range r)
{
    if (other == NULL && r.len >= MIB(2)) {
        fake.on_populate = NULL;
        other = take(KIB(512));
        fill(other, 0x77);
    }
}

TEST(touching_leaves_what_others_wrote_meanwhile)
{
    region_begin(&small_pages);
    other = NULL;
    fake.rc[FAKE_POPULATE] = -EINVAL;
    fake.on_populate =
        take_and_write_the_rest; /* the rest of the huge page is free to all by then */
    struct fl_extent *e = take(KIB(512));
    assert_non_null(other);
    assert_true(other->base >= e->base + e->len);
    assert_true(is_filled(other, 0x77));
}

TEST(a_refused_population_is_counted_and_served)
{
    fake.rc[FAKE_POPULATE] = -ENOMEM;
    struct fl_extent *e = take_zeroed(MIB(2));
    assert_non_null(e);
    assert_true(is_filled(e, 0));
    assert_int_equal(stats().populate_errors, 1);
}

TEST_FROM(eager_begin, requests_beyond_eager_max_are_left_to_the_kernel)
{
    assert_int_equal(take(MIB(16))->content, FL_CONTENT_POPULATED);
    size_t populated = region.held.populated;
    fake_forget();
    struct fl_extent *e = take_zeroed(MIB(33) - KIB(4));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_int_equal(e->base % fl_page.huge, 0);
    assert_int_equal(e->len, MIB(34)); /* whole huge pages */
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_int_equal(bytes_there(e), 0);
    assert_int_equal(region.held.populated, populated);
    assert_int_equal(stats().lazy, 1);
}

TEST_FROM(eager_begin, sparse_lazy_memory_goes_back_at_once)
{
    struct fl_extent *e = take(MIB(32));
    uintptr_t base = e->base;
    bytes(e)[MIB(5)] = 1;
    give(e);
    assert_int_equal(fake_purged(), MIB(32));
    assert_int_equal(region.held.populated, 0);
    assert_sound();
    e = take_zeroed(MIB(32));
    assert_true(e->base == base && is_filled(e, 0));
}

TEST_FROM(eager_begin, dense_lazy_memory_is_kept)
{
    struct fl_extent *e = take(MIB(18));
    fill(e, 5);
    give(e);
    assert_int_equal(fake_purges(), 0);
    assert_int_equal(region.held.populated, MIB(18));
    assert_sound();
    e = take_zeroed(MIB(9)); /* now served from it, and cleared */
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_true(is_filled(e, 0));
}

TEST_FROM(eager_begin, lazy_memory_whose_residency_is_unknown_goes_back)
{
    struct fl_extent *e = take(MIB(18));
    fill(e, 5);
    fake.rc[FAKE_RESIDENT] = -ENOMEM;
    give(e);
    assert_int_equal(region.held.populated, 0);
    assert_sound();
    e = take(MIB(18));
    fill(e, 5);
    fake.rc[FAKE_UNMAP] = fake.rc[FAKE_DECOMMIT] = -ENOMEM; /* too many maps */
    give(e);
    assert_int_equal(region.held.populated, MIB(18));
    assert_sound();
    e = take_zeroed(MIB(18));
    assert_true(is_filled(e, 0));
}

TEST(the_limit_bounds_what_is_populated)
{
    region_begin(&(struct fl_region_config){.huge = true, .limit = MIB(8)});
    struct fl_extent *a = take(MIB(4));
    assert_non_null(take(MIB(4)));
    assert_null(take(KIB(64)));
    assert_int_equal(stats().refused, 1);
    assert_int_equal(region.held.populated, MIB(8));
    give(a);
    assert_non_null(take(MIB(3)));
    assert_non_null(take(MIB(1)));
    assert_null(take(KIB(64)));
}

TEST(dense_lazy_memory_beyond_the_limit_goes_back)
{
    region_begin(&(struct fl_region_config){.huge = true, .limit = MIB(8)});
    struct fl_extent *e = take(MIB(16));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    fill(e, 5);
    give(e);
    assert_true(region.held.populated <= MIB(8));
}

TEST(short_memory_is_not_populated)
{
    fake_file("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 2048 kB\n");
    assert_null(take(KIB(64))); /* a huge page would be more than there is */
    assert_int_equal(region.held.populated, 0);
}

TEST(the_kernel_is_not_asked_for_each_request)
{
    assert_non_null(take(MIB(2)));
    unsigned asked = fake.count[FAKE_READ_FILE];
    for (int i = 0; i < 20; i++) {
        assert_non_null(take(MIB(2)));
    }
    assert_int_equal(fake.count[FAKE_READ_FILE], asked);
}

static void waste_of(size_t from, size_t step, int n, unsigned percent)
{
    size_t wanted = 0;

    region_begin(NULL);
    fake.pretend_populate = true;
    for (int i = 0; i < n; i++) {
        size_t request = from + (size_t)i * step + 1;
        wanted += request;
        assert_non_null(take(fl_align_up(request, fl_page.base)));
    }
    assert_true(region.held.populated - fl_page.huge < wanted / 100 * (100 + percent));
    assert_sound();
}

TEST(waste_is_bounded)
{
    waste_of(MIB(2), 0, 100, 2);
    waste_of(MIB(2), 12345, 100, 2);
    waste_of(MIB(7) / 2, 54321, 100, 2);
    waste_of(KIB(64), 0, 2000, 12);
    waste_of(KIB(64), 777, 1000, 12);
    waste_of(KIB(32), 0, 2000, 13); /* the smallest threshold that still keeps near the bound */
}

TEST(pages_without_thp_ask_for_none)
{
    region_begin(&(struct fl_region_config){.huge = false});
    assert_non_null(take(MIB(3)));
    assert_int_equal(in_window(FAKE_ADVISE, 0)->advice, FL_ADVICE_NO_HUGE);
}

static uint64_t populating_takes, of_it_lost; /* ns */

static void take_time(struct fl_range r)
{
    fake.now_ns += populating_takes;
    fake.lost_ns += of_it_lost;
}

/* The kernel looks for huge pages: for a while there are base pages. Not where other threads had
 * the processor. */
TEST_FROM(NULL, a_second_for_huge_pages_is_too_much_but_not_a_second_of_others)
{
    for (int others = 0; others < 2; others++) {
        region_begin(NULL);
        fake.now_ns = 1;
        fake.on_populate = take_time;
        populating_takes = 200000000;
        of_it_lost = 0;
        assert_non_null(take(MIB(8)));
        assert_false(fl_populate_backs_off(&region.pages));
        populating_takes = 1000000000;
        of_it_lost = others != 0 ? 900000000 : 0;
        assert_non_null(take(MIB(8)));
        assert_int_equal(fl_populate_backs_off(&region.pages), others == 0);
        assert_int_equal(stats().compactions, others == 0);
    }
}

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
