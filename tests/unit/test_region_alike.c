/* A thread that asks for one length again and again gets several blocks under one lock, and its
 * frees of that length may fill a depot. */
#include "unit/cmocka_all.h"
#include "unit/rows_fixture.h"
#include "unit/shards_fixture.h"

enum { EACH = 32, SLOTS = FL_CACHE_SLOTS, MANY = 4 * EACH * SLOTS };

static void what_waits_goes_and_all_is_one(size_t n)
{
    rows_give(n);
    give(rows_ask(rows_own, KIB(256)));
    fl_region_lock(&region);
    (void)fl_cache_drain_all(&region, 0);
    fl_region_unlock(&region);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_int_equal(stats().live_extents, 0);
    assert_settled();
}

static void a_long_row_takes_a_lock_for_several(void **state)
{
    (void)state;
    rows_ask_for(MANY, KIB(64));
    rows_give(MANY);
    uint64_t before = rows_locks();
    rows_ask_for(MANY, KIB(64));
    assert_in_range(rows_locks() - before, 1, MANY / 2); /* a shard may have to ask another one */
    what_waits_goes_and_all_is_one(MANY);
}

static void they_lie_one_behind_the_other(void **state)
{
    (void)state;
    rows_ask_for(MANY, KIB(64));
    for (size_t i = 1; i < MANY; i++) {
        assert_int_equal(rows_block[i]->base, rows_block[i - 1]->base + KIB(64));
    }
    rows_give(MANY);
}

/* As threads take some by turns, a processor would fetch those of others ahead. */
static void their_descriptors_lie_in_no_order(void **state)
{
    size_t steady = 0;
    (void)state;
    rows_ask_for(MANY, KIB(64));
    for (size_t i = 2; i < MANY; i++) {
        ptrdiff_t step = rows_block[i] - rows_block[i - 1];
        steady += step == rows_block[i - 1] - rows_block[i - 2];
    }
    assert_in_range(steady, 0, MANY / EACH);
    rows_give(MANY);
}

static void a_short_row_takes_no_more_than_it_asks_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < EACH; i++) { /* of any length */
        rows_block[i] = rows_ask(rows_own, KIB(64));
        rows_block[EACH + i] = rows_ask(rows_own, KIB(32));
        assert_int_equal(stats().cached_bytes, 0);
    }
    assert_int_equal(stats().in_use_bytes, EACH * KIB(96));
    rows_give((size_t)2 * EACH);
}

static void what_waits_is_a_part_of_the_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        rows_block[i] = rows_ask(rows_own, KIB(64));
        size_t waits = stats().cached_bytes / KIB(64);
        assert_true(waits <= i / EACH + 1 && waits <= SLOTS);
    }
    what_waits_goes_and_all_is_one(MANY);
}

/* Requests of one length that slots and depots do not serve. */
static void other_lengths_end_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < MANY / 2; i++) {
        rows_block[2 * i] = rows_ask(rows_own, KIB(64));
        rows_block[2 * i + 1] = rows_ask(rows_own, KIB(256));
        assert_int_equal(stats().cached_bytes, 0);
    }
    assert_int_equal(rows_own->alike, 1);
    rows_give(MANY);
}

static size_t waits_of(size_t n, size_t len)
{
    rows_ask_for(n, len);
    fl_region_lock(&region);
    (void)fl_cache_drain_all(&region, 0); /* what was taken along */
    fl_region_unlock(&region);
    rows_free(n);
    return stats().cached_bytes / len;
}

static void after_a_long_row_a_depot_takes_its_blocks(void **state)
{
    (void)state;
    assert_in_range(waits_of(EACH, KIB(64)), SLOTS, SLOTS + 10); /* 512 KiB, and a quarter */
    fl_region_lock(&region);
    (void)fl_cache_drain_all(&region, 0);
    fl_region_unlock(&region);
    assert_int_equal(waits_of(MANY, KIB(64)), MANY);
    uint64_t locks = rows_locks();
    rows_ask_for(MANY, KIB(64)); /* from there */
    rows_free(MANY);
    assert_int_equal(rows_locks(), locks);
    rows_ask_for(MANY, KIB(64));
    what_waits_goes_and_all_is_one(MANY);
}

