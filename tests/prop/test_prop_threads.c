/* Four threads on one region: each takes, also many in a row, stamps, resizes, moves, purges,
 * forks, and frees what others took; the first does the worker's jobs too. For TSan, and for the
 * invariants, which are looked at all the while. The fake kernel is quiet: it adds no order of its
 * own; pages move by the real one, where it can. */
#include "prop/quiet_fake.h"
#include "prop/seed.h"
#include "prop/two_nodes.h"
#include "region/serve/shard.h"
#include "region/state/lock.h"
#include "region/region.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <pthread.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 2500 };
#else
enum { ROUNDS = 15000 };
#endif
enum { THREADS = 4, OWN = 8, BOXES = 16, IN_A_ROW = 160 };

static struct fl_region region;
static uint64_t seed;
static bool sharded;                           /* free memory is divided, more and more */
static bool placed;                            /* on two nodes */
static _Atomic(struct fl_extent *) box[BOXES]; /* handed over: the thread that empties it frees */

static void change_node(struct fl_cache *c)
{
    two_nodes_here = 1 - two_nodes_here;
    atomic_store(&c->site, fl_site_void);
}

/* May the thread's cache and depot serve it, and keep that? */
static bool is_served(const struct fl_cache *c)
{
    return !placed || fl_cache_is_home(c);
}

static bool is_kept(const struct fl_cache *c, const struct fl_extent *e)
{
    return !placed || fl_cache_takes(c, e);
}

static uint64_t *last_word(const struct fl_extent *e)
{
    return (uint64_t *)(e->base + e->len) - 1;
}

static void stamp(struct fl_extent *e)
{
    *(uint64_t *)e->base = e->base;
    *last_word(e) = e->base;
}

static void claim(struct fl_extent *e)
{
    assert_true(*(uint64_t *)e->base == e->base && *last_word(e) == e->base);
    *last_word(e) = 0;
    assert_true(fl_extent_claim(e, atomic_load_explicit(&region.epoch, memory_order_relaxed)));
}

static void let_go(struct fl_cache *c, struct fl_extent *e, bool past_the_cache)
{
    claim(e);
    if (!past_the_cache && e->content != FL_CONTENT_LAZY && is_kept(c, e)) {
        bool waits = (e->base >> fl_page.shift & 1) != 0 && fl_region_keep(&region, c, e);
        e = waits ? NULL : fl_cache_put(&region, c, e);
    }
    if (e != NULL) {
        fl_region_give(&region, e);
    }
}

static struct fl_extent *take(struct fl_cache *c, uint64_t r)
{
    size_t len = fl_align_up((size_t)(1 + r % 40) << (r >> 8 & 1 ? 12 : 16), fl_page.base);

    if ((r >> 9) % 64 == 0) {
        len = (size_t)20 << 20; /* lazy */
    } else if ((r >> 9) % 8 == 0) {
        len = (size_t)(1 + r % 12) << 20;
    }
    struct fl_extent *e = is_served(c) ? fl_cache_take(&region, c, len) : NULL;
    bool plain = (r >> 20 & 3) == 0 && (r >> 24 & 1) == 0 && is_served(c);
    e = e == NULL && plain ? fl_depot_take(&region, c, len) : e;
    if (e == NULL) {
        e = fl_region_take(&region, c, len, fl_page.base << (r >> 20 & 3), (r >> 24 & 1) != 0);
    }
    if (e != NULL) {
        stamp(e);
    }
    return e;
}

/* Its owner has it at `*mine`; nothing is lost on the way. */
static void move(struct fl_extent **mine, size_t more)
{
    uint64_t was = *(uint64_t *)(*mine)->base, last = *last_word(*mine);
    size_t len = (*mine)->len;
    struct fl_extent *to = fl_region_move(&region, *mine, len + more);

    if (to != NULL) {
        assert_true(*(uint64_t *)to->base == was && *((uint64_t *)(to->base + len) - 1) == last);
        stamp(to);
        *mine = to;
    }
}

static void do_a_job(uint64_t r)
{
    switch (r >> 44 & 3) {
    case 0:
        while (fl_region_refill(&region) == 0) {
        }
        break;
    case 1:
        fl_region_lock(&region);
        fl_advice_hide_unlocking(&region, (uint32_t)(r >> 46) & 1, 4);
        fl_region_unlock(&region);
        break;
    default:
        for (int i = 0; i < 20 && fl_region_repair(&region) == 0; i++) {
        }
    }
}

static void open_or_share_out(bool open)
{
    fl_region_lock(&region);
    if (atomic_load(&region.shards.cursor) != 0) {
        fl_shards_share_out(&region);
    } else if (open) {
        fl_shards_open_one(&region);
    }
    fl_region_unlock(&region);
}

