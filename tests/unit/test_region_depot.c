/* Depots: what waits there, how much of it, whom it serves, when it comes back to the region, and
 * that no call waits for a depot. */
#include "cases.h"
#include "unit/shards_fixture.h"

#include <pthread.h>
#include <string.h>

enum { SHARE = 20 };           /* of what is in use may wait */
static struct fl_cache *cache; /* of this thread */
static struct fl_depot *own;   /* its depot, once something was put there */
static struct fl_extent *few[32];

/* 192 MiB are in use. */
static int begin(void **state)
{
    (void)plain_begin(state);
    fake.pretend_populate = true;
    assert_non_null(take(MIB(192)));
    cache = fl_cache_acquire(&region);
    resize_depots();
    assert_int_equal(region.depots.most, MIB(192) / SHARE);
    return 0;
}

static int begin_sharded(void **state)
{
    (void)shards_begin(state);
    cache = fl_cache_acquire(&region);
    return 0;
}

/* Into few. */
static void take_few(int n, size_t len)
{
    for (int i = 0; i < n; i++) {
        few[i] = take(len);
    }
}

/* Frees it there; false: to the region. */
static bool put(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    bool kept = fl_region_keep(&region, cache, e);
    if (!kept) {
        fl_region_give(&region, e);
    } else {
        own = &region.depots.depot[__builtin_ctzll(region.depots.used)];
    }
    return kept;
}

static void put_few(int from, int upto)
{
    for (int i = from; i < upto; i++) {
        assert_true(put(few[i]));
    }
}

/* Blocks in all depots. */
static size_t waiting(void)
{
    return fl_depot_blocks(&region);
}

static struct fl_extent *take_waiting(size_t len)
{
    return fl_depot_take(&region, cache, len);
}

