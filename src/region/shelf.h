/* Shelves: freed blocks that wait for a request of their length, one shelf for the threads of
 * each CPU. Included by region.h.
 *
 * Threads that replace blocks of many lengths at random miss their own caches, which hold four,
 * and would all take the region's lock. While one does so every few microseconds, what its cache
 * has no room for goes on the shelf of its CPU, and what its cache does not serve is looked for
 * there. What waits is CACHED, as in a thread's cache: in no tree, counted as in use, and any
 * thread may take it. The region takes it back when no free memory fits
 * a request, when it has aged, and where all caches are emptied. Where little is in use there are
 * none. Where there are several nodes, a thread at home, see cache.h, puts and takes what lies in
 * its zone. */
#ifndef FL_REGION_SHELF_H
#define FL_REGION_SHELF_H

#include "region/cache.h"

enum {
    FL_SHELVES = 64,
    FL_SHELF_BINS = 256, /* a bin holds blocks of so many base pages, and one */
    FL_SHELF_WORDS = FL_SHELF_BINS / 64,
    FL_SHELF_USES = 512, /* requests and frees between two looks at what may wait */
    FL_SHELF_MISSES = 32 /* of a thread, between two looks at how fast they come */
};

struct fl_shelf {
    /* 1: a thread changes it. Held for some 20 instructions, and waited for by no thread but one
     * that forks: others go on without. What follows: who holds it */
    _Alignas(FL_CACHE_LINE) _Atomic uint32_t word;
    uint32_t hand;                         /* the bin that gives way next */
    _Atomic size_t bytes;                  /* that wait. Relaxed: a hint to others */
    _Atomic uint32_t blocks;               /* likewise */
    _Atomic uint64_t some[FL_SHELF_WORDS]; /* bit i: bin i holds something. Likewise */
    struct fl_extent *bin[FL_SHELF_BINS];  /* chains by `next` */
};

/* All of them. */
struct fl_shelves {
    /* Seldom written, and read by each thread that comes here. */
    _Alignas(FL_CACHE_LINE) _Atomic size_t most; /* bytes that may wait on each; 0: none does */
    _Atomic size_t lead_most;                    /* on shelf number `lead` */
    _Atomic uint32_t lead;
    _Atomic uint64_t used; /* bit i: shelf i ever was */
    struct fl_shelf shelf[FL_SHELVES];
    /* Lock: region, from here on. */
    size_t seen;   /* bytes on shelves, at the last look; no part of the peak */
    unsigned turn; /* the shelf that was last asked for some */
    unsigned uses; /* requests and frees, to look at shelves now and then */
};

static inline size_t fl_shelf_bytes_of(const struct fl_shelf *s)
{
    return atomic_load_explicit(&s->bytes, memory_order_relaxed);
}

/* Keeps the claimed `e`, which had to make room in the thread's cache `c`. False: it does not.
 * Signals: safe. No lock is waited for. */
bool fl_shelf_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e);

/* An extent of `len` bytes, or a little more, LIVE, counted as a hit; NULL: there is none. What
 * has to make room then is left in `c`, for its next fl_cache_drain. Signals: safe. No lock is
 * waited for. */
struct fl_extent *fl_shelf_take(struct fl_region *r, struct fl_cache *c, size_t len);
/* The same where else the thread would sleep: up to half as long again, and from any
 * shelf. */
struct fl_extent *fl_shelf_take_longer(struct fl_region *r, struct fl_cache *c, size_t len);

/* The owner's requests and frees of blocks, as its cache does not serve them, look at shelves.
 * Counts one such request. */
void fl_shelf_look(struct fl_cache *c);
static inline bool fl_shelf_is_of_use(struct fl_cache *c)
{
    if (FL_UNLIKELY(++c->misses % FL_SHELF_MISSES == 0)) {
        fl_shelf_look(c);
    }
    return c->uses_shelves;
}

/* Bytes, and blocks, that wait, as of a moment ago. */
size_t fl_shelf_bytes(const struct fl_region *r);
size_t fl_shelf_blocks(const struct fl_region *r);

/* The rest wants the region lock.
 * How much may wait, by what is in use now. */
void fl_shelf_resize(struct fl_region *r);
/* What was freed `age` ticks ago goes back to the region, or `most` blocks of whatever age.
 * Return how many did. */
size_t fl_shelf_drain(struct fl_region *r, uint32_t age);
size_t fl_shelf_drain_some(struct fl_region *r, size_t most);
/* A chain by `next` of claimed blocks: all of it to the region. Returns how many. */
size_t fl_shelf_give_chain(struct fl_region *r, struct fl_extent *e);
/* Does any wait? One that is being changed counts. Comes after what the caller did before. */
bool fl_shelf_has_some(struct fl_region *r);
/* Around fork(2): no thread changes them meanwhile. In the child what could not be held is
 * empty. */
void fl_shelf_fork_lock(struct fl_region *r);
void fl_shelf_fork_parent(struct fl_region *r);
void fl_shelf_fork_child(struct fl_region *r);

#endif
