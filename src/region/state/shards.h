/* Shards: free memory divided among groups of CPUs, so that their requests and frees take different
 * locks. Included by region.h.
 *
 * A shard is a zone and a lock. fl_region_lock takes the locks of all, in order, so what it guards
 * is guarded as with one. With one shard's lock alone a thread may take the front of free memory
 * from its zone, and free what lies there, no more: see serve/shard.c. What that changes of the
 * region's figures is the shard's until all locks are held: then it is added to them.
 *
 * A program begins with one. Another one is opened where requests of more CPUs than there are
 * shards find the lock busy, for each 16 MiB and 64 blocks in use; none is closed.
 *
 * On several nodes there is one for each from the first request on: the zone of its own memory. The
 * zones behind them, which are of no node alone, are guarded by all locks. */
#ifndef FL_REGION_SHARDS_H
#define FL_REGION_SHARDS_H

#include "space/space.h"

struct fl_region;
struct fl_cache;

enum {
    FL_SHARDED_BELOW =
        16 * FL_MIB, /* bytes; longer requests are the first shard's, under all locks */
    FL_SHARD_BLOCK = 32 * FL_MIB, /* of addresses, at most: they are the shards' by turns */
};

/* What one lock's holders have done since all were held. Lock: the shard's. */
struct fl_shard_counts {
    uint64_t takes, take_bytes, kept, gives, locks;
    uint64_t in_use; /* bytes, may be fewer than none: modulo 2^64 */
    size_t came_back;
};

struct fl_shard {
    _Alignas(FL_CACHE_LINE) struct fl_lock lock;
    struct fl_shard_counts since;
    /* Bytes of its longest extent, when the lock was last released. Relaxed: a hint */
    _Atomic size_t longest;
    /* Freed where the lock was busy, or by who had another one: for its next holder. A chain by
     * `next`. */
    _Alignas(FL_CACHE_LINE) _Atomic(struct fl_extent *) left;
};

/* Lock: region; any shard's, to read. */
struct fl_shards {
    _Atomic unsigned n;    /* open; they are never closed. Relaxed without a lock: a hint */
    _Atomic bool ordinary; /* with several: what is to be done may be done by one lock. Likewise */
    _Atomic bool due;      /* enough came back that all are to be looked at. Likewise */
    size_t slack; /* bytes by which a shard's takes may exceed its frees before all locks are
                   * taken, which adds its counts to the region's */
    _Alignas(FL_CACHE_LINE) _Atomic uint32_t busy; /* requests that found their lock so. A count */
    _Atomic uintptr_t cursor; /* how far the newest shard's part is shared out; 0: all of it is */
    size_t stripe;            /* the last one gets its part of addresses by so many bytes */
    _Atomic uint64_t cpus;    /* that found a lock busy: bit number modulo 64 */
    uint64_t looked_at;       /* locks taken, at the last look at `busy` */
    struct fl_shard of[FL_SHARDS];
};

static inline unsigned fl_shards_open(const struct fl_shards *s)
{
    return atomic_load_explicit(&s->n, memory_order_relaxed);
}

/* Is the zone a shard's? Else all locks guard it. */
static inline bool fl_shards_have(const struct fl_shards *s, unsigned zone)
{
    return zone < fl_shards_open(s);
}

/* Is something left to one of them? */
static inline bool fl_shards_have_some(const struct fl_shards *s)
{
    unsigned i = 0, n = fl_shards_open(s);

    while (i < n && atomic_load(&s->of[i].left) == NULL) {
        i++;
    }
    return i < n;
}

#endif