CASE_AFTER(begin, a_freed_block_serves_the_next_request_of_its_length)
{
    struct fl_extent *e = take(KIB(200));
    struct fl_stats_values before = stats();
    assert_true(put(e));
    assert_int_equal(e->state, FL_EXTENT_CACHED);
    assert_int_equal(stats().cached_bytes, KIB(200));
    assert_int_equal(stats().in_use_bytes, before.in_use_bytes);
    assert_int_equal(stats().live_extents, before.live_extents - 1);
    assert_null(take_waiting(KIB(204)));
    assert_null(take_waiting(KIB(192)));
    assert_ptr_equal(take_waiting(KIB(200)), e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_null(take_waiting(KIB(200)));
    assert_int_equal(waiting(), 0);
    assert_settled();
}

/* By no more than a thirty-second. */
CASE_AFTER(begin, a_little_longer_will_do)
{
    struct fl_extent *e = take(KIB(1000));
    assert_true(put(e));
    assert_null(take_waiting(KIB(964)));
    assert_ptr_equal(take_waiting(KIB(972)), e);
    assert_int_equal(e->len, KIB(1000));
    size_t in_use = stats().in_use_bytes;
    assert_true(fl_region_resize(&region, e, KIB(988))); /* as realloc has it */
    assert_int_equal(e->len, KIB(988));
    assert_int_equal(stats().in_use_bytes, in_use - KIB(12));
    assert_true(put(e)); /* in the bin of what it is now */
    assert_null(take_waiting(KIB(1000)));
    assert_ptr_equal(take_waiting(KIB(988)), e);
    assert_settled();
}

CASE_AFTER(begin, long_blocks_do_not_wait)
{
    struct fl_extent *e = take(MIB(1)), *f = take(MIB(1) + KIB(4));
    assert_true(put(e));
    assert_false(put(f));
    assert_null(take_waiting(MIB(1) + KIB(4)));
    assert_null(take_waiting(MIB(2)));
    assert_ptr_equal(take_waiting(MIB(1)), e);
}

CASE_AFTER(begin, a_request_that_fits_nowhere_gets_what_waits)
{
    take_few(24, KIB(256));
    while (fl_region_free(&region).bytes != 0) { /* nothing else is free */
        (void)take(KIB(4));
    }
    put_few(0, 24);
    size_t held = region.held.populated;
    struct fl_extent *big = take(MIB(4));
    assert_non_null(big);
    assert_int_equal(region.held.populated, held);
    assert_in_range(big->base, few[0]->base - MIB(8), few[23]->base + MIB(8));
    assert_settled();
}

static void use_up_what_is_free(void)
{
    for (size_t len = MIB(1); len >= KIB(4); len /= 2) {
        while (fl_region_free(&region).bytes >= len) {
            (void)take(len);
        }
    }
}

/* Where threads hold each other up. */
CASE_AFTER(begin_sharded, it_grows_a_little_before_it_takes_what_waits)
{
    use_up_what_is_free();
    for (int i = 0; i < 8; i++) {
        assert_true(put(shards_block[i]));
    }
    size_t held = region.held.populated, n = waiting();
    assert_non_null(take(KIB(300)));
    assert_int_equal(waiting(), n);
    assert_true(region.held.populated > held && region.held.populated <= held + MIB(2));
    use_up_what_is_free();
    fake.commit_max = 0; /* no more is to be had */
    assert_non_null(take(KIB(300)));
    assert_true(waiting() < n);
    assert_settled();
}

CASE_AFTER(begin, what_waits_ages)
{
    struct fl_extent *e = take(KIB(200)), *f = take(KIB(204));
    assert_true(put(e));
    region.epoch++;
    assert_true(put(f));
    (void)fl_region_tick(&region, 3);
    assert_int_equal(waiting(), 2);
    (void)fl_region_tick(&region, 3);
    assert_int_equal(waiting(), 1);
    (void)fl_region_tick(&region, 3);
    assert_int_equal(waiting(), 0);
    assert_settled();
}

CASE_AFTER(begin, tight_memory_leaves_nothing_there)
{
    struct fl_memory little = {.headroom = MIB(1), .keep = MIB(64)};
    struct fl_extent *e = take(KIB(200));
    assert_true(put(take(KIB(256))));
    fl_region_lock(&region);
    (void)fl_region_note_memory(&region, &little);
    fl_region_unlock(&region);
    assert_int_equal(waiting(), 0);
    assert_false(put(e));
    assert_settled();
}

CASE_AFTER(begin, what_waits_keeps_the_worker)
{
    fl_region_purge(&region, 0);
    struct fl_extent *e = take(KIB(200));
    fl_region_purge(&region, 0);
    (void)fl_region_tick(&region, 100);
    assert_true(put(e));
    assert_true(fl_region_tick(&region, 100));
    assert_true(fl_depot_has_some(&region));
    own->word = 1;
    size_t bytes = own->bytes;
    own->bytes = 0;
    assert_true(fl_depot_has_some(&region)); /* it is being changed */
    own->bytes = bytes;
    own->word = 0;
    fl_region_purge(&region, 0);
    assert_false(fl_depot_has_some(&region));
}

CASE_AFTER(begin, who_is_changed_by_another_is_passed_by)
{
    struct fl_extent *e = take(KIB(200)), *f = take(KIB(200));
    assert_true(put(e));
    own->word = 1; /* a thread that has lost its processor */
    assert_null(take_waiting(KIB(200)));
    assert_false(put(f));
    fl_region_purge(&region, 0);
    assert_int_equal(waiting(), 1);
    own->word = 0;
    assert_ptr_equal(take_waiting(KIB(200)), e);
}

CASE_AFTER(begin, other_depots_are_looked_at)
{
    struct fl_extent *e = take(KIB(200));
    assert_true(put(e));
    /* It lies on another one now. */
    size_t mine = (size_t)(own - region.depots.depot), other = (mine + 5) % FL_DEPOTS;
    region.depots.depot[other] = *own;
    memset(own, 0, sizeof *own);
    region.depots.used = (uint64_t)1 << other;
    assert_ptr_equal(take_waiting(KIB(200)), e);
    assert_int_equal(region.depots.depot[other].blocks, 0);
}

static void *hold_the_lock(void *go_on)
{
    fl_region_lock(&region);
    atomic_store((_Atomic int *)go_on, 1);
    while (atomic_load((_Atomic int *)go_on) != 2) {
    }
    fl_region_unlock(&region);
    return NULL;
}

/* The thread that has the region's lock may have lost its processor. */
CASE_AFTER(begin, who_would_sleep_has_a_longer_one)
{
    _Atomic int go_on = 0;
    pthread_t t;
    struct fl_extent *e = take(KIB(240));
    assert_true(put(e));
    assert_int_equal(pthread_create(&t, NULL, hold_the_lock, &go_on), 0);
    while (atomic_load(&go_on) != 1) {
    }
    assert_null(fl_depot_take_longer(&region, cache, KIB(156)));
    size_t hits = cache->stats.cache_hits;
    assert_ptr_equal(fl_region_take(&region, cache, KIB(200), fl_page.base, false), e);
    assert_int_equal(cache->stats.cache_hits, hits + 1);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    atomic_store(&go_on, 2);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_settled();
}

static int child_of_a_broken_one(void)
{
    (void)fl_region_fork_child(&region, cache);
    bool empty = own->word == 0 && own->blocks == 0;
    return empty && fl_region_check(&region) == NULL ? 0 : 1;
}

CASE_AFTER(begin, a_child_has_none_that_was_being_changed)
{
    assert_true(put(take(KIB(200))));
    own->word = 1;
    assert_int_equal(fork_with(child_of_a_broken_one), 0);
    assert_int_equal(own->word, 1);
    own->word = 0;
}

CASE_AFTER(begin, what_waits_is_no_peak)
{
    take_few(16, KIB(512));
    size_t peak = region.held.in_use_peak;
    put_few(0, 16);
    assert_non_null(take(MIB(6)));
    assert_in_range(region.held.in_use_peak, peak - MIB(2), peak);
    assert_non_null(take(MIB(6)));
    assert_true(region.held.in_use_peak > peak);
}

/* What is printed counts it both times. */
CASE_AFTER(begin, a_printed_peak_is_never_below_what_is_in_use)
{
    assert_true(put(take(KIB(512))));
    fl_region_lock(&region);
    fl_depot_note_peak(&region);
    fl_region_count_use(&region, KIB(256));
    fl_region_unlock(&region);
    assert_true(stats().in_use_bytes > region.held.in_use_peak);
    assert_int_equal(stats().in_use_bytes, stats().in_use_peak_bytes);
    region.held.populated += MIB(2); /* as the stock's refill does */
    assert_int_equal(stats().populated_bytes, stats().populated_peak_bytes);
    region.held.populated -= MIB(2);
}

CASE_AFTER(begin, where_little_is_in_use_little_waits)
{
    (void)plain_begin(state);
    fake.pretend_populate = true;
    cache = fl_cache_acquire(&region);
    assert_int_equal(region.depots.most, KIB(512)); /* from the start on */
    assert_true(put(take(KIB(200))));
    assert_false(put(take(KIB(900)))); /* it alone were too much */
    region.held.in_use += MIB(2000);
    resize_depots();
    assert_int_equal(region.depots.most, MIB(32)); /* however much is in use */
    region.tight = true;
    resize_depots();
    region.held.in_use -= MIB(2000);
    assert_int_equal(region.depots.most, 0);
    assert_false(put(take(KIB(200))));
}

/* The region has them by one lock. */
CASE_AFTER(begin, what_is_too_much_goes_by_eights)
{
    for (int i = 0; i < 32; i++) {
        few[i] = take(KIB(1000) - (size_t)(i % 4) * KIB(40));
    }
    region.depots.most = region.depots.lead_most = MIB(10);
    uint64_t locks = region.stats.locks, gives = region.stats.gives;
    put_few(0, 13); /* a quarter more than may wait */
    assert_int_equal(region.stats.locks, locks);
    put_few(13, 14);
    assert_int_equal(region.stats.locks, locks + 1);
    assert_int_equal(region.stats.gives, gives + 8);
    assert_in_range(own->bytes, MIB(5), MIB(10));
    for (int i = 14; i < 32; i++) {
        put_few(i, i + 1);
        assert_in_range(own->bytes, 0, MIB(25) / 2);
    }
    assert_settled();
}

CASE_AFTER(begin, a_request_that_finds_nothing_takes_two_along)
{
    take_few(8, KIB(1000));
    struct fl_extent *room = take(KIB(100));
    put_few(0, 8);
    give(room);
    region.depots.most = region.depots.lead_most = MIB(2);
    uint64_t gives = region.stats.gives;
    assert_non_null(fl_region_take(&region, cache, KIB(100), fl_page.base, false));
    assert_int_equal(region.stats.gives, gives + 2);
    assert_int_equal(waiting(), 6);
    assert_settled();
}

static uint64_t locks_of_shards(void)
{
    return region.shards.of[0].since.locks + region.shards.of[1].since.locks;
}

CASE_AFTER(begin_sharded, blocks_of_two_shards_go_by_one_lock)
{
    uint64_t locks = 0;
    size_t live = stats().live_extents;
    for (int i = 0; i < 64; i++) {
        uint64_t before = locks_of_shards();
        assert_true(put(shards_block[i]));
        locks += locks_of_shards() - before;
    }
    assert_in_range(locks, 64 / 8 - 4, 64 / 4);
    assert_int_equal(stats().live_extents, live - 64);
    assert_settled();
}

static void set_locks(uint32_t word)
{
    for (unsigned s = 0; s < 2; s++) {
        atomic_store(&region.shards.of[s].lock.word, word);
    }
}

CASE_AFTER(begin_sharded, what_is_too_much_is_left_to_a_busy_shard)
{
    size_t live = stats().live_extents;
    set_locks(1);
    for (int i = 0; i < 64; i++) {
        assert_true(put(shards_block[i])); /* it would hang here */
    }
    assert_true(fl_shards_have_some(&region.shards));
    set_locks(0);
    assert_int_equal(stats().live_extents, live - 64);
    assert_settled();
}

/* The fork holds the lock: the next holder has them. */
CASE_AFTER(begin, what_is_too_much_gets_through_a_fork)
{
    take_few(16, KIB(500));
    region.depots.most = region.depots.lead_most = MIB(2);
    size_t live = stats().live_extents;
    atomic_store(&region.shards.of[0].lock.word, 3); /* as another thread's fork has it */
    put_few(0, 16);
    assert_non_null(region.caches.deferred);
    atomic_store(&region.shards.of[0].lock.word, 0);
    (void)stats();
    assert_null(region.caches.deferred);
    assert_int_equal(stats().live_extents, live - 16);
    assert_settled();
}

/* Of two depots the one that is in use has what the other one leaves of its share. */
CASE_AFTER(begin, what_others_leave_the_fullest_may_have)
{
    take_few(32, KIB(512));
    put_few(0, 1);
    const struct fl_depot *mine = own;
    region.depots.used |= mine == region.depots.depot ? 2 : 1;
    resize_depots();
    size_t all = region.held.in_use / SHARE, share = region.depots.most;
    assert_int_equal(share, all / 2);
    for (int i = 1; i < 32; i++) {
        put_few(i, i + 1);
        assert_in_range(mine->bytes, 0, all + share / 4);
    }
    assert_in_range(mine->bytes, all - MIB(4), all + share / 4);
    assert_settled();
}

CASES_MAIN()
