/* Thread caches: what a thread frees, kept for its next request of that length. */
#ifndef FL_REGION_CACHE_H
#define FL_REGION_CACHE_H

#include "space/space.h"
#include "stats/stats.h"

struct fl_region;
struct fl_zonelist;

enum { FL_CACHE_SLOTS = 4 };

/* Where a thread is, as far as its requests go: the node of its CPU, and how often what decides on
 * nodes has changed since boot. A word for each CPU; as long as it is the same, so is the zone. */
enum { FL_SITE_ONE = 0, FL_SITE_NONE = 1, FL_SITE_FIRST = 2 };
static const uint32_t fl_site_void = UINT32_MAX; /* of a cache: its thread's policy has changed */
extern FL_HIDDEN _Atomic uint32_t fl_site[FL_CPU_IDS]; /* 0: of no known node */

/* The calling thread's. Signals: safe.  Cost: three loads. */
static inline uint32_t fl_site_here(void)
{
    return atomic_load_explicit(&fl_site[fl_cpu_here() % FL_CPU_IDS], memory_order_relaxed);
}

/* A thread's last freed extents, kept for the next request of the same size. Few on purpose: an
 * extent that waits here cannot be merged with its neighbours. 64 slots that nothing drains make a
 * ResNet step's window 1.49 times its live maximum, 4 that the next miss drains 1.05
 * (bench/fit/replay). Depots, which hold more, are bounded by bytes. The owner puts and takes, any
 * thread may take away: each slot changes by one atomic operation, so signal handlers, fork and the
 * worker need no lock. */
struct fl_cache {
    struct fl_cache_slot {
        _Atomic(struct fl_extent *) extent;
        _Atomic size_t
            len; /* of the extent put here last; a hint that spares a look at its descriptor */
    } slot[FL_CACHE_SLOTS];
    _Alignas(FL_CACHE_LINE) struct fl_thread_stats stats;
    uint32_t oldest;            /* slot that the next put replaces. The owner alone */
    struct fl_cache *next;      /* registry, never shrinks. Lock: region */
    struct fl_cache *next_idle; /* of those that no thread owns. Lock: region */
    /* Is, or will soon be, in the region's list of filled ones. Set by the owner with the first put
     * since it was cleared */
    _Atomic bool listed;
    struct fl_cache *next_filled; /* in that list. Who set `listed`; then who took the list */
    _Atomic uint32_t came;        /* the tick at which it was known to be listed, and one; 0: never.
                              Relaxed: a hint. See rest.c */
    /* With several nodes: the site at which the thread's requests were last placed, and the zone
     * that they had there. The owner alone. */
    _Atomic uint32_t site; /* FL_SITE_NONE: not placed yet; FL_SITE_ONE: there is one node */
    uint8_t zone;          /* written while the site is FL_SITE_NONE */
    uint8_t asks;          /* misses at home, of which one in some asks anew where home is */
    /* See depot.h. The owner alone */
    bool exact;       /* a plan watches the lengths that it gets */
    uint32_t alike;   /* requests in a row that the slots did not serve, */
    size_t alike_len; /* of that length */
};

/* All caches, and the frees that wait for the lock's holder. */
struct fl_caches {
    _Atomic(struct fl_cache *) all;       /* every cache ever made; each one's `next` stays */
    struct fl_cache *idle;                /* those that no thread owns. Lock: region */
    size_t owned;                         /* how many threads own. Likewise */
    _Atomic(struct fl_cache *) filled;    /* those with a put since they were last emptied */
    _Atomic(struct fl_extent *) deferred; /* frees of handlers that interrupted the lock's holder */
};

/* Where the region is busy: leaves the claimed `e` to the thread that unlocks next; in a child
 * without a region, to the kernel. Signal-safe. */
void fl_region_defer(struct fl_region *r, struct fl_extent *e);

/* A cache for the calling thread (a dead thread's, if there is one); NULL when descriptors ran
 * out. */
struct fl_cache *fl_cache_acquire(struct fl_region *r);
/* Empties it and lets another thread have it. */
void fl_cache_release(struct fl_region *r, struct fl_cache *c);

/* What waits in the first slot of `len` bytes, no more in it; NULL: nothing. A signal handler may
 * have changed the slot meanwhile: then it has another length. */
static FL_INLINE struct fl_extent *fl_cache_take_slot(struct fl_cache *c, size_t len)
{
#ifdef __OPTIMIZE__
#pragma GCC unroll 4
#endif
    for (unsigned i = 0; i < FL_CACHE_SLOTS; i++) {
        if (atomic_load_explicit(&c->slot[i].len, memory_order_relaxed) == len &&
            atomic_load_explicit(&c->slot[i].extent, memory_order_relaxed) != NULL) {
            /* acquire: pairs with the release in fl_cache_put */
            return atomic_exchange_explicit(&c->slot[i].extent, NULL, memory_order_acquire);
        }
    }
    return NULL;
}

/* An extent of exactly `len` bytes, LIVE; NULL when the cache has none. O(1), no lock,
 * signal-safe. */
