/* What holds between two operations. */
#include "prop/advised.h"
#include "prop/two_nodes.h"
#include "prop/world.h"
#include "unit/fake_sys.h"

static bool is_any_lock_held(void)
{
    bool held = fl_lock_is_busy(&region.pages.move.lock) || fl_lock_is_busy(&region.pages.asking);

    for (unsigned i = 0; i < FL_SHARDS; i++) {
        held |= fl_lock_is_busy(&region.shards.of[i].lock);
    }
    for (unsigned i = 0; i < FL_DEPOTS; i++) {
        held |= atomic_load(&region.depots.depot[i].word) != 0;
    }
    return held || fl_lock_is_held(FL_RANK_REGION, FL_SHARDS);
}

const char *world_check_settled(void)
{
    MUST(!is_any_lock_held(), "a lock is held still");
    MUST(!fl_region_busy(), "a call is said to be under way still");
    MUST(region.held.moving == 0 && region.held.exempt == 0 && region.held.filling == 0 &&
             TAILQ_EMPTY(&region.isolated) && fake.moves_open == 0,
         "something is under way still");
    MUST(atomic_load(&region.fork.threads) == 0, "a thread is said to fork still");
    return NULL;
}

struct sum {
    size_t blocks, bytes;
};

static void add(struct sum *s, size_t len)
{
    s->blocks++;
    s->bytes += len;
}

/* Does it lie on the node of its zone, if that is a node's? */
static bool lies_right(const struct fl_extent *e)
{
    return !world.config->nodes || e->zone >= TWO_NODES || !fl_extent_is_populated(e) ||
           two_nodes_lies(fl_extent_range(e), e->zone);
}

static bool do_all_lie_right(void)
{
    const struct fl_extent *e;
    bool right = true;

    for (uintptr_t at = region.space.first;
         right && region.zones.seeded && (e = fl_extent_at(&region.space, at)) != NULL;
         at += e->len) {
        right = lies_right(e);
    }
    return right;
}

/* What the window's extents say of themselves. */
static void add_window(struct sum *live, struct sum *waiting)
{
    const struct fl_extent *e;

    for (uintptr_t at = region.space.first;
         region.zones.seeded && (e = fl_extent_at(&region.space, at)) != NULL; at += e->len) {
        if (fl_extent_state(e) == FL_EXTENT_LIVE) {
            add(live, e->len);
        } else if (fl_extent_state(e) == FL_EXTENT_CACHED) {
            add(waiting, e->len);
        }
    }
}

/* What the model knows to be live; returns the bytes of it that are lazy. */
static size_t add_model(struct sum *live)
{
    size_t lazy = 0;

    for (const struct block *b = world.block; b < world.block + WORLD_BLOCKS; b++) {
        if (b->e != NULL) {
            add(live, b->len);
            lazy += b->lazy ? b->len : 0;
        }
    }
    return lazy;
}

/* Of one that was ever used. */
static void add_depot(const struct fl_depot *d, struct sum *sum)
{
    bool used = (region.depots.used >> (d - region.depots.depot) & 1) != 0;

    for (unsigned i = 0; used && i < FL_DEPOT_BINS; i++) {
        for (const struct fl_extent *e = d->bin[i]; e != NULL; e = e->next) {
            add(sum, e->len);
        }
    }
}

/* What waits in slots and depots, seen one by one. */
static struct sum sum_of_waiting(void)
{
    struct sum sum = {0};

    for (const struct fl_cache *c = region.caches.all; c != NULL; c = c->next) {
        for (const struct fl_cache_slot *s = c->slot; s < c->slot + FL_CACHE_SLOTS; s++) {
            const struct fl_extent *e = s->extent;
            if (e != NULL) {
                add(&sum, e->len);
            }
        }
    }
    for (unsigned i = 0; i < FL_DEPOTS; i++) {
        add_depot(&region.depots.depot[i], &sum);
    }
    return sum;
}

static bool is_equal(struct sum a, struct sum b)
{
    return a.blocks == b.blocks && a.bytes == b.bytes;
}

