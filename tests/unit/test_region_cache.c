/* Thread caches: hits, eviction, draining, handing on; and the claims that make a double free
 * visible. */
#include "cases.h"
#include "unit/region_fixture.h"

#include <pthread.h>

static struct fl_cache *c;

static int each(void **state)
{
    (void)plain_begin(state);
    c = fl_cache_acquire(&region);
    return c != NULL ? 0 : -1;
}

CASE_AFTER(each, the_same_size_comes_back_without_the_lock)
{
    struct fl_extent *e = cache_put(c, take(KIB(256)));
    assert_int_equal(e->state, FL_EXTENT_CACHED);
    fl_region_lock(&region); /* a cache that wanted the lock would hang here, or die of its rank */
    assert_null(fl_cache_take(&region, c, KIB(252)));
    assert_null(fl_cache_take(&region, c, KIB(260)));
    assert_ptr_equal(fl_cache_take(&region, c, KIB(256)), e);
    assert_null(fl_cache_take(&region, c, KIB(256)));
    fl_region_unlock(&region);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_sound();
}

CASE_AFTER(each, the_oldest_makes_room)
{
    struct fl_extent *e[FL_CACHE_SLOTS + 3];
    for (size_t i = 0; i < FL_CACHE_SLOTS + 3; i++) {
        e[i] = take(KIB(64) + i * KIB(4));
    }
    for (size_t i = 0; i < FL_CACHE_SLOTS; i++) {
        (void)cache_put(c, e[i]);
    }
    for (size_t i = FL_CACHE_SLOTS; i < FL_CACHE_SLOTS + 3; i++) {
        assert_true(fl_extent_claim(e[i], region.epoch));
        assert_ptr_equal(fl_cache_put(&region, c, e[i]), e[i - FL_CACHE_SLOTS]);
        fl_region_give(&region, e[i - FL_CACHE_SLOTS]);
    }
    assert_ptr_equal(fl_cache_take(&region, c, KIB(64) + KIB(4) * 3), e[3]);
    assert_sound();
}

CASE_AFTER(each, all_caches_are_emptied_before_growth)
{
    struct fl_cache *mine = fl_cache_acquire(&region);
    (void)cache_put(c, take(MIB(2)));
    size_t populated = region.held.populated;
    assert_non_null(fl_region_take(&region, mine, MIB(1), fl_page.base, false));
    assert_int_equal(region.held.populated, populated);
    assert_sound();
}

static bool is_empty(const struct fl_cache *of)
{
    return of->slot[0].extent == NULL && of->slot[1].extent == NULL;
}

/* Thousands of them cost a request nothing: what is in this one came there past the put. */
CASE_AFTER(each, a_cache_that_got_nothing_is_not_looked_at)
{
    struct fl_cache *mine = fl_cache_acquire(&region);
    (void)cache_put(c, take(KIB(64)));
    struct fl_extent *small = take(KIB(64)), *e = take(MIB(4)); /* grows: all are emptied */
    assert_true(is_empty(c));
    assert_true(fl_extent_claim(e, region.epoch));
    atomic_store(&c->slot[0].extent, e);
    (void)fl_region_resize(&region, small, MIB(1));
    struct fl_extent *big = fl_region_take(&region, mine, MIB(16), fl_page.base, false);
    assert_non_null(big);
    assert_ptr_equal(c->slot[0].extent, e);
    (void)cache_put(c, take(KIB(64)));
    assert_non_null(take(MIB(32)));
    assert_true(is_empty(c));
    assert_sound();
}

/* A child of fork: one thread was about to enter its cache into the list, one had, one is the
 * child's own. */
CASE_AFTER(each, orphaned_caches_are_as_good_as_new)
{
    struct fl_cache *amid = fl_cache_acquire(&region), *mine = fl_cache_acquire(&region);
    (void)cache_put(c, take(KIB(64)));
    (void)cache_put(mine, take(KIB(64)));
    atomic_store(&amid->listed, true);
    (void)cache_put(amid, take(KIB(64)));
    fl_region_lock(&region);
    fl_cache_drain_orphans(&region, mine);
    fl_region_unlock(&region);
    assert_true(is_empty(c) && is_empty(amid) && !is_empty(mine));
    assert_int_equal(region.caches.owned, 1);
    (void)cache_put(amid, take(KIB(128)));
    (void)cache_put(c, take(KIB(128)));
    assert_non_null(take(MIB(8)));
    assert_true(is_empty(c) && is_empty(amid) && is_empty(mine));
    assert_sound();
}

