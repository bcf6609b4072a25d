/* Shelves: what waits there, whom it serves, when it comes back to the region, and that no call
 * waits for a shelf. */
#include "unit/cmocka_all.h"
#include "unit/shelf_fixture.h"

#include <pthread.h>
#include <string.h>

static struct fl_shelf *own; /* the shelf of this thread's cache */

enum { SHARE = 20 }; /* of what is in use may wait */

static int begin(void **state)
{
    (void)shelf_begin(state);
    assert_int_equal(region.shelves.most, MIB(192) / SHARE);
    return 0;
}

static bool put(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    bool kept = fl_shelf_put(&region, shelf_cache, e);
    if (!kept) {
        fl_region_give(&region, e);
    } else {
        own = &region.shelves.shelf[__builtin_ctzll(region.shelves.used)];
    }
    return kept;
}

static struct fl_extent *take_shelved(size_t len)
{
    return fl_shelf_take(&region, shelf_cache, len);
}

static size_t waiting(void)
{
    return fl_shelf_blocks(&region);
}

static void a_freed_block_serves_the_next_request_of_its_length(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    struct fl_stats_values before = stats();
    assert_true(put(e));
    assert_int_equal(e->state, FL_EXTENT_CACHED);
    assert_int_equal(stats().cached_bytes, KIB(200));
    assert_int_equal(stats().in_use_bytes, before.in_use_bytes);
    assert_int_equal(stats().live_extents, before.live_extents - 1);
    assert_null(take_shelved(KIB(204)));
    assert_null(take_shelved(KIB(192)));
    assert_ptr_equal(take_shelved(KIB(200)), e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_null(take_shelved(KIB(200)));
    assert_int_equal(waiting(), 0);
    assert_settled();
}

static void a_little_longer_will_do(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(1000));
    assert_true(put(e));
    assert_null(take_shelved(KIB(964))); /* more than a thirty-second */
    assert_ptr_equal(take_shelved(KIB(972)), e);
    assert_int_equal(e->len, KIB(1000));
}

static void each_length_has_its_bin(void **state)
{
    (void)state;
    struct fl_extent *e[256];
    for (size_t i = 16; i < 64; i++) {
        e[i] = take((i + 1) * KIB(4));
    }
    for (size_t i = 16; i < 64; i++) {
        assert_true(put(e[i]));
    }
    assert_int_equal(waiting(), 48);
    for (size_t i = 64; i-- > 16;) {
        assert_ptr_equal(take_shelved((i + 1) * KIB(4)), e[i]);
    }
    assert_int_equal(own->bytes, 0);
    for (int i = 0; i < FL_SHELF_WORDS; i++) {
        assert_int_equal(own->some[i], 0);
    }
}

static void long_blocks_do_not_wait(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(1)), *f = take(MIB(1) + KIB(4));
    assert_true(put(e));
    assert_false(put(f));
    assert_null(take_shelved(MIB(1) + KIB(4)));
    assert_null(take_shelved(MIB(2)));
    assert_ptr_equal(take_shelved(MIB(1)), e);
}

static void where_little_is_in_use_nothing_waits(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    shelf_cache = fl_cache_acquire(&region);
    assert_non_null(take(MIB(100)));
    shelf_resize();
    assert_false(put(take(KIB(200))));
    region.stats.in_use += MIB(2000);
    shelf_resize();
    assert_int_equal(region.shelves.most, MIB(32)); /* however much is in use */
    region.tight = true;
    shelf_resize();
    region.stats.in_use -= MIB(2000);
    assert_int_equal(region.shelves.most, 0);
}

static void what_is_too_much_makes_room(void **state)
{
    struct fl_extent *e[32];
    (void)state;
    for (int i = 0; i < 32; i++) {
        e[i] = take(KIB(1000) - (size_t)(i % 4) * KIB(40));
    }
    region.shelves.most = region.shelves.lead_most = MIB(10);
    int kept = 0;
    for (int i = 0; i < 32; i++) {
        kept += put(e[i]);
    }
    assert_in_range(own->bytes, MIB(25) / 2, MIB(27) / 2); /* a quarter more */
    assert_in_range(kept, 12, 15);
    size_t before = own->bytes;
    struct fl_stats_values then = stats();
    assert_null(take_shelved(KIB(100)));
    assert_in_range(before - own->bytes, KIB(1700), KIB(2000)); /* two of them */
    assert_non_null(shelf_cache->leaving);
    assert_int_equal(stats().live_extents, then.live_extents); /* they wait still */
    assert_int_equal(stats().cached_bytes, then.cached_bytes);
    size_t gives = region.stats.gives;
    struct fl_extent *f = fl_region_take(&region, shelf_cache, KIB(100), fl_page.base, false);
    assert_non_null(f);
    assert_null(shelf_cache->leaving);
    assert_int_equal(region.stats.gives, gives + 2);
    assert_settled();
}

