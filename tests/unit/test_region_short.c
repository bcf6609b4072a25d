/* Little memory is left, free extents are to give what a request needs, and their pages do not
 * move: then they go back to the kernel before it gives others. */
#include "unit/region_case.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct fl_extent *guard; /* the last of them */

/* Four extents of 4 MiB, the first and the third free. */
static void two_free(const struct fl_region_config *c)
{
    struct fl_extent *e[2];

    region_begin(c);
    for (size_t i = 0; i < 2; i++) {
        e[i] = take(MIB(4));
        guard = take_guard(MIB(4));
        fill(e[i], 0xee);
    }
    give(e[0]);
    give(e[1]);
    fake_forget();
}

static const struct fl_region_config limited = {.huge = true, .limit = MIB(16)};

static void assert_at_the_limit(void)
{
    assert_int_equal(region.held.populated, MIB(16));
    assert_guarded();
}

TEST_FROM(NULL, the_limit_holds_though_pages_do_not_move)
{
    static const size_t moved[] = {0, KIB(4), MIB(2), MIB(3), MIB(4) - KIB(4)};
    for (size_t i = 0; i < sizeof moved / sizeof moved[0]; i++) {
        two_free(&limited);
        refuse_moves(moved[i], -EBUSY);
        assert_true(is_filled(take_zeroed(MIB(8)), 0));
        assert_int_equal(fl_region_free(&region).huge, 0);
        assert_at_the_limit();
    }
    two_free(&limited);
    fake.rc[FAKE_MOVE_BEGIN] = -EMFILE;
    assert_true(is_filled(take_zeroed(MIB(8)), 0));
    assert_at_the_limit();
}

TEST_FROM(NULL, growth_keeps_to_the_limit_too)
{
    two_free(&limited);
    fake.rc[FAKE_MOVE] = -EBUSY;
    assert_true(fl_region_resize(&region, guard, MIB(11)));
    memset(bytes(guard), 0x11, MIB(11));
    assert_at_the_limit();
}

static size_t purged_before;

static void note_order(struct fl_range r)
{
    if (r.len >= MIB(4) && purged_before == SIZE_MAX) {
        purged_before = fake_purged();
    }
}

/* No limit is set, but the machine (or a control group) is nearly full: what does not move must not
 * be held twice. */
TEST_FROM(NULL, what_does_not_move_is_not_held_twice)
{
    static char text[96];
    for (size_t left_kib = 4096; left_kib <= 65536; left_kib *= 4) {
        two_free(NULL);
        (void)snprintf(text, sizeof text, "MemTotal: 65536 kB\nMemAvailable: %zu kB\n", left_kib);
        fake_file("/proc/meminfo", text);
        region.budget.left = 0;
        region.held.in_use_peak = 0;
        purged_before = SIZE_MAX;
        fake.rc[FAKE_MOVE] = -EBUSY;
        fake.on_populate = note_order;
        assert_true(is_filled(take_zeroed(MIB(8)), 0));
        fake.on_populate = NULL;
        bool plenty = left_kib == 65536;
        assert_int_equal(region.held.populated, plenty ? MIB(24) : MIB(16));
        assert_int_equal(purged_before, plenty ? 0 : MIB(8));
        assert_guarded();
    }
}

static const struct fl_region_config with_stock = {
    .huge = true, .limit = MIB(64), .stock = MIB(32)};

TEST_FROM(NULL, the_stock_goes_too)
{
    if (!stock_filled(&with_stock)) {
        return;
    }
    fake.rc[FAKE_MOVE] = -EBUSY;
    assert_true(is_filled(take_zeroed(MIB(20)), 0));
    assert_true(region.held.populated <= MIB(64));
    assert_stock(0);
}

static struct fl_extent *other;

static void *take_some(void *arg)
{
    other = take(MIB(2));
    return arg;
}

static int another_takes(struct fl_range from, uintptr_t to, size_t *most)
{
    fake.on_move = NULL;
    run_beside(take_some, NULL);
    return 0;
}

TEST_FROM(NULL, pages_on_their_way_count_once)
{
    static const struct fl_region_config c = {.huge = true, .limit = MIB(18)};
    two_free(&c);
    region.held.in_use_peak = 0;
    other = NULL;
    fake.on_move = another_takes;
    assert_non_null(take(MIB(8)));
    assert_non_null(other); /* 2 MiB are left, though 8 are in two places */
    assert_int_equal(region.held.populated, MIB(18));
}