static void on_the_whole(uint64_t r, bool is_worker)
{
    switch (r >> 32 & 7) {
    case 0:
        (void)fl_region_purge(&region, r >> 35 & 3);
        break;
    case 1:
        if (is_worker) {
            (void)fl_region_tick(&region, 4);
        }
        break;
    case 2:
        if (fl_region_check(&region) != NULL) {
            fail_msg("an invariant does not hold");
        }
        break;
    case 3:
        fl_region_fork_lock(&region);
        fl_region_fork_parent(&region);
        break;
    case 4: /* while others are amid requests and frees */
        if (sharded) {
            open_or_share_out((r >> 36 & 7) == 0);
            break;
        }   /* fall through */
    case 5: /* from here on pages have to move */
        fl_region_lock(&region);
        region.held.in_use_peak = region.held.in_use;
        fl_region_unlock(&region);
        break;
    default:
        if (is_worker) {
            do_a_job(r);
        }
    }
}

/* Its depot gets most of them, and the next row has them from there. */
static void go_in_a_row(struct fl_cache *c)
{
    struct fl_extent *e[IN_A_ROW];
    size_t n = 0;

    for (; n < IN_A_ROW; n++) {
        e[n] = is_served(c) ? fl_cache_take(&region, c, FL_KIB * 16) : NULL;
        if (e[n] == NULL && is_served(c)) {
            e[n] = fl_depot_take_same(&region, c, FL_KIB * 16);
        }
        e[n] = e[n] != NULL ? e[n] : fl_region_take(&region, c, FL_KIB * 16, fl_page.base, false);
        if (e[n] == NULL) {
            break;
        }
        stamp(e[n]);
    }
    c->alike_len = FL_KIB * 16;
    c->alike = FL_ALIKE_LONG;
    for (size_t i = 0; i < n; i++) {
        claim(e[i]);
        struct fl_extent *old = is_kept(c, e[i]) ? fl_cache_put(&region, c, e[i]) : e[i];
        if (old == e[i]) {
            fl_region_give(&region, old);
            continue;
        }
        if (old != NULL && !fl_region_keep(&region, c, old)) {
            fl_region_give(&region, old);
        }
    }
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
        case 1:
            on_the_whole(r, (uintptr_t)arg == 1);
            break;
        case 2:
            if ((r >> 32 & 7) == 0) {
                go_in_a_row(c);
            } else if (placed && (r >> 32 & 1) == 0) {
                change_node(c);
            } else {
                fl_cache_release(&region, c);
                c = fl_cache_acquire(&region);
            }
            break;
        case 3:
            if (*mine != NULL) {
                move(mine, fl_align_up((size_t)(1 + (r >> 32 & 2047)) << 12, fl_page.base));
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
                fl_region_resize(&region, *mine,
                                 fl_align_up((size_t)(1 + (r >> 32 & 255)) << 12, fl_page.base))) {
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

static void share_a_region(bool with_shards, bool on_nodes)
{
    struct fl_region_config config = {.huge = true,
                                      .eager_max = (size_t)16 << 20,
                                      .stock = (size_t)8 << 20,
                                      .shards = with_shards ? 2 : 0,
                                      .populate_by_touch = seed % 2,
                                      .method =
                                          seed / 2 % 4 == 0 ? FL_METHOD_REMAP : FL_METHOD_MOVE};
    pthread_t t[THREADS];
    sharded = with_shards;
    placed = on_nodes;
    memset(&region, 0, sizeof region);
    memset(box, 0, sizeof box);
    install_quiet_fake();
    assert_int_equal(fl_region_start(&region, &config), 0);
    if (on_nodes) {
        fl_region_divide(&region, &two_nodes);
    }
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
    assert_int_equal(region.held.moving, 0);
    assert_true(region.depots.used != 0);
    print_message("  %" PRIu64 " MiB moved, rung %" PRIu64 "\n", v.move_bytes >> 20, v.rung);
}

static void four_threads_share_a_region(void **state)
{
    (void)state;
    share_a_region(false, false);
}

static void four_threads_share_a_region_of_several_shards(void **state)
{
    (void)state;
    share_a_region(true, false);
    assert_in_range(fl_shards_open(&region.shards), 2, FL_SHARDS);
}

static void four_threads_share_a_region_on_two_nodes(void **state)
{
    (void)state;
    two_nodes_begin();
    share_a_region(false, true);
    assert_int_equal(fl_shards_open(&region.shards), TWO_NODES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_threads_share_a_region_of_several_shards),
        cmocka_unit_test(four_threads_share_a_region),
        cmocka_unit_test(four_threads_share_a_region_on_two_nodes),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
