/* When another shard is opened, and what it gets: see shard.h.
 *
 * It gets extents that lie in its part of the addresses, those that are free and those in use, some
 * at a time, at requests that find their lock busy. All locks are held meanwhile. On several nodes
 * there is nothing to get: their zones are divided from the start. */
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"
#include "region/serve/shard.h"

enum {
    BUSY_MOST = 64, /* requests that may find the lock busy, */
    OF_LOCKS = 4096,
    BLOCKS_EACH = 64, /* in use for each shard, */
    STRIPES = 4,      /* of a shard, of what is in use when it is opened */
    WALK_MOST = 512,  /* extents that may change their zone at once, */
    LOST_MOST = 8192, /* and pages that are gone through for the first of them */
};
static const size_t from_each = (size_t)16 << 20; /* and bytes */

unsigned fl_shard_here(const struct fl_region *r, const struct fl_cache *own)
{
    unsigned n = fl_shards_open(&r->shards), cpu = fl_cache_cpu(own);

    /* Of n shards: CPUs 0, n, 2 n ... are not all one's, as some programs are bound to such. */
    return (cpu + cpu / n + cpu / n / n) % n;
}

static unsigned cpus_of(const struct fl_region *r)
{
    return (unsigned)__builtin_popcountll(
        atomic_load_explicit(&r->shards.cpus, memory_order_relaxed));
}

static void note_cpu(struct fl_region *r)
{
    uint64_t bit = fl_cpu_offset != 0 ? (uint64_t)1 << fl_cpu_here() % 64 : ~(uint64_t)0;

    if ((atomic_load_explicit(&r->shards.cpus, memory_order_relaxed) & bit) == 0) {
        (void)atomic_fetch_or_explicit(&r->shards.cpus, bit, memory_order_relaxed);
    }
}

/* Are requests of enough CPUs held up often enough since the last one was opened, and is enough in
 * use? Lock: region. */
static bool is_wanted(struct fl_region *r)
{
    unsigned n = fl_shards_open(&r->shards);
    size_t each = r->config.shard_from != 0 ? r->config.shard_from : from_each;
    uint64_t blocks = r->stats.takes + r->stats.kept - r->stats.gives;
    uint64_t locks = r->stats.locks, since = locks - r->shards.looked_at;

    fl_assert(fl_region_is_locked(r));
    r->shards.looked_at = locks;
    if (since > OF_LOCKS) { /* threads that move about come to all CPUs with time */
        atomic_store_explicit(&r->shards.cpus, 0, memory_order_relaxed);
    }
    return since <= OF_LOCKS && n < FL_SHARDS && n < cpus_of(r) && r->held.in_use / each >= n &&
           blocks / BLOCKS_EACH >= n && fl_tick_is_never_due(r);
}

void fl_shards_note_busy(struct fl_region *r)
{
    bool sharing = atomic_load_explicit(&r->shards.cursor, memory_order_relaxed) != 0;
    unsigned n = fl_shards_open(&r->shards);

    fl_assert(n != 0 && n <= FL_SHARDS);
    if (r->zones.placing.nodes != 0 || r->config.shards != 0 || (n == FL_SHARDS && !sharing)) {
        return;
    }
    note_cpu(r);
    if (n >= cpus_of(r) && !sharing) {
        return;
    }
    uint32_t busy = atomic_fetch_add_explicit(&r->shards.busy, 1, memory_order_relaxed) + 1;
    if (busy % BUSY_MOST == 0 && fl_region_lock_unless_forking(r)) {
        if (r->shards.cursor != 0) { /* looked at again: another thread may have been here */
            fl_shards_share_out(r);
        } else if (is_wanted(r)) {
            fl_shards_open_one(r);
        }
        fl_region_unlock(r);
    }
}

static bool is_divided(const struct fl_region *r, const struct fl_extent *e)
{
    for (const struct fl_inner *in = r->space.inners; in != NULL; in = in->next) {
        if (in->outer == e) {
            return true;
        }
    }
    return false;
}

