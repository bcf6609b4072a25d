/* Thread caches where there are several nodes: what they keep, and when they serve. */
#include "cases.h"
#include "unit/zones_fixture.h"

static struct fl_cache *own;

/* Each CPU is of that node, and nothing else has changed. */
static void move_to(unsigned node)
{
    for (unsigned cpu = 0; cpu < FL_CPU_IDS; cpu++) {
        atomic_store(&fl_site[cpu], FL_SITE_FIRST + node);
    }
    ask_on(node);
}

static int each(void **state)
{
    (void)state;
    begin_divided();
    move_to(0);
    own = fl_cache_acquire(&region);
    return own != NULL ? 0 : -1;
}

static struct fl_extent *take_by(size_t len)
{
    struct fl_extent *e = fl_cache_is_home(own) ? fl_cache_take(&region, own, len) : NULL;

    return e != NULL ? e : fl_region_take(&region, own, len, fl_page.base, false);
}

/* As free(3) does it. True: the cache has it. */
static bool free_by(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    if (fl_cache_takes(own, e)) {
        struct fl_extent *old = fl_cache_put(&region, own, e);
        assert_null(old);
        return true;
    }
    fl_region_give(&region, e);
    return false;
}

CASE_AFTER(each, a_thread_gets_back_what_it_frees)
{
    assert_false(fl_cache_is_home(own)); /* not yet asked where it is */
    struct fl_extent *e = take_by(MIB(1));
    assert_lies(e, 0);
    assert_true(free_by(e));
    uint64_t takes = region.stats.takes;
    assert_ptr_equal(take_by(MIB(1)), e);
    assert_int_equal(region.stats.takes, takes);
    assert_true(free_by(e));
}

CASE_AFTER(each, what_another_node_s_thread_asked_for_is_not_kept)
{
    struct fl_extent *theirs = take_on(1, MIB(1));
    ask_on(0);
    struct fl_extent *e = take_by(MIB(1));
    assert_lies(e, 0);
    assert_false(free_by(theirs));
    assert_lies(take_by(MIB(1)), 0);
    give(e);
    assert_settled();
}

CASE_AFTER(each, a_thread_that_moves_gets_nothing_of_the_node_it_left)
{
    struct fl_extent *e = take_by(MIB(1));
    uintptr_t here = e->base;
    assert_true(free_by(e));
    move_to(1);
    assert_false(fl_cache_is_home(own));
    struct fl_extent *there = take_by(MIB(1));
    assert_lies(there, 1);
    assert_true(free_by(there));
    assert_ptr_equal(take_by(MIB(1)), there);
    move_to(0);
    assert_int_equal(take_by(MIB(1))->base, here); /* the region has it */
    assert_false(free_by(there));
}

CASE_AFTER(each, policies_count_though_nothing_moves)
{
    struct fl_extent *e = take_by(MIB(1));
    assert_true(free_by(e));
    ask_on(1);
    fl_cache_recall(&region, own, MIB(1)); /* each so many hits: it had not been told */
    assert_false(fl_cache_is_home(own));
    assert_lies(take_by(MIB(1)), 1);
    fl_cache_recall(&region, own, MIB(1));
    assert_true(fl_cache_is_home(own));
}

CASE_AFTER(each, requests_that_go_elsewhere_say_nothing_of_others)
{
    give(take_by(MIB(64))); /* longer than what lies alike */
    assert_false(fl_cache_is_home(own));
    ask_touched(0);
    struct fl_extent *e = take_by(MIB(4));
    assert_non_null(e);
    assert_false(fl_cache_is_home(own));
    assert_false(free_by(e));
}

CASE_AFTER(each, on_a_cpu_of_no_known_node_nothing_is_kept)
{
    for (unsigned cpu = 0; cpu < FL_CPU_IDS; cpu++) {
        atomic_store(&fl_site[cpu], 0);
    }
    struct fl_extent *e = take_by(MIB(1));
    assert_lies(e, 0);
    assert_false(fl_cache_is_home(own));
    assert_false(free_by(e));
}

CASE_AFTER(each, a_policy_that_changes_amid_a_request_is_asked_for_anew)
{
    struct fl_zonelist zonelist;
    uint32_t site = fl_cache_zonelist(&region, own, MIB(1), &zonelist);
    assert_int_equal(site, FL_SITE_FIRST);
    atomic_store(&own->site, fl_site_void); /* a handler called set_mempolicy(2) */
    fl_cache_settle(own, site, 0);
    assert_false(fl_cache_is_home(own));
    assert_lies(take_by(MIB(1)), 0);
    assert_true(fl_cache_is_home(own));
}

CASE_AFTER(each, a_node_that_is_full_sends_its_threads_to_the_region)
{
    full[0] = true;
    struct fl_extent *e = take_by(MIB(1));
    assert_lies(e, 1);
    assert_false(free_by(e));
}

/* What its thread asked last holds for the next misses, too, as it does for hits. */
CASE_AFTER(each, at_home_a_miss_does_not_ask)
{
    struct fl_extent *e = take_by(MIB(1)), *after = take_by(MIB(1));
    assert_true(fl_cache_is_home(own));
    assert_true(free_by(e));
    nasked = 0;
    fl_region_lock(&region); /* counts what shards did */
    fl_region_unlock(&region);
    uint64_t locks = region.stats.locks;
    e = take_by(KIB(512)); /* its cache has none */
    assert_int_equal(nasked, 0);
    assert_int_equal(region.stats.locks, locks + 2); /* its node's, then all */
    assert_lies(e, 0);
    assert_true(fl_cache_is_home(own));
    give(e);
    give(after);
    assert_settled();
}

CASE_AFTER(each, now_and_then_it_does)
{
    struct fl_extent *e = take_by(MIB(1));
    int n = 0;
    ask_on(1); /* and is not told */
    for (nasked = 0; nasked == 0 && n < 1000; n++) {
        give(e);
        e = take_by(MIB(1) - (n % 2 == 0 ? KIB(4) : 0));
    }
    assert_in_range(n, 32, 64);
    assert_lies(e, 1);
    assert_true(fl_cache_is_home(own));
}

/* Two threads of one CPU may have policies of their own: what waits there is of several zones. */
CASE_AFTER(each, what_waits_in_a_depot_serves_its_own_zone)
{
    struct fl_cache *other;
    struct fl_extent *e = take_by(MIB(1)), *f = take_by(MIB(16));
    resize_depots();
    other = fl_cache_acquire(&region);
    ask_on(1);
    give(fl_region_take(&region, other, MIB(1), fl_page.base, false));
    assert_int_equal(other->zone, 1);
    assert_true(fl_cache_is_home(other) && fl_cache_is_home(own));
    assert_true(fl_extent_claim(e, region.epoch));
    assert_true(fl_region_keep(&region, own, e));
    assert_null(fl_depot_take(&region, other, MIB(1)));
    assert_ptr_equal(fl_depot_take(&region, own, MIB(1)), e);
    assert_lies(e, 0);
    ask_on(0);
    fl_cache_release(&region, other);
    give(e);
    give(f);
    assert_settled();
}

CASES_MAIN()