static void but_not_more_than_may_be_cached(void **state)
{
    (void)state;
    atomic_store(&region.cache_max, MIB(4));
    assert_in_range(waits_of(MANY, KIB(64)), MIB(4) / KIB(64) - 8, MIB(4) / KIB(64) + SLOTS);
}

/* They are on one CPU. */
static void another_thread_gets_what_one_has_freed(void **state)
{
    (void)state;
    assert_int_equal(waits_of(MANY, KIB(64)), MANY);
    uint64_t locks = rows_locks();
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        rows_block[i] = rows_ask(rows_theirs, KIB(64));
    }
    assert_int_equal(rows_locks(), locks);
    assert_true(rows_theirs->alike >= EACH * SLOTS); /* hits count, too: it may fill it again */
    rows_give(MANY - SLOTS);
}

/* The window does not grow while any waits. */
static void what_waits_is_merged_before_the_window_grows(void **state)
{
    (void)state;
    assert_int_equal(waits_of(MANY, KIB(64)), MANY);
    size_t held = region.held.populated, free = fl_region_free(&region).bytes;
    struct fl_extent *big = take(free + MIB(1));
    assert_non_null(big);
    assert_int_equal(region.held.populated, held);
    give(big);
    assert_settled();
}

static void what_is_taken_along_is_no_request(void **state)
{
    (void)state;
    struct fl_stats_values before = stats();
    rows_ask_for(MANY, KIB(64));
    struct fl_stats_values after = stats();
    assert_int_equal(after.requests - before.requests, MANY);
    assert_int_equal(after.served_bytes - before.served_bytes, MANY * KIB(64));
    assert_int_equal(after.live_extents - before.live_extents, MANY);
    rows_give(MANY);
    assert_int_equal(stats().live_extents, before.live_extents);
}

static void long_blocks_come_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < EACH * 2; i++) {
        rows_block[i] = rows_ask(rows_own, KIB(132));
        assert_int_equal(stats().cached_bytes, 0);
    }
    rows_give((size_t)EACH * 2);
}

static void aligned_blocks_come_one_by_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < EACH * 2; i++) {
        rows_block[i] = fl_region_take(&region, rows_own, KIB(64), KIB(64), false);
        assert_int_equal(rows_block[i]->base % KIB(64), 0);
        assert_int_equal(stats().cached_bytes, 0);
    }
    rows_give((size_t)EACH * 2);
}

/* The front of what is free holds one, or two. */
static void no_more_than_there_is_room_for(void **state)
{
    struct fl_extent *keep[EACH];
    (void)state;
    rows_ask_for(MANY, KIB(64));
    what_waits_goes_and_all_is_one(MANY);
    for (size_t i = 0; i < EACH; i++) {
        rows_block[i] = take(i % 2 == 0 ? KIB(64) : KIB(160));
        keep[i] = take(KIB(4));
    }
    rows_give(EACH);
    rows_own->alike = EACH * SLOTS;
    rows_own->alike_len = KIB(64);
    for (size_t i = 0; i < EACH; i++) {
        rows_block[i] = rows_ask(rows_own, KIB(64));
        assert_true(stats().cached_bytes <= KIB(64));
        assert_sound();
    }
    rows_give(EACH);
    for (size_t i = 0; i < EACH; i++) {
        give(keep[i]);
    }
    assert_sound();
}

/* What lies behind a block waits in the thread's cache: not all depots are emptied for that. */
static void growth_in_place_leaves_most_of_the_depots(void **state)
{
    enum { SHELVED = 64 };
    (void)state;
    assert_non_null(take(MIB(192)));
    for (int i = 0; i < SHELVED; i++) {
        rows_block[i] = take(KIB(100));
        assert_non_null(take(KIB(4)));
    }
    struct fl_extent *e = take(KIB(64)), *behind = take(KIB(64));
    assert_int_equal(behind->base, e->base + KIB(64));
    fl_region_lock(&region);
    fl_depot_resize(&region);
    fl_region_unlock(&region);
    for (int i = 0; i < SHELVED; i++) {
        assert_true(fl_extent_claim(rows_block[i], region.epoch));
        assert_true(fl_region_keep(&region, rows_own, rows_block[i]));
    }
    assert_true(fl_extent_claim(behind, region.epoch));
    assert_null(fl_cache_put(&region, rows_own, behind));
    assert_true(fl_region_resize(&region, e, KIB(128)));
    assert_int_equal(e->len, KIB(128));
    assert_true(fl_depot_blocks(&region) >= SHELVED / 2);
    assert_settled();
}

