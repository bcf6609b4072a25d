/* A thread's magazine: where a thread asks for one length many times in a row, what it frees of
 * that length waits here for its next row, beyond the four slots of its cache. Included by
 * region.h.
 *
 * What waits is CACHED, as in a slot, and goes back wherever the cache is emptied; and other
 * threads in such a row take from it. So the window does not grow while any waits. The owner puts
 * and takes at the top, any thread may take away: each slot changes by one atomic operation. Where
 * another thread, or a handler of the owner's, has been at it there are holes, which the owner
 * passes by. */
#ifndef FL_REGION_MAGAZINE_H
#define FL_REGION_MAGAZINE_H

#include "region/cache.h"

enum { FL_MAGAZINE = 256, FL_ROW_LONG = 128 /* requests in a row, from which on one is used */ };

/* Lies among the descriptors, and is its cache's for good. */
struct fl_magazine {
    struct fl_magazine *next; /* registry, never shrinks. Lock: region */
    _Atomic size_t len;       /* bytes of each; the owner's last put */
    _Atomic size_t bytes;     /* up to the top, holes too. The owner writes it */
    _Atomic uint32_t used;    /* slots that were filled since all were empty. The owner */
    _Atomic uint32_t top;     /* the next put fills it. The owner */
    _Atomic uint32_t zone;    /* of the last put; with several nodes of all. The owner */
    /* What other threads do, since the owner last passed holes by. */
    _Atomic size_t gone;        /* bytes that they took */
    _Atomic uint32_t passed_on; /* blocks of these that went to their rows */
    _Atomic uint32_t bottom;    /* nothing is below, a hint; the owner lowers it */
    _Atomic(struct fl_extent *) slot[FL_MAGAZINE];
};

/* Is the thread in a row of that length, long enough? The owner. */
static inline bool fl_row_is_long(const struct fl_cache *own, size_t len)
{
    return own->row_len == len && own->row >= FL_ROW_LONG;
}

static inline struct fl_magazine *fl_magazine_of(const struct fl_cache *c)
{
    return atomic_load_explicit(&c->magazine, memory_order_acquire);
}

/* An extent of exactly `len` bytes, LIVE; NULL: there is none. The owner; `c` has a magazine. No
 * lock, signal-safe. */
struct fl_extent *fl_magazine_take(struct fl_region *r, struct fl_cache *c, size_t len);
/* From the thread's slots, else its magazine. The same. */
static inline struct fl_extent *fl_cache_serve(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_extent *e = fl_cache_take(r, c, len);

    return e != NULL || FL_LIKELY(fl_magazine_of(c) == NULL) ? e : fl_magazine_take(r, c, len);
}
/* As fl_magazine_take, from another thread's, where the region has none that is free: some at
 * once, as in a row; the others wait in the cache `own` (NULL: there is none). Counted as a hit. */
struct fl_extent *fl_magazine_take_theirs(struct fl_region *r, struct fl_cache *own, size_t len);
/* Keeps the claimed `e`, of the length of the thread's row, which is long. Returns what does not
 * fit; NULL: nothing. The owner. The first one takes the region's lock, to make the magazine.
 * Signals: safe where the region is not closed. */
struct fl_extent *fl_magazine_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e);

/* All slots have been emptied. The owner with a lock of the region's, which keeps its handlers
 * away; or who empties a cache that has none. */
void fl_magazine_emptied(struct fl_cache *c);
/* Not the owner: `len` bytes were taken out of one. */
void fl_magazine_note_gone(struct fl_magazine *m, size_t len);
/* What waits in all, as of a moment ago. Lock: region. */
size_t fl_magazine_bytes(const struct fl_region *r);

#endif
