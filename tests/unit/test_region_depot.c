/* Depots: what waits there, whom it serves, when it comes back to the region, and that no call
 * waits for a depot. */
#include "unit/cmocka_all.h"
#include "unit/depots_fixture.h"

#include <pthread.h>
#include <string.h>

static struct fl_extent *take_waiting(size_t len)
{
    return fl_depot_take(&region, depots_cache, len);
}

static void a_freed_block_serves_the_next_request_of_its_length(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    struct fl_stats_values before = stats();
    assert_true(depots_put(e));
    assert_int_equal(e->state, FL_EXTENT_CACHED);
    assert_int_equal(stats().cached_bytes, KIB(200));
    assert_int_equal(stats().in_use_bytes, before.in_use_bytes);
    assert_int_equal(stats().live_extents, before.live_extents - 1);
    assert_null(take_waiting(KIB(204)));
    assert_null(take_waiting(KIB(192)));
    assert_ptr_equal(take_waiting(KIB(200)), e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_null(take_waiting(KIB(200)));
    assert_int_equal(depots_waiting(), 0);
    assert_settled();
}

static void a_little_longer_will_do(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(1000));
    assert_true(depots_put(e));
    assert_null(take_waiting(KIB(964))); /* more than a thirty-second */
    assert_ptr_equal(take_waiting(KIB(972)), e);
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
        assert_true(depots_put(e[i]));
    }
    assert_int_equal(depots_waiting(), 48);
    for (size_t i = 64; i-- > 16;) {
        assert_ptr_equal(take_waiting((i + 1) * KIB(4)), e[i]);
    }
    assert_int_equal(depots_own->bytes, 0);
    for (int i = 0; i < FL_DEPOT_WORDS; i++) {
        assert_int_equal(depots_own->some[i], 0);
    }
}

static void long_blocks_do_not_wait(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(1)), *f = take(MIB(1) + KIB(4));
    assert_true(depots_put(e));
    assert_false(depots_put(f));
    assert_null(take_waiting(MIB(1) + KIB(4)));
    assert_null(take_waiting(MIB(2)));
    assert_ptr_equal(take_waiting(MIB(1)), e);
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
        assert_true(depots_put(e[i]));
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
    assert_true(depots_put(e));
    region.epoch++;
    assert_true(depots_put(f));
    (void)fl_region_tick(&region, 3);
    assert_int_equal(depots_waiting(), 2);
    (void)fl_region_tick(&region, 3);
    assert_int_equal(depots_waiting(), 1);
    (void)fl_region_tick(&region, 3);
    assert_int_equal(depots_waiting(), 0);
    assert_settled();
}

static void tight_memory_leaves_nothing_there(void **state)
{
    struct fl_memory little = {.headroom = MIB(1), .keep = MIB(64)};
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(depots_put(take(KIB(256))));
    fl_region_lock(&region);
    (void)fl_region_note_memory(&region, &little);
    fl_region_unlock(&region);
    assert_int_equal(depots_waiting(), 0);
    assert_false(depots_put(e));
    assert_settled();
}

static void a_longer_one_is_cut_by_realloc(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(1000));
    assert_true(depots_put(e));
    assert_ptr_equal(take_waiting(KIB(988)), e);
    size_t in_use = stats().in_use_bytes;
    assert_true(fl_region_resize(&region, e, KIB(988)));
    assert_int_equal(e->len, KIB(988));
    assert_int_equal(stats().in_use_bytes, in_use - KIB(12));
    assert_true(depots_put(e)); /* in the bin of what it is now */
    assert_null(take_waiting(KIB(1000)));
    assert_ptr_equal(take_waiting(KIB(988)), e);
    assert_settled();
}

static void what_waits_keeps_the_worker(void **state)
{
    (void)state;
    fl_region_purge(&region, 0);
    struct fl_extent *e = take(KIB(200));
    fl_region_purge(&region, 0);
    (void)fl_region_tick(&region, 100);
    assert_true(depots_put(e));
    assert_true(fl_region_tick(&region, 100));
    assert_true(fl_depot_has_some(&region));
    depots_own->word = 1;
    size_t bytes = depots_own->bytes;
    depots_own->bytes = 0;
    assert_true(fl_depot_has_some(&region)); /* it is being changed */
    depots_own->bytes = bytes;
    depots_own->word = 0;
    fl_region_purge(&region, 0);
    assert_false(fl_depot_has_some(&region));
}

