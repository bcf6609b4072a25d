/* A thread that asks for one length again and again gets several blocks under one lock, and its
 * frees of that length may fill a depot. */
#include "cases.h"
#include "unit/shards_fixture.h"

enum { EACH = 32, SLOTS = FL_CACHE_SLOTS, MANY = 4 * EACH * SLOTS };

static struct fl_cache *own, *theirs; /* of two threads */
static struct fl_extent *row[MANY];

static void begin_threads(void)
{
    own = fl_cache_acquire(&region);
    theirs = fl_cache_acquire(&region);
    assert_true(own != NULL && theirs != NULL);
}

/* 64 MiB are free. */
static int begin(void **state)
{
    (void)state;
    region_begin(NULL);
    begin_threads();
    give(take(MIB(64)));
    return 0;
}

/* The same, divided among two shards. */
static int begin_sharded(void **state)
{
    shards_begin(state);
    shards_give();
    begin_threads();
    fl_region_lock(&region);
    fl_region_unlock(&region);
    return 0;
}

/* As alloc/ asks, for a thread with that cache. */
static struct fl_extent *ask(struct fl_cache *c, size_t len)
{
    struct fl_extent *e = fl_cache_take(&region, c, len);

    e = e != NULL ? e : fl_depot_take_same(&region, c, len);
    e = e != NULL ? e : fl_depot_take(&region, c, len);
    e = e != NULL ? e : fl_region_take(&region, c, len, KIB(4), false);
    assert_non_null(e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_int_equal(e->len, len);
    return e;
}

/* Into row. */
static void ask_for(size_t n, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        row[i] = ask(own, len);
    }
}

static void free_row(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free_to(own, row[i]);
    }
}

/* Past the cache. */
static void give_row(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        give(row[i]);
    }
}

/* How often a lock of the region was taken, by now. */
static uint64_t locks_taken(void)
{
    uint64_t n = region.stats.locks;

    for (unsigned i = 0; i < shards_opened(); i++) {
        n += region.shards.of[i].since.locks;
    }
    return n;
}

static void what_waits_goes_and_all_is_one(size_t n)
{
    give_row(n);
    give(ask(own, KIB(256)));
    drain_caches();
    assert_int_equal(stats().in_use_bytes, 0);
    assert_int_equal(stats().live_extents, 0);
    assert_settled();
}

CASE_AFTER(begin, a_long_row_takes_a_lock_for_several)
{
    ask_for(MANY, KIB(64));
    give_row(MANY);
    uint64_t before = locks_taken();
    ask_for(MANY, KIB(64));
    assert_in_range(locks_taken() - before, 1, MANY / 2); /* a shard may have to ask another one */
    what_waits_goes_and_all_is_one(MANY);
}
CASE_AGAIN(begin_sharded, a_long_row_takes_a_lock_for_several)

/* And their descriptors in no order: as threads take some by turns, a processor would fetch those
 * of others ahead. */
CASE_AFTER(begin, they_lie_one_behind_the_other)
{
    size_t steady = 0;
    ask_for(MANY, KIB(64));
    for (size_t i = 1; i < MANY; i++) {
        assert_int_equal(row[i]->base, row[i - 1]->base + KIB(64));
        steady += i > 1 && row[i] - row[i - 1] == row[i - 1] - row[i - 2];
    }
    assert_in_range(steady, 0, MANY / EACH);
    give_row(MANY);
}

CASE_AFTER(begin, a_short_row_takes_no_more_than_it_asks_for)
{
    for (size_t i = 0; i < EACH; i++) { /* of any length */
        row[i] = ask(own, KIB(64));
        row[EACH + i] = ask(own, KIB(32));
        assert_int_equal(stats().cached_bytes, 0);
    }
    assert_int_equal(stats().in_use_bytes, EACH * KIB(96));
    give_row((size_t)2 * EACH);
}

CASE_AFTER(begin, what_waits_is_a_part_of_the_row)
{
    for (size_t i = 0; i < MANY; i++) {
        row[i] = ask(own, KIB(64));
        size_t waits = stats().cached_bytes / KIB(64);
        assert_true(waits <= i / EACH + 1 && waits <= SLOTS);
    }
    what_waits_goes_and_all_is_one(MANY);
}

