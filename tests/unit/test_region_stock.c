/* Huge pages ahead of demand: how many, when, and when they go back. */
#include "unit/region_case.h"

#include <errno.h>
#include <string.h>

static const uint64_t rest = 100000000;

static struct fl_reserve *stock(void)
{
    return &region.pages.reserve;
}

static int unasked(void **state)
{
    assert_true(stock_begin(NULL));
    return 0;
}

TEST_FROM(NULL, without_demand_there_is_none)
{
    (void)stock_begin(&stock_wanted);
    size_t mapped = fake_mapped();
    assert_int_equal(fl_region_refill(&region), UINT64_MAX);
    assert_int_equal(fake_mapped(), mapped);
    assert_int_equal(stock()->held, 0);
}

TEST_WHERE(has_stock, unasked, the_goal_is_a_share_of_the_peak)
{
    struct fl_extent *e = take(MIB(640)); /* 10 MiB are a sixty-fourth */
    fake_forget();
    assert_int_equal(fl_region_refill(&region), rest);
    assert_stock(MIB(10));
    assert_int_equal(region.held.populated, MIB(650));
    assert_int_equal(fake_bytes(FAKE_POPULATE), MIB(10));
    give(e);
    assert_stock(MIB(10));
}

TEST_WHERE(has_stock, unasked, the_goal_is_no_more_than_was_asked_for)
{
    struct fl_extent *e = take(MIB(640));
    region.refill.demand = 0;
    give(e);
    (void)fl_region_purge(&region, 0);
    assert_non_null(take(MIB(5))); /* 6 MiB from the kernel */
    (void)fl_region_refill(&region);
    assert_stock(MIB(6));
}

TEST_WHERE(has_stock, unasked, the_goal_leaves_what_may_be_held_at_all)
{
    struct fl_extent *e = take(MIB(320));
    assert_non_null(take(MIB(320)));
    give(e);
    assert_non_null(take(MIB(6)));   /* from what is free */
    region.held.populated += MIB(4); /* as if so much were fragmented */
    (void)fl_region_refill(&region);
    region.held.populated -= MIB(4);
    assert_stock(MIB(6)); /* of 650 that may be held, 644 are */
}

TEST_WHERE(has_stock, stock_none, the_option_says_how_much)
{
    assert_non_null(take(MIB(40)));
    (void)fl_region_refill(&region);
    assert_stock(MIB(40));
    assert_non_null(take_zeroed(MIB(200)));
    (void)fl_region_refill(&region);
    assert_stock(MIB(64));
}

/* After mlockall(MCL_FUTURE) what is mapped is in memory. */
TEST_WHERE(has_stock, stock_none, no_more_is_mapped_than_is_wanted)
{
    assert_non_null(take(MIB(40)));
    size_t before = fake_mapped();
    stock_refill(MIB(16));
    assert_stock(MIB(16));
    assert_int_equal(fake_mapped() - before, MIB(16));
    assert_non_null(take_zeroed(MIB(16)));
    assert_stock(0);
    before = fake_mapped();
    stock_refill(MIB(40));
    assert_stock(MIB(40));
    assert_int_equal(fake_mapped() - before, MIB(24)); /* 16 are mapped still */
    assert_int_equal(fake_kept_from_child(stock()->span.all), MIB(40));
    before = fake_mapped();
    (void)fl_region_purge(&region, 0);
    assert_int_equal(before - fake_mapped(), MIB(40));
}

/* A base page of each, which makes it huge where a fault would not; and what that leaves. */
TEST_WHERE(has_stock, NULL, where_faults_bring_none_it_is_filled_by_collapse)
{
    (void)stock_begin(&(struct fl_region_config){.huge = true, .collapse = true, .stock = MIB(64)});
    assert_non_null(take(MIB(40)));
    fake_forget();
    stock_refill(MIB(16));
    assert_stock(MIB(16));
    size_t collapsed = 0;
    for (size_t i = 0; i < fake.nlog; i++) {
        collapsed += fake.log[i].slot == FAKE_ADVISE && fake.log[i].advice == FL_ADVICE_COLLAPSE
                         ? fake.log[i].range.len
                         : 0;
    }
    assert_int_equal(collapsed, MIB(16));
    assert_int_equal(fake_bytes(FAKE_POPULATE), MIB(16) + 8 * fl_page.base);
}

