/* How much waits in depots, and what happens to the rest. */
#include "unit/cmocka_all.h"
#include "unit/depots_fixture.h"
#include "unit/shards_fixture.h"

static int two_shards(void **state)
{
    (void)shards_begin(state);
    depots_cache = fl_cache_acquire(&region);
    return 0;
}

static void where_little_is_in_use_little_waits(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    depots_cache = fl_cache_acquire(&region);
    assert_int_equal(region.depots.most, KIB(512)); /* from the start on */
    assert_true(depots_put(take(KIB(200))));
    assert_false(depots_put(take(KIB(900)))); /* it alone were too much */
    region.stats.in_use += MIB(2000);
    depots_resize();
    assert_int_equal(region.depots.most, MIB(32)); /* however much is in use */
    region.tight = true;
    depots_resize();
    region.stats.in_use -= MIB(2000);
    assert_int_equal(region.depots.most, 0);
    assert_false(depots_put(take(KIB(200))));
}

/* The region has it by one lock. */
static void what_is_too_much_goes_by_eights(void **state)
{
    struct fl_extent *e[32];
    (void)state;
    for (int i = 0; i < 32; i++) {
        e[i] = take(KIB(1000) - (size_t)(i % 4) * KIB(40));
    }
    region.depots.most = region.depots.lead_most = MIB(10);
    uint64_t locks = region.stats.locks, gives = region.stats.gives;
    for (int i = 0; i < 13; i++) {
        assert_true(depots_put(e[i])); /* a quarter more than may wait */
    }
    assert_int_equal(region.stats.locks, locks);
    assert_true(depots_put(e[13]));
    assert_int_equal(region.stats.locks, locks + 1);
    assert_int_equal(region.stats.gives, gives + 8);
    assert_in_range(depots_own->bytes, MIB(5), MIB(10));
    for (int i = 14; i < 32; i++) {
        assert_true(depots_put(e[i]));
        assert_in_range(depots_own->bytes, 0, MIB(25) / 2);
    }
    assert_settled();
}

static void a_request_that_finds_nothing_takes_two_along(void **state)
{
    struct fl_extent *e[12];
    (void)state;
    for (int i = 0; i < 12; i++) {
        e[i] = take(KIB(1000));
    }
    struct fl_extent *room = take(KIB(100));
    for (int i = 0; i < 8; i++) {
        assert_true(depots_put(e[i]));
    }
    give(room);
    region.depots.most = region.depots.lead_most = MIB(2);
    size_t blocks = depots_waiting();
    assert_int_equal(blocks, 8);
    uint64_t gives = region.stats.gives;
    assert_non_null(fl_region_take(&region, depots_cache, KIB(100), fl_page.base, false));
    assert_int_equal(region.stats.gives, gives + 2);
    assert_int_equal(depots_waiting(), blocks - 2);
    assert_settled();
}

static void blocks_of_two_shards_go_by_one_lock(void **state)
{
    uint64_t locks = 0;
    (void)state;
    size_t live = stats().live_extents;
    for (int i = 0; i < 64; i++) {
        for (unsigned s = 0; s < 2; s++) {
            locks -= region.shards.of[s].since.locks;
        }
        assert_true(depots_put(shards_block[i]));
        for (unsigned s = 0; s < 2; s++) {
            locks += region.shards.of[s].since.locks;
        }
    }
    assert_in_range(locks, 64 / 8 - 4, 64 / 4);
    assert_int_equal(stats().live_extents, live - 64);
    assert_settled();
}

static void what_is_too_much_is_left_to_a_busy_shard(void **state)
{
    (void)state;
    size_t live = stats().live_extents;
    for (unsigned s = 0; s < 2; s++) {
        atomic_store(&region.shards.of[s].lock.word, 1);
    }
    for (int i = 0; i < 64; i++) {
        assert_true(depots_put(shards_block[i])); /* it would hang here */
    }
    assert_true(fl_shards_have_some(&region.shards));
    for (unsigned s = 0; s < 2; s++) {
        atomic_store(&region.shards.of[s].lock.word, 0);
    }
    assert_int_equal(stats().live_extents, live - 64);
    assert_settled();
}

/* The fork holds the lock: the next holder has them. */
static void what_is_too_much_gets_through_a_fork(void **state)
{
    struct fl_extent *e[16];
    (void)state;
    for (int i = 0; i < 16; i++) {
        e[i] = take(KIB(500));
    }
    region.depots.most = region.depots.lead_most = MIB(2);
    size_t live = stats().live_extents;
    atomic_store(&region.shards.of[0].lock.word, 3); /* as another thread's fork has it */
    for (int i = 0; i < 16; i++) {
        assert_true(depots_put(e[i]));
    }
    assert_non_null(region.caches.deferred);
    atomic_store(&region.shards.of[0].lock.word, 0);
    (void)stats();
    assert_null(region.caches.deferred);
    assert_int_equal(stats().live_extents, live - 16);
    assert_settled();
}

/* Of two depots the one that is in use has what the other one leaves of its share. */
static void what_others_leave_the_fullest_may_have(void **state)
{
    struct fl_extent *e[32];
    int kept = 0;
    (void)state;
    for (int i = 0; i < 32; i++) {
        e[i] = take(KIB(512));
    }
    assert_true(depots_put(e[0]));
    const struct fl_depot *mine = depots_own;
    region.depots.used |= mine == region.depots.depot ? 2 : 1;
    depots_resize();
    size_t all = region.stats.in_use / DEPOTS_SHARE, share = region.depots.most;
    assert_int_equal(share, all / 2);
    for (int i = 1; i < 32; i++) {
        kept += depots_put(e[i]);
        assert_in_range(mine->bytes, 0, all + share / 4);
    }
    assert_int_equal(kept, 31);
    assert_in_range(mine->bytes, all - MIB(4), all + share / 4);
    assert_settled();
}

#define T(f) cmocka_unit_test_setup(f, depots_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(where_little_is_in_use_little_waits),
        T(what_is_too_much_goes_by_eights),
        T(a_request_that_finds_nothing_takes_two_along),
        T(what_is_too_much_gets_through_a_fork),
        T(what_others_leave_the_fullest_may_have),
        cmocka_unit_test_setup(blocks_of_two_shards_go_by_one_lock, two_shards),
        cmocka_unit_test_setup(what_is_too_much_is_left_to_a_busy_shard, two_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
