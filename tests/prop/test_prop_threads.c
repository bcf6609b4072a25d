/* Four threads on one region: each takes, stamps, resizes, purges, and frees what others took. For TSan, and for the
 * invariants, which one thread looks at all the while. The fake kernel is quiet: it adds no order of its own. */
#include "prop/seed.h"
#include "region/internal.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <pthread.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 2500 };
#else
enum { ROUNDS = 15000 };
#endif
enum { THREADS = 4, OWN = 8, BOXES = 16 };

static struct fl_region region;
static uint64_t seed;
static _Atomic(struct fl_extent *) box[BOXES]; /* handed over, for whoever empties it to free */

static uint64_t *last_word(const struct fl_extent *e)
{
    return (uint64_t *)(e->base + e->len) - 1;
}

static void stamp(struct fl_extent *e)
{
    *(uint64_t *)e->base = e->base;
    *last_word(e) = e->base;
}

static void let_go(struct fl_cache *c, struct fl_extent *e, bool past_the_cache)
{
    assert_true(*(uint64_t *)e->base == e->base && *last_word(e) == e->base);
    *last_word(e) = 0;
    assert_true(fl_extent_claim(e, atomic_load_explicit(&region.epoch, memory_order_relaxed)));
    if (!past_the_cache && e->content != FL_CONTENT_LAZY) {
        e = fl_cache_put(c, e);
    }
    if (e != NULL) {
        fl_region_give(&region, e);
    }
}

static struct fl_extent *take(struct fl_cache *c, uint64_t r)
{
    size_t len = (size_t)(1 + r % 40) << (r >> 8 & 1 ? 12 : 16);

    if ((r >> 9) % 64 == 0) {
        len = (size_t)20 << 20; /* lazy */
    }
    struct fl_extent *e = fl_cache_take(&region, c, len);
    if (e == NULL) {
        e = fl_region_take(&region, c, len, (size_t)4096 << (r >> 20 & 3), (r >> 24 & 1) != 0);
    }
    if (e != NULL) {
        stamp(e);
    }
    return e;
}

static void *work(void *arg)
{
    uint64_t random = seed ^ (uintptr_t)arg << 32;
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *own[OWN] = {NULL};

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t r = seed_next(&random);
        struct fl_extent **mine = &own[r >> 40 & 7], *e;
        switch (r >> 56 & 15) {
        case 0:
            (void)fl_region_purge(&region, r >> 32 & 3);
            break;
        case 1:
            (void)fl_region_tick(&region, 4);
            break;
        case 2:
            fl_cache_release(&region, c);
            c = fl_cache_acquire(&region);
            break;
        case 3:
            if (fl_region_check(&region) != NULL) {
                fail_msg("an invariant does not hold");
            }
            break;
        case 4:
        case 5:
        case 6:
            *mine = atomic_exchange(&box[r >> 32 & (BOXES - 1)], *mine);
            break;
        case 7:
        case 8:
            if (*mine != NULL &&
                fl_region_resize(&region, *mine, (size_t)(1 + (r >> 32 & 255)) << 12)) {
                stamp(*mine);
            }
            break;
        default:
            if (*mine != NULL) {
                let_go(c, *mine, (r >> 30 & 3) == 0);
                *mine = NULL;
            } else if ((e = take(c, r)) != NULL) {
                *mine = e;
            }
        }
    }
    for (int i = 0; i < OWN; i++) {
        if (own[i] != NULL) {
            let_go(c, own[i], false);
        }
    }
    fl_cache_release(&region, c);
    return NULL;
}

static void four_threads_share_a_region(void **state)
{
    struct fl_region_config config = {
        .huge = true, .eager_max = (size_t)16 << 20, .populate_by_touch = seed % 2};
    pthread_t t[THREADS];
    (void)state;
    fake_install();
    fake.quiet = true;
    fake.pretend_populate = true;
    assert_int_equal(fl_region_start(&region, &config), 0);
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    struct fl_cache *c = fl_cache_acquire(&region);
    for (int i = 0; i < BOXES; i++) {
        if (box[i] != NULL) {
            let_go(c, box[i], false);
        }
    }
    fl_cache_release(&region, c);
    (void)fl_region_purge(&region, 0);
    assert_null(fl_region_check(&region));
    struct fl_stats_values v = {.active = 1};
    fl_region_stats_read(&region, &v);
    assert_int_equal(v.live_extents, 0);
    assert_int_equal(v.in_use_bytes, 0);
    assert_int_equal(v.populated_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_threads_share_a_region),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