/* Is it of those that have a zone's memory, or had? */
static bool may_change(const struct fl_region *r, const struct fl_extent *e)
{
    uint32_t state = fl_extent_state(e);
    bool in_use = (state == FL_EXTENT_LIVE || state == FL_EXTENT_CACHED) &&
                  e->content == FL_CONTENT_POPULATED && !is_divided(r, e);
    bool free = state == FL_EXTENT_FREE && e->content != FL_CONTENT_EMPTY;

    return (in_use && e->len <= r->shards.stripe) || (free && e->len <= FL_SHARD_BLOCK);
}

/* Into that zone. Returns the extent that it is, or is part of. */
static struct fl_extent *change(struct fl_region *r, struct fl_extent *e, unsigned zone)
{
    fl_assert(fl_region_is_locked(r));
    if (fl_extent_state(e) != FL_EXTENT_FREE) {
        fl_extent_set_zone(e, zone);
        return e;
    }
    return fl_fit_change_zone(r, e, zone);
}

static struct fl_extent *at_or_none(struct fl_region *r, uintptr_t at)
{
    struct fl_extent *e = fl_extent_at(&r->space, at);

    return e != NULL && fl_extent_state(e) != FL_EXTENT_UNUSED ? e : NULL;
}

/* The first extent that begins there or behind: what the last walk ended at may have merged. */
static uintptr_t find_next(struct fl_region *r, uintptr_t at, uintptr_t end)
{
    for (int i = 0; i < LOST_MOST && at < end && at_or_none(r, at) == NULL; i++) {
        at += fl_page.base;
    }
    return at;
}

/* Where a block of addresses ends an extent may reach into the next. */
void fl_shards_share_out(struct fl_region *r)
{
    size_t mapped = atomic_load_explicit(&r->space.mapped, memory_order_relaxed);
    uintptr_t end = r->space.base + (mapped << fl_page.shift);
    uintptr_t at = find_next(r, r->shards.cursor, end);
    unsigned zone = fl_shards_open(&r->shards) - 1;
    struct fl_extent *e;

    fl_assert(fl_region_is_locked(r));
    if (r->shards.cursor == 0) {
        return;
    }
    for (unsigned i = 0; i < WALK_MOST && at < end && (e = at_or_none(r, at)) != NULL; i++) {
        bool its = at / r->shards.stripe % (zone + 1) == zone && may_change(r, e);
        e = its ? change(r, e, zone) : e;
        at = e->base + e->len;
    }
    atomic_store_explicit(&r->shards.cursor, at < end ? at : 0, memory_order_relaxed);
}

/* A few for each of `n` shards, of what is in use; whole huge pages. */
static size_t stripe(const struct fl_region *r, unsigned n)
{
    size_t part = fl_align_down(r->held.in_use / STRIPES / n, fl_page.huge);

    return fl_min(fl_max(part, fl_page.huge), FL_SHARD_BLOCK);
}

/* The next one, of that zone, with its lock held. */
static void open(struct fl_region *r, unsigned zone)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(zone == fl_shards_open(&r->shards) && zone < FL_SHARDS && zone < r->zones.n);
    fl_lock_acquire(&r->shards.of[zone].lock); /* first: frees go by a block's zone */
    r->space.descriptors.behind = zone;
    fl_extent_restock(&r->space, zone);
    atomic_store_explicit(&r->shards.n, zone + 1, memory_order_relaxed);
}

void fl_shards_open_nodes(struct fl_region *r)
{
    unsigned nodes = r->zones.placing.nodes;

    fl_assert(fl_region_is_locked(r));
    while (nodes <= FL_SHARDS && fl_shards_open(&r->shards) < nodes && r->config.shards != 1) {
        open(r, fl_shards_open(&r->shards));
    }
}

void fl_shards_open_one(struct fl_region *r)
{
    unsigned zone = fl_shards_open(&r->shards);

    fl_assert(fl_region_is_locked(r));
    if (zone == FL_SHARDS) {
        return;
    }
    fl_fit_start(&r->zones.of[zone]);
    r->zones.n = zone + 1;
    open(r, zone);
    atomic_store_explicit(&r->shards.cpus, 0, memory_order_relaxed);
    r->shards.stripe = stripe(r, zone + 1);
    atomic_store_explicit(&r->shards.cursor, r->space.first, memory_order_relaxed);
    fl_shards_share_out(r);
    fl_shards_gather(r);
}