static inline struct fl_extent *fl_cache_take(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_extent *e = fl_cache_take_slot(c, len);

    if (FL_UNLIKELY(e != NULL && e->len != len)) {
        fl_region_defer(r, e);
        e = NULL;
    }
    if (e != NULL) {
        fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
        atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    }
    return e;
}

static inline bool fl_cache_has_nodes(const struct fl_cache *c)
{
    return atomic_load_explicit(&c->site, memory_order_relaxed) != FL_SITE_ONE;
}

/* May a thread's cache serve it here? Several nodes. */
static inline bool fl_cache_is_home(const struct fl_cache *c)
{
    return atomic_load_explicit(&c->site, memory_order_relaxed) == fl_site_here();
}

/* And take what it frees? */
static inline bool fl_cache_takes(const struct fl_cache *c, const struct fl_extent *e)
{
    return fl_cache_is_home(c) && e->zone == c->zone;
}

/* With several nodes; no lock held, the owner. Asks where a request of `len` bytes goes, by the
 * thread's CPU and policy of now; from here on the cache `own` (NULL: none) keeps and serves
 * nothing. Returns the site at which that is so for the thread's next requests, too;
 * FL_SITE_NONE: it says nothing of them. */
uint32_t fl_cache_zonelist(struct fl_region *r, struct fl_cache *own, size_t len,
                           struct fl_zonelist *out);
/* The cache, empty by now, keeps what lies in that zone while its thread is at the site; unless
 * the policy has changed since. */
void fl_cache_settle(struct fl_cache *c, uint32_t site, unsigned zone);
/* Would a request still go where the cache's blocks lie? Else the next one asks. What changed
 * policy or cpuset unseen is seen here. Signals: safe. */
void fl_cache_recall(struct fl_region *r, struct fl_cache *c, size_t len);

struct fl_cached {
    size_t blocks, bytes;
};
/* Adds what waits in the cache. Wants the region lock. */
void fl_cache_count(const struct fl_cache *c, struct fl_cached *sum);

/* Does anything wait in it? Sequentially consistent: see fl_cache_put. */
bool fl_cache_has_some(const struct fl_cache *c);

/* The cache has got its first extent since all were emptied: who empties all looks at those
 * that did alone. */
void fl_cache_list(struct fl_region *r, struct fl_cache *c);

/* As fl_cache_put, but that the caller looks whether the cache is listed, and lists it. */
static FL_INLINE struct fl_extent *fl_cache_put_unlisted(struct fl_cache *c, struct fl_extent *e)
{
    size_t len = e->len; /* once it is in a slot, any thread may have e */
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && fl_extent_is_sound(e));
    struct fl_cache_slot *s = NULL;

#ifdef __OPTIMIZE__ /* else it is said to be ignored */
#pragma GCC unroll 4
#endif
    for (unsigned i = 0; i < FL_CACHE_SLOTS && s == NULL; i++) {
        s = atomic_load_explicit(&c->slot[i].extent, memory_order_relaxed) == NULL ? &c->slot[i]
                                                                                   : NULL;
    }
    if (s == NULL) {
        s = &c->slot[c->oldest++ % FL_CACHE_SLOTS];
    }
    /* sequentially consistent: comes before the looks at wants_worker, as fl_region_tick wants it,
     * and at `listed` */
    struct fl_extent *old = atomic_exchange(&s->extent, e);
    atomic_store_explicit(&s->len, len, memory_order_relaxed);
    return old;
}

/* Keeps the claimed `e`. Returns the extent that had to make room, for the region; NULL when a slot
 * was free. O(1), no lock, signal-safe. Writes what threads share only the first time after others
 * have emptied the cache. */
static inline struct fl_extent *fl_cache_put(struct fl_region *r, struct fl_cache *c,
                                             struct fl_extent *e)
{
    struct fl_extent *old = fl_cache_put_unlisted(c, e);

    if (FL_UNLIKELY(!atomic_load(&c->listed))) {
        fl_cache_list(r, c);
    }
    return old;
}

/* All extents out of a cache, or out of all, or those older than `age` ticks. Returns how many.
 * Cost: all of all caches: one look for each cache that was filled since the last time; by age: for
 * each there is. */
size_t fl_cache_drain(struct fl_region *r, struct fl_cache *c, uint32_t age);
/* The CPU that the calling thread runs on; where the kernel does not tell, a number by the address
 * of its cache. */
static inline unsigned fl_cache_cpu(const struct fl_cache *c)
{
    return fl_cpu_offset != 0 ? fl_cpu_here() : (unsigned)((uintptr_t)c / sizeof *c);
}
size_t fl_cache_drain_all(struct fl_region *r, uint32_t age);
/* All out of the threads' slots, and up to `most` blocks out of depots. */
enum { FL_DRAINED_AT_ONCE = 16 };
size_t fl_cache_drain_some(struct fl_region *r, size_t most);
/* In a child of fork(2): empties all but `survivor`, for other threads to have. */
void fl_cache_drain_orphans(struct fl_region *r, const struct fl_cache *survivor);

#endif