/* Of two shelves the one that is in use has what the other one leaves of its share. */
static void what_others_leave_the_fullest_may_have(void **state)
{
    struct fl_extent *e[32];
    int kept = 0;
    (void)state;
    for (int i = 0; i < 32; i++) {
        e[i] = take(KIB(512));
    }
    assert_true(put(e[0]));
    const struct fl_shelf *mine = own;
    region.shelves.used |= mine == region.shelves.shelf ? 2 : 1;
    shelf_resize();
    size_t all = region.stats.in_use / SHARE, share = region.shelves.most;
    assert_int_equal(share, all / 2);
    for (int i = 1; i < 32; i++) {
        kept += put(e[i]);
    }
    assert_in_range(kept, 20, 30);
    assert_in_range(mine->bytes, all, all + share / 4 + KIB(512));
    assert_settled();
}

static void a_request_that_fits_nowhere_gets_what_waits(void **state)
{
    struct fl_extent *e[24], *rest[512];
    size_t n = 0;
    (void)state;
    for (int i = 0; i < 24; i++) {
        e[i] = take(KIB(256));
    }
    while (n < 512 && fl_region_free(&region).bytes != 0) { /* nothing else is free */
        rest[n++] = take(KIB(4));
    }
    assert_int_equal(fl_region_free(&region).bytes, 0);
    for (int i = 0; i < 24; i++) {
        assert_true(put(e[i]));
    }
    size_t held = region.held.populated;
    struct fl_extent *big = take(MIB(4));
    assert_non_null(big);
    assert_int_equal(region.held.populated, held);
    assert_in_range(big->base, e[0]->base - MIB(8), e[23]->base + MIB(8));
    assert_settled();
    (void)rest;
}

static void what_waits_ages(void **state)
{
    (void)state;
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

static void tight_memory_leaves_nothing_there(void **state)
{
    struct fl_memory little = {.headroom = MIB(1), .keep = MIB(64)};
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(put(take(KIB(256))));
    fl_region_lock(&region);
    (void)fl_region_note_memory(&region, &little);
    fl_region_unlock(&region);
    assert_int_equal(waiting(), 0);
    assert_false(put(e));
    assert_settled();
}

static void a_longer_one_is_cut_by_realloc(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(1000));
    assert_true(put(e));
    assert_ptr_equal(take_shelved(KIB(988)), e);
    size_t in_use = stats().in_use_bytes;
    assert_true(fl_region_resize(&region, e, KIB(988)));
    assert_int_equal(e->len, KIB(988));
    assert_int_equal(stats().in_use_bytes, in_use - KIB(12));
    assert_true(put(e)); /* in the bin of what it is now */
    assert_null(take_shelved(KIB(1000)));
    assert_ptr_equal(take_shelved(KIB(988)), e);
    assert_settled();
}

static void what_waits_keeps_the_worker(void **state)
{
    (void)state;
    fl_region_purge(&region, 0);
    struct fl_extent *e = take(KIB(200));
    fl_region_purge(&region, 0);
    (void)fl_region_tick(&region, 100);
    assert_true(put(e));
    assert_true(fl_region_tick(&region, 100));
    assert_true(fl_shelf_has_some(&region));
    own->word = 1;
    size_t bytes = own->bytes;
    own->bytes = 0;
    assert_true(fl_shelf_has_some(&region)); /* it is being changed */
    own->bytes = bytes;
    own->word = 0;
    fl_region_purge(&region, 0);
    assert_false(fl_shelf_has_some(&region));
}

static void who_is_changed_by_another_is_passed_by(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200)), *f = take(KIB(200));
    assert_true(put(e));
    own->word = 1; /* a thread that has lost its processor */
    assert_null(take_shelved(KIB(200)));
    assert_false(put(f));
    fl_region_purge(&region, 0);
    assert_int_equal(waiting(), 1);
    own->word = 0;
    assert_ptr_equal(take_shelved(KIB(200)), e);
}

static void other_shelves_are_looked_at(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(put(e));
    /* It lies on another one now. */
    size_t mine = (size_t)(own - region.shelves.shelf), other = (mine + 5) % FL_SHELVES;
    region.shelves.shelf[other] = *own;
    memset(own, 0, sizeof *own);
    region.shelves.used = (uint64_t)1 << other;
    assert_ptr_equal(take_shelved(KIB(200)), e);
    assert_int_equal(region.shelves.shelf[other].blocks, 0);
}