/* Those of other lengths in turn, long ones, and aligned ones. */
CASE_AFTER(begin, others_come_one_by_one)
{
    static const struct {
        size_t len, next, align;
    } asked[] = {
        {KIB(64), KIB(256), KIB(4)}, {KIB(132), KIB(132), KIB(4)}, {KIB(64), KIB(64), KIB(64)}};
    for (size_t k = 0; k < sizeof asked / sizeof asked[0]; k++) {
        for (size_t i = 0; i < MANY / 2; i++) {
            size_t len = i % 2 == 0 ? asked[k].len : asked[k].next;
            row[i] = asked[k].align == KIB(4)
                         ? ask(own, len)
                         : fl_region_take(&region, own, len, asked[k].align, false);
            assert_int_equal(row[i]->base % asked[k].align, 0);
            assert_int_equal(stats().cached_bytes, 0);
        }
        assert_true(k != 0 || own->alike == 1);
        give_row(MANY / 2);
    }
}

static size_t waits_of(size_t n, size_t len)
{
    ask_for(n, len);
    drain_caches(); /* what was taken along */
    free_row(n);
    return stats().cached_bytes / len;
}

CASE_AFTER(begin, after_a_long_row_a_depot_takes_its_blocks)
{
    assert_in_range(waits_of(EACH, KIB(64)), SLOTS, SLOTS + 10); /* 512 KiB, and a quarter */
    drain_caches();
    assert_int_equal(waits_of(MANY, KIB(64)), MANY);
    uint64_t locks = locks_taken();
    ask_for(MANY, KIB(64)); /* from there */
    free_row(MANY);
    assert_int_equal(locks_taken(), locks);
    ask_for(MANY, KIB(64));
    what_waits_goes_and_all_is_one(MANY);
}

CASE_AFTER(begin, but_not_more_than_may_be_cached)
{
    atomic_store(&region.cache_max, MIB(4));
    assert_in_range(waits_of(MANY, KIB(64)), MIB(4) / KIB(64) - 8, MIB(4) / KIB(64) + SLOTS);
}

/* They are on one CPU. */
CASE_AFTER(begin, another_thread_gets_what_one_has_freed)
{
    assert_int_equal(waits_of(MANY, KIB(64)), MANY);
    uint64_t locks = locks_taken();
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        row[i] = ask(theirs, KIB(64));
    }
    assert_int_equal(locks_taken(), locks);
    assert_true(theirs->alike >= EACH * SLOTS); /* hits count, too: it may fill it again */
    give_row(MANY - SLOTS);
}

CASE_AFTER(begin, what_is_taken_along_is_no_request)
{
    struct fl_stats_values before = stats();
    ask_for(MANY, KIB(64));
    struct fl_stats_values after = stats();
    assert_int_equal(after.requests - before.requests, MANY);
    assert_int_equal(after.served_bytes - before.served_bytes, MANY * KIB(64));
    assert_int_equal(after.live_extents - before.live_extents, MANY);
    give_row(MANY);
    assert_int_equal(stats().live_extents, before.live_extents);
}
CASE_AGAIN(begin_sharded, what_is_taken_along_is_no_request)

/* What lies behind a block waits in the thread's cache: not all depots are emptied for that. */
CASE_AFTER(begin, growth_in_place_leaves_most_of_the_depots)
{
    enum { SHELVED = 64 };
    assert_non_null(take(MIB(192)));
    for (int i = 0; i < SHELVED; i++) {
        row[i] = take(KIB(100));
        assert_non_null(take(KIB(4)));
    }
    struct fl_extent *e = take(KIB(64)), *behind = take(KIB(64));
    assert_int_equal(behind->base, e->base + KIB(64));
    resize_depots();
    for (int i = 0; i < SHELVED; i++) {
        assert_true(fl_extent_claim(row[i], region.epoch));
        assert_true(fl_region_keep(&region, own, row[i]));
    }
    (void)cache_put(own, behind);
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
CASE_AFTER(begin, runs_of_neighbours_are_joined)
{
    struct fl_extent *chain = NULL;
    ask_for(EACH, KIB(64));
    size_t spare = region.space.descriptors.stash.n;
    for (size_t n = 0; n < EACH; n++) {
        size_t i = n < EACH / 2 ? n : EACH + EACH / 2 - 1 - n;
        if (i % 8 != 3) { /* the others stay */
            chain = chain_with(chain, row[i]);
        }
    }
    give_chain(chain);
    assert_int_equal(stats().live_extents, EACH / 8);
    assert_int_equal(stats().in_use_bytes, EACH / 8 * KIB(64));
    assert_int_equal(region.space.descriptors.stash.n, spare + EACH - EACH / 4);
    assert_settled();
    for (size_t i = 3; i < EACH; i += 8) {
        give(row[i]);
    }
    assert_settled();
}

CASE_AFTER(shards_begin, neighbours_of_two_shards_are_not)
{
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

CASES_MAIN()