TEST_WHERE(has_stock, stock_none, demand_fades)
{
    assert_non_null(take(MIB(40)));
    int n = 0;
    while (fl_region_refill(&region) == rest) {
        assert_true(++n < 30);
    }
    assert_in_range(n, 4, 6); /* 40, 20, 10, 4, 2 */
    assert_int_equal(region.refill.demand, 0);
    assert_stock(MIB(40)); /* it is there until it has aged */
    assert_int_equal(fl_region_refill(&region), UINT64_MAX);
}

TEST_WHERE(has_stock, stock_ready, it_is_refilled_below_half)
{
    fl_region_set_worker(&region, true);
    assert_non_null(take_zeroed(MIB(30)));
    stock_refill(MIB(64));
    assert_stock(MIB(34));
    atomic_store(&region.wants_worker, false);
    region.refill.demand = MIB(64);
    assert_non_null(take_zeroed(MIB(4)));
    assert_true(region.wants_worker);
    (void)fl_region_refill(&region);
    assert_stock(MIB(64));
    atomic_store(&region.wants_worker, false);
    assert_non_null(take_zeroed(MIB(4)));
    assert_false(region.wants_worker);
}

static struct fl_extent *meanwhile;

static void take_meanwhile(struct fl_range r)
{
    if (r.base - stock()->span.all.base < stock()->span.all.len) {
        fake.on_populate = NULL;
        assert_sound(); /* what is being filled counts, and is not handed out */
        assert_int_equal(stock()->held, MIB(64));
        assert_int_equal(stock()->ready, 0);
        meanwhile = take_zeroed(MIB(10));
        assert_int_equal(fl_region_purge(&region, 0), 0);
        assert_int_equal(stock()->held, MIB(64));
    }
}

TEST_WHERE(has_stock, stock_none, requests_come_while_it_is_filled)
{
    assert_non_null(take(MIB(64)));
    meanwhile = NULL;
    fake.on_populate = take_meanwhile;
    (void)fl_region_refill(&region);
    assert_non_null(meanwhile);
    assert_true(is_filled(meanwhile, 0));
    assert_stock(MIB(64));
}

static void take_long(struct fl_range r)
{
    atomic_fetch_add(&fake.now_ns, 10000000);
}

TEST_WHERE(has_stock, stock_none, it_waits_while_the_kernel_searches_for_huge_pages)
{
    assert_non_null(take(MIB(64)));
    fake.on_populate = take_long;
    while (fl_region_refill(&region) == 0) {
    }
    assert_stock(MIB(2)); /* one, and then it left off */
    assert_int_equal(stock()->chunk[0].ready, MIB(2));
    fake.on_populate = NULL;
    region.refill.demand = MIB(64);
    assert_true(fl_region_refill(&region) == rest);
    assert_stock(MIB(2));
    atomic_fetch_add(&fake.now_ns, 1000000000);
    region.refill.demand = MIB(64);
    while (fl_region_refill(&region) == 0) {
    }
    assert_stock(MIB(64));
}

TEST_WHERE(has_stock, stock_ready, it_goes_back_when_it_has_aged)
{
    size_t usable = fake_usable();
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
        assert_stock(MIB(64));
    }
    assert_false(fl_region_tick(&region, 4));
    assert_stock(0);
    assert_int_equal(fake_usable(), usable - MIB(64));
    assert_int_equal(stats().purge_bytes, MIB(64));
    assert_int_equal(region.held.populated, MIB(64)); /* what is live */
}

/* Of what has been taken the map remains, and what did not move. */
TEST_WHERE(has_stock, NULL, what_is_left_of_it_goes_back_too)
{
    for (int i = 0; i < 2; i++) {
        (void)stock_filled(&stock_wanted);
        size_t usable = fake_usable();
        if (i == 1) {
            memset(stock_chunk(0), 0xcc, MIB(64));
            fake.move_most = MIB(20);
            fake_fail_at(2, 1u << FAKE_MOVE);
        }
        assert_non_null(take(MIB(64)));
        fake_fail_at(0, 1);
        assert_stock(0);
        int n = 0;
        while (fl_region_tick(&region, 4)) {
            assert_true(++n < 10);
        }
        assert_int_equal(fake_usable(), usable); /* 64 MiB more, and 64 less */
    }
}

TEST_WHERE(has_stock, stock_ready, what_the_kernel_does_not_take_back_stays_stock)
{
    fake.rc[FAKE_UNMAP] = -ENOMEM;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_stock(MIB(64));
    fake.rc[FAKE_UNMAP] = 0;
    assert_true(is_filled(take_zeroed(MIB(20)), 0));
    assert_stock(MIB(44));
}

