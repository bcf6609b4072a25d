/* The region's figures for readers. */
#include "region/state/counts.h"
#include "region/state/lock.h"

void fl_region_stats_read(struct fl_region *r, struct fl_stats_values *out)
{
    uint64_t hits = 0, hit_bytes = 0;

    fl_region_lock(r);
    struct fl_cached in = {fl_depot_blocks(r), fl_depot_bytes(r)};
    fl_depot_note_peak(r);
    r->held.in_use_most = fl_max(r->held.in_use_most, r->held.in_use);
    r->held.populated_peak = fl_max(r->held.populated_peak, r->held.populated);
    for (struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        hits += atomic_load_explicit(&c->stats.cache_hits, memory_order_relaxed);
        hit_bytes += atomic_load_explicit(&c->stats.hit_bytes, memory_order_relaxed);
        fl_cache_count(c, &in);
    }
    out->cached_bytes = in.bytes;
    out->requests = r->stats.takes + hits;
    out->cache_hits = hits;
    out->live_extents = r->stats.takes + r->stats.kept - r->stats.gives - in.blocks;
    out->frees = out->requests - out->live_extents;
    out->served_bytes = r->stats.take_bytes + hit_bytes;
    out->in_use_bytes = r->held.in_use;
    out->in_use_peak_bytes = r->held.in_use_most;
    out->populated_bytes = r->held.populated;
    out->populated_peak_bytes = r->held.populated_peak;
    out->free_held_bytes = fl_region_free(r).bytes;
    out->stock_bytes = r->pages.reserve.held;
    out->rung = atomic_load_explicit(&r->pages.move.method, memory_order_relaxed);
    out->window_bytes = r->space.window.all.len;
    out->region_locks = r->stats.locks;
#define COPY(field) out->field = __atomic_load_n(&r->stats.field, __ATOMIC_RELAXED);
    FL_REGION_COUNTERS(COPY)
#undef COPY
    fl_region_unlock(r);
}