static void who_is_changed_by_another_is_passed_by(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200)), *f = take(KIB(200));
    assert_true(depots_put(e));
    depots_own->word = 1; /* a thread that has lost its processor */
    assert_null(take_waiting(KIB(200)));
    assert_false(depots_put(f));
    fl_region_purge(&region, 0);
    assert_int_equal(depots_waiting(), 1);
    depots_own->word = 0;
    assert_ptr_equal(take_waiting(KIB(200)), e);
}

static void other_depots_are_looked_at(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(depots_put(e));
    /* It lies on another one now. */
    size_t mine = (size_t)(depots_own - region.depots.depot), other = (mine + 5) % FL_DEPOTS;
    region.depots.depot[other] = *depots_own;
    memset(depots_own, 0, sizeof *depots_own);
    region.depots.used = (uint64_t)1 << other;
    assert_ptr_equal(take_waiting(KIB(200)), e);
    assert_int_equal(region.depots.depot[other].blocks, 0);
}

static int child(void)
{
    (void)fl_region_fork_child(&region, depots_cache);
    bool right = depots_own->word == 0 && depots_waiting() == (is_reserved() ? 1 : 0) &&
                 fl_region_check(&region) == NULL;
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
    assert_true(depots_put(e));
    assert_int_equal(pthread_create(&t, NULL, hold_the_lock, &go_on), 0);
    while (atomic_load(&go_on) != 1) {
    }
    assert_null(fl_depot_take_longer(&region, depots_cache, KIB(156)));
    size_t hits = depots_cache->stats.cache_hits;
    assert_ptr_equal(fl_region_take(&region, depots_cache, KIB(200), fl_page.base, false), e);
    assert_int_equal(depots_cache->stats.cache_hits, hits + 1);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    atomic_store(&go_on, 2);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_settled();
}

static void they_go_through_a_fork(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(200));
    assert_true(depots_put(e));
    assert_int_equal(fork_with(child), 0);
    assert_int_equal(depots_own->word, 0);
    assert_int_equal(depots_waiting(),
                     is_reserved() ? 1 : 0); /* there free memory is the child's, too */
    assert_settled();
}

static int child_of_a_broken_one(void)
{
    (void)fl_region_fork_child(&region, depots_cache);
    return depots_own->word == 0 && depots_own->blocks == 0 && fl_region_check(&region) == NULL ? 0
                                                                                                : 1;
}

static void a_child_has_none_that_was_being_changed(void **state)
{
    (void)state;
    assert_true(depots_put(take(KIB(200))));
    depots_own->word = 1;
    assert_int_equal(fork_with(child_of_a_broken_one), 0);
    assert_int_equal(depots_own->word, 1);
    depots_own->word = 0;
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
        assert_true(depots_put(e[i]));
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
    assert_true(depots_put(take(KIB(512))));
    fl_region_lock(&region);
    fl_depot_note_peak(&region);
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
    struct fl_cache *mine = fl_cache_acquire(&region);
    struct fl_extent *e[64] = {NULL};

    for (int i = 0; i < 20000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        struct fl_extent **at = &e[random >> 58];
        if (*at != NULL) {
            assert_int_equal(bytes(*at)[0], (unsigned char)(uintptr_t)*at);
            assert_true(fl_extent_claim(*at, region.epoch));
            if (!fl_region_keep(&region, mine, *at)) {
                fl_region_give(&region, *at);
            }
        }
        size_t len = KIB(64) + (random >> 40) % 64 * KIB(4);
        *at = fl_depot_take(&region, mine, len);
        *at = *at != NULL ? *at : fl_region_take(&region, mine, len, fl_page.base, false);
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
    fl_cache_release(&region, mine);
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
    assert_int_equal(depots_waiting(), 0);
    assert_settled();
}

#define T(f) cmocka_unit_test_setup(f, depots_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_freed_block_serves_the_next_request_of_its_length),
        T(a_little_longer_will_do),
        T(each_length_has_its_bin),
        T(long_blocks_do_not_wait),
        T(a_request_that_fits_nowhere_gets_what_waits),
        T(what_waits_ages),
        T(tight_memory_leaves_nothing_there),
        T(a_longer_one_is_cut_by_realloc),
        T(what_waits_keeps_the_worker),
        T(who_is_changed_by_another_is_passed_by),
        T(other_depots_are_looked_at),
        T(who_would_sleep_has_a_longer_one),
        T(they_go_through_a_fork),
        T(a_child_has_none_that_was_being_changed),
        T(what_waits_is_no_peak),
        T(a_printed_peak_is_never_below_what_is_in_use),
        T(threads_share_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