TEST_WHERE(has_stock, NULL, what_cannot_be_filled_is_not_counted)
{
    for (int i = 0; i < 2; i++) {
        (void)stock_begin(&stock_wanted);
        assert_non_null(take(MIB(64)));
        size_t populated = region.held.populated;
        fake.rc[i == 0 ? FAKE_POPULATE : FAKE_MAP_AT] = -ENOMEM;
        (void)fl_region_refill(&region);
        assert_stock(0);
        assert_int_equal(region.held.populated, populated);
    }
}

TEST_FROM(NULL, there_is_none_where_it_is_not_wanted)
{
    struct fl_region_config c[] = {stock_wanted, stock_wanted, stock_wanted, stock_wanted};
    c[0].no_stock = true;
    c[1].method = FL_METHOD_NONE;
    c[2].limit = MIB(80); /* 64 are live */
    for (size_t i = 0; i < 4; i++) {
        (void)stock_begin(&c[i]);
        assert_non_null(take(MIB(64)));
        atomic_store(&region.tight, i == 3);
        (void)fl_region_refill(&region);
        assert_stock(0);
    }
}

TEST_FROM(NULL, in_a_reserved_window_there_is_none)
{
    region_clear();
    fake.no_quiet_addresses = fake.pretend_populate = true;
    assert_int_equal(fl_region_start(&region, &stock_wanted), 0);
    assert_non_null(take(MIB(64)));
    (void)fl_region_refill(&region);
    assert_stock(0);
}

TEST_WHERE(has_stock, stock_none, without_addresses_there_is_none)
{
    assert_non_null(take(MIB(64)));
    fake.rc[FAKE_MAP_AT] = -EEXIST;
    (void)fl_region_refill(&region);
    fake.rc[FAKE_MAP_AT] = 0;
    assert_true(region.config.no_stock);
    assert_non_null(take(MIB(64)));
    (void)fl_region_refill(&region);
    assert_stock(0);
}

static int child_without(void)
{
    fl_region_fork_child(&region, NULL);
    if (stock()->held != 0 || stock()->ready != 0 || region.held.populated != MIB(64) ||
        fl_region_check(&region) != NULL) {
        return 1;
    }
    stock_refill(MIB(32));
    if (stock()->ready != MIB(32) || fl_region_check(&region) != NULL) {
        return 2;
    }
    struct fl_extent *e = take_zeroed(MIB(20));
    if (e == NULL || !is_filled(e, 0) || stats().move_bytes != MIB(20)) {
        return 3;
    }
    return fl_region_purge(&region, 0) != MIB(12) || fl_region_check(&region) != NULL ? 4 : 0;
}

TEST_WHERE(has_stock, stock_ready, children_have_none_of_it)
{
    memset(stock_chunk(0), 0xcc, MIB(64));
    assert_int_equal(fake_kept_from_child(stock()->span.all), MIB(64));
    assert_int_equal(fork_with(child_without), 0);
    assert_stock(MIB(64));
    assert_true(is_filled(take_zeroed(MIB(64)), 0xcc));
}

static int child_status;

static void fork_amid_a_refill(struct fl_range r)
{
    if (r.base - stock()->span.all.base < stock()->span.all.len) {
        fake.on_populate = NULL;
        child_status = fork_beside(child_without);
    }
}

static void fork_amid_a_release(void)
{
    fake.on_purge = NULL;
    child_status = fork_beside(child_without);
}

TEST_WHERE(has_stock, stock_none, children_forked_amid_a_change_have_none_of_it)
{
    assert_non_null(take(MIB(64)));
    child_status = -1;
    fake.on_populate = fork_amid_a_refill;
    while (fl_region_refill(&region) == 0) {
    }
    assert_int_equal(child_status, 0);
    assert_stock(MIB(64));
    child_status = -1;
    fake.on_purge = fork_amid_a_release;
    assert_int_equal(fl_region_purge(&region, 0), MIB(64));
    assert_int_equal(child_status, 0);
    assert_stock(0);
}

static int child_with_maps_in_the_way(void)
{
    fl_region_fork_child(&region, NULL);
    stock_refill(MIB(64)); /* of which the first half could be kept from it */
    return stock()->held != 0 || fl_region_check(&region) != NULL;
}

TEST_WHERE(has_stock, stock_none, a_child_that_has_inherited_it_does_without)
{
    assert_non_null(take(MIB(64)));
    fake.rc[FAKE_ADVISE] = -EINVAL;
    (void)fl_region_refill(&region);
    assert_stock(MIB(64));
    assert_int_equal(fork_with(child_with_maps_in_the_way), 0);
    assert_stock(MIB(64));
}