/* Bytes of the window that are mapped for use, but for the first huge page, which no extent has. */
static size_t usable_bytes(struct fl_range all)
{
    size_t usable = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        usable += fake.map[i].usable ? fl_range_common(fake.map[i].range, all).len : 0;
    }
    return usable;
}

/* The figures that programs see. */
static const char *check_figures(struct sum live, struct sum waiting, size_t lazy)
{
    struct fl_range all = {region.space.first,
                           fl_range_end(region.space.window.all) - region.space.first};
    struct fl_stats_values v = {.active = 1};

    fl_region_stats_read(&region, &v);
    MUST(v.live_extents == live.blocks && v.requests - v.frees == live.blocks,
         "the count of live blocks is wrong");
    MUST(v.in_use_bytes == live.bytes + waiting.bytes, "the bytes in use are wrong");
    MUST(v.cached_bytes == waiting.bytes, "the bytes that wait are wrong");
    MUST(usable_bytes(all) == v.populated_bytes + fl_holes_in(&region.pages.holes, all) -
                                  fl_holes_bare_in(&region.pages.holes, all) -
                                  region.pages.reserve.held + lazy,
         "what is mapped is not what is held");
    return NULL;
}

const char *world_check(void)
{
    struct sum live = {0}, named = {0}, found = {0};
    const char *broken = world_check_settled();

    MUST(broken == NULL, broken);
    broken = fl_region_check(&region);
    MUST(broken == NULL, broken);
    size_t lazy = add_model(&live);
    struct sum waiting = sum_of_waiting();
    add_window(&named, &found);
    MUST(is_equal(live, named), "other blocks are live than were handed out");
    MUST(is_equal(waiting, found), "a freed block waits nowhere, or twice");
    MUST(do_all_lie_right(), "a block lies on another node than its zone says");
    broken = check_figures(live, waiting, lazy);
    MUST(broken == NULL, broken);
    broken = world_check_settled();
    return broken != NULL ? broken : advised_check(&region);
}

static bool is_aged(const struct fl_extent *e, uint32_t age)
{
    return e != NULL && region.epoch - e->epoch >= age;
}

/* Lists are in the order of ages, nearly: heads are what a purge takes first. */
static bool has_aged_free(uint32_t age)
{
    for (unsigned i = 0; i < region.zones.n; i++) {
        if (is_aged(TAILQ_FIRST(&region.zones.of[i].by_age), age)) {
            return true;
        }
    }
    return false;
}

static bool has_aged_waiting(uint32_t age)
{
    bool aged = false;

    for (const struct fl_cache *c = region.caches.all; c != NULL; c = c->next) {
        for (const struct fl_cache_slot *s = c->slot; s < c->slot + FL_CACHE_SLOTS; s++) {
            aged |= is_aged(s->extent, age);
        }
    }
    for (unsigned i = 0; i < FL_DEPOTS * FL_DEPOT_BINS; i++) {
        const struct fl_depot *d = &region.depots.depot[i / FL_DEPOT_BINS];
        for (const struct fl_extent *e = d->bin[i % FL_DEPOT_BINS]; e != NULL; e = e->next) {
            aged |= is_aged(e, age);
        }
    }
    return aged;
}

const char *world_check_aged(uint32_t age)
{
    MUST(!has_aged_free(age), "free memory outlives its age");
    MUST(!has_aged_waiting(age), "what waits for a request outlives its age");
    return NULL;
}

static bool has_foreign(void)
{
    const struct fl_extent *e;
    bool has = false;

    for (uintptr_t at = region.space.first;
         !has && region.zones.seeded && (e = fl_extent_at(&region.space, at)) != NULL;
         at += e->len) {
        has = fl_extent_state(e) == FL_EXTENT_FOREIGN;
    }
    return has;
}

const char *world_check_empty(void)
{
    MUST(region.held.populated == 0 || has_foreign(), "not all has gone back");
    return world_check_aged(0);
}
