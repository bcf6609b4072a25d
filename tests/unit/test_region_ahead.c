/* Long new blocks that are touched from the front on: what comes ahead of the touch, how far, and
 * when nothing does. What is in memory is asked of the real kernel. */
#include "cases.h"
#include "unit/region_fixture.h"

#include "region/supply/watch.h"

#include <errno.h>

static unsigned long cpus; /* a bit each */

static int cpus_there(struct fl_cpu_ids *out)
{
    *out = (struct fl_cpu_ids){{cpus}};
    return 0;
}

static unsigned looks_at_pages;

static int counted_survey(struct fl_range r, size_t *out_present, size_t *out_own)
{
    looks_at_pages++;
    return fl_sys_linux.survey(r, out_present, out_own);
}

static int counted_touched(struct fl_range r, struct fl_range out[], unsigned most)
{
    looks_at_pages++;
    return fl_sys_linux.touched(r, out, most);
}

/* As Linux 6.7 to 6.15, where the huge page of zeros counts as touched. */
static int touched_with_zeros(struct fl_range r, struct fl_range out[], unsigned most)
{
    size_t there = 0;

    (void)most;
    for (out[0] = (struct fl_range){r.base, 0}; out[0].len < r.len; out[0].len += MIB(2)) {
        struct fl_range page = {r.base + out[0].len, MIB(2)};
        if (fl_sys_linux.resident(page, &there) != 0 || there == 0) {
            break;
        }
    }
    return out[0].len != 0 ? 1 : 0;
}

static int no_scan(struct fl_range r, struct fl_range *out)
{
    (void)r, (void)out;
    return -ENOSYS;
}

/* What is in memory, and whose, is the real kernel's to say. */
static int ahead_begin(void **state)
{
    (void)waiting_begin(state);
    fl_sys.survey = counted_survey;
    fl_sys.touched = counted_touched;
    fl_sys.find_split = fl_sys_linux.find_split;
    fl_nodes.cpus = cpus_there;
    cpus = 3;
    looks_at_pages = 0;
    return 0;
}

/* As a kernel before Linux 6.7. */
static int old_begin(void **state)
{
    (void)ahead_begin(state);
    fl_sys.find_split = no_scan;
    return 0;
}

/* As a kernel from Linux 6.7 on, and before 6.16. */
static int early_scan_begin(void **state)
{
    (void)ahead_begin(state);
    fl_sys.touched = touched_with_zeros;
    return 0;
}

static bool can_scan(void)
{
    struct fl_range all = {region.space.first, MIB(2)}, unused;

    return fl_sys_linux.find_split(all, &unused) != -ENOSYS;
}

static size_t huge_there(const struct fl_extent *e, size_t at)
{
    size_t there = 0;

    assert_int_equal(
        fl_sys.resident((struct fl_range){fl_align_up(e->base, fl_page.huge) + at, MIB(2)}, &there),
        0);
    return there;
}

static void touch_huge(struct fl_extent *e, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += KIB(4)) {
        touch_at(e, fl_align_up(e->base, fl_page.huge) - e->base + at);
    }
}

/* The worker's job until it would rest. */
static uint64_t look(void)
{
    uint64_t in = fl_region_ahead(&region);

    for (int i = 0; i < 1000 && in == 0; i++) {
        in = fl_region_ahead(&region);
    }
    return in;
}

static void pass(uint64_t ns)
{
    fake.now_ns += ns;
}

/* A block of which so much was touched since the worker looked at it first. */
static struct fl_extent *begun(size_t len, size_t touched)
{
    struct fl_extent *e = take(len);

    assert_true(atomic_load(&region.wants_worker));
    assert_in_range(look(), 1, 1000000);
    touch_huge(e, 0, touched);
    pass(1000000);
    return e;
}

CASE_AFTER(ahead_begin, what_is_touched_in_order_comes_ahead)
{
    struct fl_extent *e = begun(MIB(256), MIB(48));
    size_t before = bytes_there(e);
    assert_in_range(look(), 1, 1000000);
    size_t ahead = bytes_there(e) - before;
    assert_in_range(ahead, MIB(4), MIB(256) / 20 + MIB(16));
    assert_int_equal(huge_there(e, MIB(48)), 0); /* next to the program: its own */
    assert_int_equal(huge_there(e, MIB(50)), 0);
    assert_int_equal(huge_there(e, MIB(52)), MIB(2));
    assert_settled();
}
CASE_AGAIN(old_begin, what_is_touched_in_order_comes_ahead)

CASE_AFTER(ahead_begin, all_of_it_comes_while_the_program_goes_on)
{
    struct fl_extent *e = begun(MIB(512), MIB(48));
    size_t by_worker = 0;

    for (size_t at = MIB(48); at < MIB(512); at += MIB(2)) {
        (void)look();
        by_worker += huge_there(e, at) != 0 ? 1 : 0;
        touch_huge(e, at, at + MIB(2));
        assert_true(bytes_there(e) <= at + MIB(2) + MIB(512) / 20 + MIB(16));
        pass(300000);
    }
    assert_in_range(by_worker, 100, 232);
    assert_true(look() == UINT64_MAX);
    assert_settled();
}
CASE_AGAIN(old_begin, all_of_it_comes_while_the_program_goes_on)