static int child(void)
{
    (void)fl_region_fork_child(&region, shelf_cache);
    bool right =
        own->word == 0 && waiting() == (is_reserved() ? 1 : 0) && fl_region_check(&region) == NULL;
    return right && take(KIB(64)) != NULL ? 0 : 1;
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
static void who_would_sleep_has_a_longer_one(void **state)
{
    _Atomic int go_on = 0;
    pthread_t t;
    (void)state;
    struct fl_extent *e = take(KIB(240));
    assert_true(put(e));
    shelf_cache->uses_shelves = true;
    assert_int_equal(pthread_create(&t, NULL, hold_the_lock, &go_on), 0);
    while (atomic_load(&go_on) != 1) {
    }
    assert_null(fl_shelf_take_longer(&region, shelf_cache, KIB(156)));
    size_t hits = shelf_cache->stats.cache_hits;
    assert_ptr_equal(fl_region_take(&region, shelf_cache, KIB(200), fl_page.base, false), e);
    assert_int_equal(shelf_cache->stats.cache_hits, hits + 1);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    atomic_store(&go_on, 2);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_settled();
}

static void they_go_through_a_fork(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(put(e));
    assert_int_equal(fork_with(child), 0);
    assert_int_equal(own->word, 0);
    assert_int_equal(waiting(), is_reserved() ? 1 : 0); /* there free memory is the child's, too */
    assert_settled();
}

static int child_of_a_broken_one(void)
{
    (void)fl_region_fork_child(&region, shelf_cache);
    return own->word == 0 && own->blocks == 0 && fl_region_check(&region) == NULL ? 0 : 1;
}

static void a_child_has_none_that_was_being_changed(void **state)
{
    (void)state;
    assert_true(put(take(KIB(200))));
    own->word = 1;
    assert_int_equal(fork_with(child_of_a_broken_one), 0);
    assert_int_equal(own->word, 1);
    own->word = 0;
}

static void what_waits_is_no_peak(void **state)
{
    struct fl_extent *e[16];
    (void)state;
    for (int i = 0; i < 16; i++) {
        e[i] = take(KIB(512));
    }
    size_t peak = region.stats.in_use_peak;
    for (int i = 0; i < 16; i++) {
        assert_true(put(e[i]));
    }
    assert_non_null(take(MIB(6)));
    assert_in_range(region.stats.in_use_peak, peak - MIB(2), peak);
    assert_non_null(take(MIB(6)));
    assert_true(region.stats.in_use_peak > peak);
}

/* What is printed counts it both times. */
static void a_printed_peak_is_never_below_what_is_in_use(void **state)
{
    (void)state;
    assert_true(put(take(KIB(512))));
    fl_region_lock(&region);
    fl_region_note_peak(&region);
    fl_region_count_use(&region, KIB(256));
    fl_region_unlock(&region);
    assert_true(stats().in_use_bytes > region.stats.in_use_peak);
    assert_int_equal(stats().in_use_bytes, stats().in_use_peak_bytes);
    region.held.populated += MIB(2); /* as the stock's refill does */
    assert_int_equal(stats().populated_bytes, stats().populated_peak_bytes);
    region.held.populated -= MIB(2);
}

static void *replace(void *arg)
{
    uint64_t random = 88172645463325252u + (uintptr_t)arg;
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *e[64] = {NULL};

    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct fl_extent **at = &e[random >> 58];
        if (*at != NULL) {
            assert_int_equal(bytes(*at)[0], (unsigned char)(uintptr_t)*at);
            assert_true(fl_extent_claim(*at, region.epoch));
            if (!fl_shelf_put(&region, c, *at)) {
                fl_region_give(&region, *at);
            }
        }
        size_t len = KIB(64) + (random >> 40) % 64 * KIB(4);
        *at = fl_shelf_take(&region, c, len);
        *at = *at != NULL ? *at : fl_region_take(&region, c, len, fl_page.base, false);
        assert_non_null(*at);
        assert_true((*at)->len >= len);
        bytes(*at)[0] = (unsigned char)(uintptr_t)*at;
        bytes(*at)[len - 1] = 1;
    }
    for (int i = 0; i < 64; i++) {
        if (e[i] != NULL) {
            give(e[i]);
        }
    }
    fl_cache_release(&region, c);
    return NULL;
}

static void threads_share_them(void **state)
{
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, replace, (void *)(i * 7919)), 0);
    }
    for (int i = 0; i < 50; i++) {
        (void)fl_region_tick(&region, 1);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
    }
    fl_region_purge(&region, 0);
    assert_int_equal(waiting(), 0);
    assert_settled();
}

#define T(f) cmocka_unit_test_setup(f, begin)

static void miss(uint64_t ns)
{
    fake.now_ns += ns;
    (void)fl_shelf_is_of_use(shelf_cache);
}

static void who_misses_often_uses_them(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * FL_SHELF_MISSES; i++) {
        miss(3000);
    }
    assert_true(shelf_cache->uses_shelves);
    for (int i = 0; i < FL_SHELF_MISSES; i++) {
        miss(5000);
    }
    assert_false(shelf_cache->uses_shelves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_freed_block_serves_the_next_request_of_its_length),
        T(a_little_longer_will_do),
        T(each_length_has_its_bin),
        T(long_blocks_do_not_wait),
        T(where_little_is_in_use_nothing_waits),
        T(what_is_too_much_makes_room),
        T(what_others_leave_the_fullest_may_have),
        T(a_request_that_fits_nowhere_gets_what_waits),
        T(what_waits_ages),
        T(tight_memory_leaves_nothing_there),
        T(a_longer_one_is_cut_by_realloc),
        T(what_waits_keeps_the_worker),
        T(who_is_changed_by_another_is_passed_by),
        T(other_shelves_are_looked_at),
        T(who_would_sleep_has_a_longer_one),
        T(they_go_through_a_fork),
        T(a_child_has_none_that_was_being_changed),
        T(what_waits_is_no_peak),
        T(a_printed_peak_is_never_below_what_is_in_use),
        T(threads_share_them),
        T(who_misses_often_uses_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
