/* What had to make room in a thread's cache: it waits for a lock that is taken anyway. */
#include "unit/cmocka_all.h"
#include "unit/shards_fixture.h"

static struct fl_cache *c;

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    c = fl_cache_acquire(&region);
    assert_non_null(c);
    return 0;
}

static void let_go(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    fl_cache_let_go(&region, c, e);
}

enum { SLOTS = FL_CACHE_SLOTS, WAIT = 8, MANY = SLOTS + 3 * (WAIT + 1) };

static void a_run_of_frees_takes_one_lock_for_many(void **state)
{
    struct fl_extent *e[MANY];
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        e[i] = take(KIB(32) - i % 2 * KIB(4));
    }
    uint64_t locks = region.stats.locks;
    for (size_t i = 0; i < SLOTS + WAIT; i++) {
        shards_free_to(c, e[i]);
    }
    assert_int_equal(region.stats.locks, locks);
    assert_int_equal(stats().live_extents, MANY - SLOTS - WAIT); /* what waits is free */
    assert_int_equal(stats().cached_bytes, (SLOTS + WAIT) * KIB(30));
    locks = region.stats.locks;
    for (size_t i = SLOTS + WAIT; i < MANY; i++) {
        shards_free_to(c, e[i]);
    }
    assert_int_equal(region.stats.locks, locks + 3);
    assert_null(c->leaving);
    assert_int_equal(stats().cached_bytes, SLOTS * KIB(30));
    assert_sound();
}

/* Blocks of 64 KiB, two more than there are slots, freed from the lowest on. Returns where that
 * was. */
static uintptr_t take_and_put_two_too_many(void)
{
    struct fl_extent *e[SLOTS + 2];

    for (size_t i = 0; i < SLOTS + 2; i++) {
        e[i] = take(KIB(64));
    }
    uintptr_t base = e[0]->base;
    for (size_t i = 0; i < SLOTS + 2; i++) {
        shards_free_to(c, e[i]);
    }
    return base;
}

static void long_blocks_wait_for_few(void **state)
{
    struct fl_extent *e[SLOTS + 3];
    (void)state;
    for (size_t i = 0; i < SLOTS + 3; i++) {
        e[i] = take(KIB(256));
    }
    for (size_t i = 0; i < SLOTS + 2; i++) {
        shards_free_to(c, e[i]);
    }
    assert_non_null(c->leaving);
    shards_free_to(c, e[SLOTS + 2]);
    assert_null(c->leaving);
}

static void what_waits_is_merged_before_first_fit(void **state)
{
    (void)state;
    uintptr_t base = take_and_put_two_too_many();
    struct fl_extent *both = fl_region_take(&region, c, KIB(128), KIB(4), false);
    assert_int_equal(both->base, base);
    assert_null(c->leaving);
    assert_sound();
}

static void what_waits_goes_with_all_caches(void **state)
{
    (void)state;
    (void)take_and_put_two_too_many();
    (void)fl_region_purge(&region, 0);
    assert_null(c->leaving);
    assert_int_equal(stats().populated_bytes, 0);
    assert_settled();
}

static void what_waits_is_something_to_age(void **state)
{
    (void)state;
    assert_false(fl_cache_has_some(c));
    struct fl_extent *e = take(KIB(64));
    let_go(e);
    assert_true(fl_cache_has_some(c));
    (void)fl_region_tick(&region, 100); /* it may be young: there it is merged, and ages */
    assert_false(fl_cache_has_some(c));
    shards_free_to(c, take(KIB(64)));
    assert_true(fl_cache_has_some(c));
}

/* The fork holds the lock: it waits on. */
static void what_waits_gets_through_a_fork(void **state)
{
    struct fl_extent *e[SLOTS + WAIT + 2];
    (void)state;
    for (size_t i = 0; i < SLOTS + WAIT + 2; i++) {
        e[i] = take(KIB(64));
    }
    for (size_t i = 0; i < SLOTS + WAIT; i++) {
        shards_free_to(c, e[i]);
    }
    atomic_store(&region.shards.of[0].lock.word, 3); /* as another thread's fork has it */
    shards_free_to(c, e[SLOTS + WAIT]);
    assert_non_null(c->leaving);
    atomic_store(&region.shards.of[0].lock.word, 0);
    shards_free_to(c, e[SLOTS + WAIT + 1]);
    assert_null(c->leaving);
    assert_int_equal(stats().cached_bytes, SLOTS * KIB(64));
    assert_sound();
}

static int two_shards(void **state)
{
    (void)shards_begin(state);
    c = fl_cache_acquire(&region);
    return 0;
}

static uint64_t locks_of_one(void)
{
    return region.shards.of[0].since.locks + region.shards.of[1].since.locks;
}

static void frees_of_two_shards_take_one_lock(void **state)
{
    (void)state;
    size_t live = stats().live_extents;
    int other = 2;
    while (shards_block[other]->zone == shards_block[0]->zone) {
        other++;
    }
    uint64_t locks = locks_of_one();
    let_go(shards_block[0]);
    let_go(shards_block[other]);
    let_go(shards_block[1]); /* of 256 KiB: the third is too much */
    assert_int_equal(locks_of_one(), locks + 1);
    assert_true(fl_shards_have_some(&region)); /* the other's, for its next holder */
    assert_int_equal(stats().live_extents, live - 3);
    assert_settled();
}

static void frees_wait_at_a_busy_shard(void **state)
{
    (void)state;
    size_t live = stats().live_extents;
    for (int i = 0; i < 2; i++) {
        let_go(shards_block[i]);
    }
    unsigned zone = shards_block[2]->zone;
    atomic_store(&region.shards.of[zone].lock.word, 1);
    let_go(shards_block[2]); /* it would hang here */
    assert_non_null(c->leaving);
    atomic_store(&region.shards.of[zone].lock.word, 0);
    assert_int_equal(stats().live_extents, live - 3);
    let_go(shards_block[3]);
    assert_null(c->leaving);
    assert_int_equal(stats().live_extents, live - 4);
    assert_settled();
}

static void but_not_for_ever(void **state)
{
    unsigned zone = shards_block[0]->zone, n = 0;
    (void)state;
    shards_hold(zone);
    for (unsigned i = 0; n < 16; i++) {
        if (shards_block[i]->zone == zone) {
            let_go(shards_block[i]);
            n++;
        }
    }
    shards_held();
    assert_null(c->leaving);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run_of_frees_takes_one_lock_for_many, each),
        cmocka_unit_test_setup(long_blocks_wait_for_few, each),
        cmocka_unit_test_setup(what_waits_is_merged_before_first_fit, each),
        cmocka_unit_test_setup(what_waits_goes_with_all_caches, each),
        cmocka_unit_test_setup(what_waits_is_something_to_age, each),
        cmocka_unit_test_setup(what_waits_gets_through_a_fork, each),
        cmocka_unit_test_setup(frees_of_two_shards_take_one_lock, two_shards),
        cmocka_unit_test_setup(frees_wait_at_a_busy_shard, two_shards),
        cmocka_unit_test_setup(but_not_for_ever, two_shards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