/* What the worker spends on looks it does not spend on clearing. */
CASE_AFTER(ahead_begin, few_looks_are_made)
{
    struct fl_extent *e = begun(MIB(512), MIB(200));
    size_t before = bytes_there(e);
    looks_at_pages = 0;
    (void)look();
    size_t came = (bytes_there(e) - before) / MIB(2);
    assert_in_range(came, 4, 100);
    assert_true(!can_scan() || looks_at_pages <= 4 + came / 2);
}

CASE_AFTER(ahead_begin, nothing_comes_where_others_are_touched)
{
    struct fl_extent *e = begun(MIB(256), MIB(4));
    for (size_t at = MIB(8); at < MIB(256); at += MIB(4)) {
        touch_huge(e, at, at + MIB(2));
    }
    size_t before = bytes_there(e);
    assert_in_range(look(), 1, 1000000);
    assert_int_equal(bytes_there(e), before);
    assert_settled();
}

CASE_AFTER(old_begin, what_is_read_alone_is_not_brought_in)
{
    struct fl_extent *e = begun(MIB(256), 0);
    unsigned char sum = 0;
    for (size_t at = 0; at < MIB(128); at += KIB(4)) {
        sum |= *(volatile unsigned char *)(e->base + at);
    }
    assert_int_equal(sum, 0);
    fake_forget();
    assert_in_range(look(), 1, 1000000);
    assert_int_equal(fake.count[FAKE_POPULATE], 0);
}
CASE_AGAIN(early_scan_begin, what_is_read_alone_is_not_brought_in)
CASE_AGAIN(ahead_begin, what_is_read_alone_is_not_brought_in)

/* Returns how often it looks. */
static int look_until_it_ends(void)
{
    int looks = 1;

    for (uint64_t in = look(); in != UINT64_MAX; in = look()) {
        assert_in_range(looks++, 1, 100);
        pass(in);
    }
    return looks;
}

CASE_AFTER(ahead_begin, a_watch_ends_when_nothing_happens)
{
    struct fl_extent *e = take(MIB(256));
    uint64_t before = fake.now_ns;
    assert_in_range(look_until_it_ends(), 5, 20);
    assert_in_range(fake.now_ns - before, 100000000, 1000000000);
    assert_int_equal(bytes_there(e), 0);
    touch_huge(e, 0, MIB(64));
    assert_true(look() == UINT64_MAX);
    assert_int_equal(bytes_there(e), MIB(64));
}

CASE_AFTER(ahead_begin, a_program_that_stops_holds_little_more)
{
    struct fl_extent *e = begun(MIB(256), MIB(128));
    look_until_it_ends();
    assert_in_range(bytes_there(e), MIB(128) + MIB(4), MIB(128) + MIB(256) / 20 + MIB(16));
}

CASE_AFTER(ahead_begin, what_was_there_before_is_no_sign)
{
    struct fl_extent *e = take(MIB(256));
    touch_huge(e, 0, MIB(64));
    fake_forget();
    (void)look();
    touch_huge(e, MIB(64), MIB(66));
    pass(1000000);
    assert_in_range(look(), 1, 1000000);
    assert_int_equal(fake.count[FAKE_POPULATE], 0);
}

CASE_AFTER(ahead_begin, a_call_before_its_time_is_no_look)
{
    (void)take(MIB(256));
    uint64_t in = look();
    unsigned still = region.ahead.slot[0].still;
    assert_true(look() == in);
    pass(in - 1);
    assert_int_equal(look(), 1);
    assert_int_equal(region.ahead.slot[0].still, still);
    pass(1);
    (void)look();
    assert_int_equal(region.ahead.slot[0].still, still + 1);
}

CASE_AFTER(ahead_begin, what_was_cut_off_is_let_alone)
{
    struct fl_extent *e = begun(MIB(512), MIB(180));
    assert_true(fl_region_resize(&region, e, MIB(190)));
    fake_forget();
    (void)look();
    for (size_t i = 0; i < fake.count[FAKE_POPULATE]; i++) {
        const struct fake_call *c = in_window(FAKE_POPULATE, i);
        assert_true(c == NULL || fl_range_end(c->range) <= e->base + e->len);
    }
    assert_settled();
}

CASE_AFTER(ahead_begin, a_refusal_is_no_harm)
{
    struct fl_extent *e = begun(MIB(256), MIB(48));
    size_t before = bytes_there(e);
    fake.rc[FAKE_POPULATE] = -ENOMEM;
    assert_in_range(look(), 1, 1000000);
    assert_int_equal(bytes_there(e), before);
    assert_settled();
}