static struct fl_extent *chain_with(struct fl_extent *chain, struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    e->next = chain;
    return e;
}

static void give_chain(struct fl_extent *chain)
{
    fl_region_lock(&region);
    (void)fl_region_give_chain(&region, chain);
    fl_region_unlock(&region);
}

/* Where they come back together, whatever lies between them; freed upwards, and downwards. */
static void runs_of_neighbours_are_joined(void **state)
{
    struct fl_extent *chain = NULL;
    (void)state;
    rows_ask_for(EACH, KIB(64));
    size_t spare = region.space.descriptors.stash.n;
    for (size_t n = 0; n < EACH; n++) {
        size_t i = n < EACH / 2 ? n : EACH + EACH / 2 - 1 - n;
        if (i % 8 != 3) { /* the others stay */
            chain = chain_with(chain, rows_block[i]);
        }
    }
    give_chain(chain);
    assert_int_equal(stats().live_extents, EACH / 8);
    assert_int_equal(stats().in_use_bytes, EACH / 8 * KIB(64));
    assert_int_equal(region.space.descriptors.stash.n, spare + EACH - EACH / 4);
    assert_settled();
    for (size_t i = 3; i < EACH; i += 8) {
        give(rows_block[i]);
    }
    assert_settled();
}

static void neighbours_of_two_shards_are_not(void **state)
{
    (void)state;
    size_t i = 1;
    while (shards_block[i]->zone == shards_block[i - 1]->zone ||
           shards_block[i]->base != shards_block[i - 1]->base + shards_block[i - 1]->len) {
        i++;
        assert_in_range(i, 1, BLOCKS - 1);
    }
    size_t free[2] = {region.zones.of[0].free.bytes, region.zones.of[1].free.bytes};
    give_chain(chain_with(chain_with(NULL, shards_block[i]), shards_block[i - 1]));
    assert_int_equal(region.zones.of[0].free.bytes, free[0] + KIB(256));
    assert_int_equal(region.zones.of[1].free.bytes, free[1] + KIB(256));
    assert_settled();
    for (size_t k = 0; k < BLOCKS; k++) {
        if (k != i && k != i - 1) {
            give(shards_block[k]);
        }
    }
    assert_int_equal(stats().in_use_bytes, 0);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_long_row_takes_a_lock_for_several, rows_begin),
        {.name = "a_long_row_of_a_shard",
         .test_func = a_long_row_takes_a_lock_for_several,
         .setup_func = rows_begin_sharded},
        cmocka_unit_test_setup(they_lie_one_behind_the_other, rows_begin),
        cmocka_unit_test_setup(their_descriptors_lie_in_no_order, rows_begin),
        cmocka_unit_test_setup(a_short_row_takes_no_more_than_it_asks_for, rows_begin),
        cmocka_unit_test_setup(what_waits_is_a_part_of_the_row, rows_begin),
        cmocka_unit_test_setup(other_lengths_end_a_row, rows_begin),
        cmocka_unit_test_setup(after_a_long_row_a_depot_takes_its_blocks, rows_begin),
        cmocka_unit_test_setup(but_not_more_than_may_be_cached, rows_begin),
        cmocka_unit_test_setup(another_thread_gets_what_one_has_freed, rows_begin),
        cmocka_unit_test_setup(what_waits_is_merged_before_the_window_grows, rows_begin),
        cmocka_unit_test_setup(what_is_taken_along_is_no_request, rows_begin),
        {.name = "what_a_shard_takes_along_is_no_request",
         .test_func = what_is_taken_along_is_no_request,
         .setup_func = rows_begin_sharded},
        cmocka_unit_test_setup(long_blocks_come_one_by_one, rows_begin),
        cmocka_unit_test_setup(aligned_blocks_come_one_by_one, rows_begin),
        cmocka_unit_test_setup(no_more_than_there_is_room_for, rows_begin),
        cmocka_unit_test_setup(growth_in_place_leaves_most_of_the_depots, rows_begin),
        cmocka_unit_test_setup(runs_of_neighbours_are_joined, rows_begin),
        cmocka_unit_test_setup(neighbours_of_two_shards_are_not, shards_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
