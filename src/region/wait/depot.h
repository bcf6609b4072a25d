/* Depots: freed blocks that wait for a request of their length, beyond the four slots of a thread's
 * cache. There is one for the threads of each CPU. Included by region.h.
 *
 * What the slots displace goes to the depot of the thread's CPU (number modulo FL_DEPOTS) if it is
 * no longer than a bin can have and than what may wait there: a part of what is in use, see
 * fl_depot_resize. What the slots do not serve is looked for there, but for calloc, which wants
 * zeros, and for alignments above a page. A thread that asks for one length many times in a row
 * finds several blocks put there ahead of it, and may fill the depot with what it frees of that
 * length.
 *
 * What waits is CACHED, as in a slot: in no tree, counted as in use, and any thread may take it.
 * The region takes it back before the window grows (with several shards after a little growth),
 * when it has aged, when no request has come for a while (jobs/rest.c), and wherever slots are
 * emptied. With several nodes a thread at home, see cache.h, puts and takes what lies in its
 * zone. */
#ifndef FL_REGION_DEPOT_H
#define FL_REGION_DEPOT_H

#include "region/wait/cache.h"

enum {
    FL_DEPOTS = 64,
    FL_DEPOT_BINS = 256, /* bin i holds blocks of i + 1 base pages */
    FL_DEPOT_WORDS = FL_DEPOT_BINS / 64,
    FL_DEPOT_USES = 512, /* requests and frees between two looks at what may wait */
    /* Requests in a row, from which on what is freed of that length may fill a depot. No more are
     * counted. */
    FL_ALIKE_LONG = 128
};

struct fl_depot {
    /* 1: a thread changes it. Held for some 20 instructions, and waited for by no thread but one
     * that forks: others go on without. What follows: the holder's */
    _Alignas(FL_CACHE_LINE) _Atomic uint32_t word;
    uint32_t hand;                         /* the bin that gives way next */
    _Atomic size_t bytes;                  /* that wait. Relaxed: a hint to others */
    _Atomic uint32_t blocks;               /* likewise */
    _Atomic uint64_t some[FL_DEPOT_WORDS]; /* bit i: bin i holds something. Likewise */
    struct fl_extent *bin[FL_DEPOT_BINS];  /* chains by `next` */
};

/* All of them. */
struct fl_depots {
    /* Seldom written, and read by each thread that comes here. */
    _Alignas(FL_CACHE_LINE) _Atomic size_t most; /* bytes that may wait in each; 0: none does */
    _Atomic size_t lead_most;                    /* in depot number `lead` */
    _Atomic uint32_t lead;
    _Atomic uint64_t used; /* bit i: depot i ever was */
    struct fl_depot depot[FL_DEPOTS];
    /* Lock: region, from here on. */
    size_t seen;   /* bytes that wait, by the last look; the peak of use leaves them out */
    unsigned turn; /* the depot that was last asked for some */
    unsigned uses; /* requests and frees since the last look at what may wait */
};

/* Is it short enough to wait in one? */
static inline bool fl_depot_has_bin(size_t len)
{
    return len <= (size_t)FL_DEPOT_BINS << fl_page.shift;
}

static inline size_t fl_depot_bytes_of(const struct fl_depot *d)
{
    return atomic_load_explicit(&d->bytes, memory_order_relaxed);
}

/* Keeps the claimed `e`, which the slots of the thread's cache `c` have displaced. False: it does
 * not. *evicted: what else is too much then, a chain by `next`, for the region. The owner. Signals:
 * safe where the region is not closed. No lock is waited for. */
bool fl_depot_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e,
                  struct fl_extent **out_evicted);

/* An extent of `len` bytes, or a little more, LIVE, counted as a hit; NULL: there is none.
 * Signals: safe. No lock is waited for. */
struct fl_extent *fl_depot_take(struct fl_region *r, struct fl_cache *c, size_t len);
/* The same, of just that length, and from the depot of the thread's CPU alone. */
struct fl_extent *fl_depot_take_same(struct fl_region *r, struct fl_cache *c, size_t len);
/* The same for a thread that would sleep otherwise: up to half as long again, from any depot. */
struct fl_extent *fl_depot_take_longer(struct fl_region *r, struct fl_cache *c, size_t len);

/* Carves `len` bytes from the front of the FREE `e`, which is long enough, LIVE; in a row of
 * requests of the thread's for that length some more, which wait in its depot. *n: how many in all.
 * `own` NULL: one. Lock: that of the extent's zone. */
struct fl_extent *fl_depot_carve(struct fl_region *r, struct fl_cache *own, struct fl_extent *e,
                                 size_t len, unsigned *n);
/* Where more waits in the thread's depot than may: two blocks of it, the caller's, a chain by
 * `next`; else NULL. Lock: any shard's. */
struct fl_extent *fl_depot_trim(struct fl_region *r, const struct fl_cache *own);

/* Bytes, and blocks, that wait, as of a moment ago. */
size_t fl_depot_bytes(const struct fl_region *r);
size_t fl_depot_blocks(const struct fl_region *r);

/* The rest wants the region lock.
 * The most that was in use, but for what waits in depots. */
void fl_depot_note_peak(struct fl_region *r);
/* How much may wait, by what is in use now. */
void fl_depot_resize(struct fl_region *r);
/* What was freed `age` ticks ago goes back to the region, or `most` blocks of whatever age.
 * Return how many did. */
size_t fl_depot_drain(struct fl_region *r, uint32_t age);
size_t fl_depot_drain_some(struct fl_region *r, size_t most);
/* Does any depot hold a block, or is one being changed? Sequentially consistent: comes after what
 * the caller wrote before. */
bool fl_depot_has_some(struct fl_region *r);
/* Around fork(2): no thread changes them meanwhile. A depot that could not be held in time is empty
 * in the child: its blocks are lost there, CACHED for ever. */
void fl_depot_fork_lock(struct fl_region *r);
void fl_depot_fork_parent(struct fl_region *r);
void fl_depot_fork_child(struct fl_region *r);

#endif