CASE_AFTER(ahead_begin, who_stops_amid_a_block_is_not_helped_again)
{
    struct fl_extent *e;
    for (size_t ahead = 0; ahead <= MIB(16);) {
        e = begun(MIB(256), MIB(128));
        look_until_it_ends();
        assert_in_range(bytes_there(e), MIB(132), MIB(160));
        ahead += bytes_there(e) - MIB(128) + MIB(4); /* with the two pages that were left */
    }
    e = begun(MIB(256), MIB(128));
    assert_in_range(look(), 1, 1000000);
    assert_int_equal(bytes_there(e), MIB(128));
    touch_huge(e, MIB(128), MIB(256)); /* to its end */
    pass(1000000);
    assert_true(look() == UINT64_MAX);
    give(e);
    e = begun(MIB(260), MIB(128));
    (void)look();
    assert_true(bytes_there(e) > MIB(128));
}

CASE_AFTER(ahead_begin, several_at_a_time_share_what_may_come)
{
    struct fl_extent *one = begun(MIB(500), MIB(100)), *other = begun(MIB(500), MIB(100));
    look_until_it_ends();
    assert_in_range(bytes_there(one) + bytes_there(other), MIB(208),
                    2 * (MIB(100) + MIB(512) / 20) + MIB(16));
}

CASE_AFTER(ahead_begin, one_processor_is_left_to_the_program)
{
    cpus = 2;
    struct fl_extent *e = take(MIB(256));
    assert_true(look() == UINT64_MAX);
    touch_huge(e, 0, MIB(128));
    assert_true(look() == UINT64_MAX);
    assert_int_equal(bytes_there(e), MIB(128));
}

static void free_it(struct fl_extent *e)
{
    uintptr_t base = e->base;

    free_looked_at(e);
    assert_non_null(fl_extent_free_at(&region.space, base, 0));
}

static void remap_a_part(struct fl_extent *e)
{
    note_remapped(e->base + MIB(100), MIB(1));
}

/* As another block at its place would be. */
static void replace_it(struct fl_extent *e)
{
    fl_region_lock(&region);
    e->left = 0;
    fl_watch_long(&region, e);
    fl_region_unlock(&region);
}

static void use_memory_up(struct fl_extent *e)
{
    (void)e;
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 131072 kB\n");
}

CASE_AFTER(ahead_begin, what_ends_a_watch)
{
    static void (*const end[])(struct fl_extent *) = {free_it, remap_a_part, replace_it,
                                                      use_memory_up};
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) {
        print_message("end %zu\n", i);
        (void)ahead_begin(state);
        end[i](begun(MIB(256), MIB(48)));
        fake_forget();
        assert_true(look() == UINT64_MAX);
        assert_int_equal(fake.count[FAKE_POPULATE], 0);
        assert_settled();
    }
}

static int child(void)
{
    (void)fl_region_fork_child(&region, NULL);
    return look() == UINT64_MAX && region.ahead.slot[0].e == NULL ? 0 : 1;
}

CASE_AFTER(ahead_begin, a_child_watches_nothing)
{
    (void)begun(MIB(256), MIB(48));
    assert_int_equal(fork_with(child), 0);
    assert_true(look() != UINT64_MAX);
}

CASE_AFTER(ahead_begin, who_is_not_watched)
{
    static const struct fl_region_config eager = {.huge = true, .eager_max = MIB(16)};
    static const struct fl_region_config limited = {
        .huge = true, .wait_for_touch = true, .limit = MIB(512), .may_go_ahead = true};
    static const struct fl_region_config base = {.wait_for_touch = true, .may_go_ahead = true};
    static const struct fl_region_config not = {.huge = true, .wait_for_touch = true};
    const struct fl_region_config *const config[] = {&eager, &limited, &base, &not };
    (void)take(MIB(128)); /* too short for a part */
    assert_true(look() == UINT64_MAX);
    for (size_t i = 0; i < sizeof config / sizeof config[0]; i++) {
        region_begin(config[i]);
        fl_sys.survey = counted_survey;
        fl_sys.touched = counted_touched;
        assert_non_null(take(MIB(256)));
        assert_true(look() == UINT64_MAX);
    }
}

CASE_AFTER(ahead_begin, the_oldest_watch_makes_way)
{
    struct fl_extent *e[FL_AHEAD_SLOTS + 2];
    if (is_reserved()) { /* there is not so much of it */
        return;
    }
    for (int i = 0; i < FL_AHEAD_SLOTS + 2; i++) {
        e[i] = take(MIB(160));
    }
    assert_ptr_equal(region.ahead.slot[0].e, e[FL_AHEAD_SLOTS]);
    assert_ptr_equal(region.ahead.slot[1].e, e[FL_AHEAD_SLOTS + 1]);
    assert_ptr_equal(region.ahead.slot[2].e, e[2]);
    assert_in_range(look(), 1, 1000000);
    touch_huge(e[FL_AHEAD_SLOTS], 0, MIB(40));
    pass(1000000);
    (void)look();
    assert_int_equal(region.ahead.slot[0].front - region.ahead.slot[0].range.base, MIB(40));
}

CASES_MAIN()
