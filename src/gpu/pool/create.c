/* Pools begin, end, and say what they hold. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool add_stats(void *owner, bool soon, struct fl_stats_gpu *to)
{
    struct fl_gpu_pool *p = owner;

    if (!soon) {
        fl_lock_acquire(&p->lock);
    } else if (!fl_lock_acquire_soon(&p->lock)) {
        return false;
    }
    struct fl_gpu_pool_stats s = p->s;
    fl_lock_release(&p->lock);
    if (p->is_pinned) {
        to->pinned_pools++;
        to->pinned_bytes += s.occupied_bytes + s.free_bytes;
        return true;
    }
    to->pools++;
    to->occupied_bytes += s.occupied_bytes;
    to->free_bytes += s.free_bytes;
    to->requested_bytes += s.requested_bytes;
    to->allocs += s.allocs;
    to->hits += s.hits;
    to->driver_allocs += s.driver_allocs;
    to->driver_ns += s.driver_ns;
    to->implicit_syncs += s.implicit_syncs;
    return true;
}

/* The bytes at which garbage is reclaimed; 0: there is none. */
static size_t gc_threshold(double gb)
{
    if (gb == 0) {
        return 0;
    }
    double bytes = gb * 1024 * 1024 * 1024;
    return gb < 0 || bytes >= 1e18 ? SIZE_MAX : fl_max((size_t)bytes, 1);
}

static int start(struct fl_gpu_pool *p)
{
    struct fl_gpu_guard g;
    int rc = fl_pool_enter(p, &g);

    if (rc != 0) {
        return rc;
    }
    rc = fl_strategy_start(p);
    fl_pool_leave(p, &g);
    return rc;
}

/* What the caller's program knows of, and the defaults for the rest: it may be older than this, or
 * newer. */
static bool read_options(const struct fl_gpu_pool_options *from, struct fl_gpu_pool_options *to)
{
    if (from == NULL || from->size < offsetof(struct fl_gpu_pool_options, page)) {
        return false;
    }
    fl_gpu_pool_defaults(to, from->target);
    memcpy(to, from, fl_min(from->size, sizeof *to));
    to->size = sizeof *to;
    return true;
}

int fl_gpu_pool_create(struct fl_gpu *gpu, const struct fl_gpu_pool_options *o,
                       struct fl_gpu_pool **out)
{
    struct fl_gpu_pool_options all;

    if (gpu == NULL || out == NULL || !read_options(o, &all)) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_pool_create: a device, options, a place");
    }
    struct fl_gpu_pool *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a pool");
    }
    fl_lock_init(&p->lock, FL_RANK_RUNTIME);
    p->gpu = gpu;
    p->o = all;
    p->is_pinned = all.target == FL_GPU_PINNED;
    p->streams.host.is_gone = true; /* nothing is recorded on it */
    p->streams.host.lasts = true;
    p->freed.at = gc_threshold(all.gc_gb);
    atomic_store_explicit(&p->streams.epoch, 1, memory_order_relaxed);
    int rc = fl_strategy_check(&p->o);
    if (rc == 0) {
        p->strategy = fl_strategy_get(p->o.strategy);
        rc = start(p);
    }
    if (rc != 0) {
        free(p);
        return rc;
    }
    atomic_fetch_add_explicit(&gpu->users, 1, memory_order_relaxed);
    fl_gpu_account_join(gpu, p->is_pinned ? 0 : p->o.limit);
    p->track = (struct fl_gpu_track){
        .kind = FL_GPU_TRACK_POOL, .device = gpu->ordinal, .owner = p, .add = add_stats};
    fl_gpu_track_open(&p->track);
    *out = p;
    return 0;
}

/* Everything to the driver. Context current. 0, or the first refusal, with the pool as good as
 * before. */
static int empty(struct fl_gpu_pool *p)
{
    size_t released;
    int rc = 0;

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    fl_lock_acquire(&p->lock);
    p->is_graph = false; /* there is none any more */
    fl_collect_batch(p, true);
    fl_collect_release_held(p);
    rc = fl_stream_drain(p);
    if (rc == 0 && (p->freed.pending.first != NULL || (p->is_pinned && fl_streams_unsafe(p)))) {
        rc = fl_stream_sync_all(p); /* of some no event says how far they are */
    }
    fl_lock_release(&p->lock);
    rc = rc == 0 ? fl_chunk_trim(p, 0, &released) : rc;
    if (rc == 0 && p->chunks.first != NULL) { /* parts of one are several streams' */
        fl_lock_acquire(&p->lock);
        rc = fl_stream_sync_all(p);
        fl_lock_release(&p->lock);
        rc = rc == 0 ? fl_chunk_trim(p, 0, &released) : rc;
    }
    return rc == 0 && p->chunks.first != NULL ? fl_gpu_fail(-EBUSY, "a stream still uses the pool")
                                              : rc;
}

/* The records alone: nothing is left, or it went with its context or with the driver. */
static void dismantle(struct fl_gpu_pool *p)
{
    for (struct fl_pool_chunk *c = p->chunks.first, *next; c != NULL; c = next) {
        for (struct fl_pool_block *b = c->first; b != NULL; b = b->after) {
            fl_use_drop(b);
        }
        if (!p->is_pinned) {
            fl_gpu_account_give(p->gpu, c->len);
        }
        next = c->next;
        free(c);
    }
    fl_streams_free(p);
    fl_records_free(&p->table);
}

int fl_gpu_pool_destroy(struct fl_gpu_pool *pool)
{
    struct fl_gpu_guard g;
    int rc = fl_pool_refuse(pool);

    if (rc != 0 && rc != -ESHUTDOWN) {
        return rc;
    }
    rc = rc == 0 ? fl_pool_enter(pool, &g) : rc;
    if (rc != 0 && rc != -ESHUTDOWN) {
        return rc;
    }
    bool entered = rc == 0;
    if (entered) {
        fl_lock_acquire(&pool->lock);
        bool used = pool->s.occupied_bytes != 0;
        fl_lock_release(&pool->lock);
        if (used) {
            rc = fl_gpu_fail(-EBUSY, "something of the pool is allocated");
        } else {
            rc = empty(pool);
        }
    }
    if (entered && rc != 0 && !fl_pool_is_shut(pool)) {
        fl_pool_leave(pool, &g);
        return rc;
    }
    fl_gpu_track_close(&pool->track);
    dismantle(pool);
    if (entered) {
        fl_gpu_leave(&g);
    }
    fl_gpu_account_leave(pool->gpu);
    atomic_fetch_sub_explicit(&pool->gpu->users, 1, memory_order_release);
    free(pool);
    return 0;
}

int fl_gpu_pool_stats(struct fl_gpu_pool *pool, struct fl_gpu_pool_stats *out)
{
    int rc = fl_pool_refuse(pool);
    size_t size = out != NULL ? (size_t)out->size : 0;

    if (rc != 0 && rc != -ESHUTDOWN) {
        return rc;
    }
    if (size < sizeof out->size || size > sizeof *out) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_pool_stats: size is not set");
    }
    fl_lock_acquire(&pool->lock);
    struct fl_gpu_pool_stats s = pool->s;
    fl_lock_release(&pool->lock);
    s.size = size;
    memcpy(out, &s, size);
    return 0;
}