CASE_AFTER(each, a_released_cache_is_empty_and_goes_to_the_next)
{
    (void)cache_put(c, take(KIB(256)));
    (void)cache_put(c, take(KIB(128)));
    fl_cache_release(&region, c);
    assert_int_equal(fl_region_free(&region).bytes, MIB(2));
    size_t used = region.space.descriptors.used;
    for (int i = 0; i < 1000; i++) { /* threads that come and go use one cache */
        struct fl_cache *next = fl_cache_acquire(&region);
        assert_ptr_equal(next, c);
        fl_cache_release(&region, next);
    }
    assert_int_equal(region.space.descriptors.used, used);
    struct fl_cache *x = fl_cache_acquire(&region), *y = fl_cache_acquire(&region);
    assert_ptr_equal(x, c);
    assert_ptr_not_equal(y, c);
    assert_sound();
}

CASE_AFTER(each, what_they_hold_goes_back_by_a_purge_and_by_age)
{
    (void)cache_put(c, take(MIB(4)));
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_null(fl_cache_take(&region, c, MIB(4)));
    fake_forget();
    (void)cache_put(c, take(MIB(4)));
    for (int i = 0; i < 3; i++) {
        assert_true(fl_region_tick(&region, 4));
    }
    assert_int_equal(fake_purged(), 0);
    assert_false(fl_region_tick(&region, 4));
    assert_int_equal(fake_purged(), MIB(4));
    assert_sound();
}

CASE_AFTER(each, without_memory_for_a_cache_there_is_none)
{
    fake.commit_max = 0;
    size_t n = 0;
    while (fl_cache_acquire(&region) != NULL) {
        n++;
    }
    assert_true(n > 1000); /* what is committed already holds that many */
    assert_null(fl_cache_acquire(&region));
    assert_sound();
}

CASE_AFTER(each, find_knows_starts_of_live_blocks_alone)
{
    struct fl_extent *a = take(MIB(3)), *b = take(KIB(64));
    uintptr_t a_base = a->base, end = fl_range_end(region.space.window.all);
    assert_ptr_equal(fl_region_find(&region, a_base), a);
    assert_ptr_equal(fl_region_find(&region, b->base), b);
    for (uintptr_t inside = 1; inside < MIB(3); inside = inside * 2 + 1) {
        assert_null(fl_region_find(&region, a_base + inside));
    }
    assert_null(fl_region_find(&region, a_base + MIB(3) - KIB(4))); /* its last page */
    const uintptr_t elsewhere[] = {0,
                                   1,
                                   (uintptr_t)&a,
                                   UINTPTR_MAX,
                                   region.space.window.all.base,
                                   region.space.window.all.base + 16,
                                   region.space.first - 1,
                                   end - fl_page.base,
                                   end - 1,
                                   end,
                                   end + fl_page.base,
                                   region.space.first + (end - region.space.first) / 2};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        assert_null(fl_region_find(&region, elsewhere[i]));
    }
    give(a);
    assert_null(fl_region_find(&region, a_base));
    struct fl_extent *front = take(KIB(64)), *rest = take(KIB(64));
    assert_ptr_equal(fl_region_find(&region, a_base), front);
    assert_ptr_equal(fl_region_find(&region, a_base + KIB(64)), rest);
    assert_null(fl_region_find(&region, a_base + KIB(128)));
}

static struct fl_extent *contested[256];
static _Atomic int claims;

static void *claim_all(void *arg)
{
    for (size_t i = 0; i < 256; i++) {
        if (fl_extent_claim(contested[i], region.epoch)) {
            atomic_fetch_add(&claims, 1);
            fl_region_give(&region, contested[i]);
        }
    }
    return arg;
}

CASE_AFTER(each, one_of_many_frees_wins)
{
    pthread_t t[4];
    for (size_t i = 0; i < 256; i++) {
        contested[i] = take(KIB(64));
    }
    struct fl_extent *last = contested[255]; /* no takes below: its descriptor stays unused */
    atomic_store(&claims, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, claim_all, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], NULL);
    }
    assert_int_equal(claims, 256);
    assert_int_equal(stats().live_extents, 0);
    assert_false(fl_extent_claim(last, region.epoch));
    assert_sound();
}

CASES_MAIN()
