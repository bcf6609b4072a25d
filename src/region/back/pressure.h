/* How much free memory may be held. Included by region.h. Lock: region, but where it says
 * otherwise. */
#ifndef FL_REGION_PRESSURE_H
#define FL_REGION_PRESSURE_H

#include "core/core.h"

struct fl_region;

/* Bytes. */
struct fl_pressure {
    size_t total;        /* of RAM; 0: unknown. Constant */
    size_t absurd_above; /* RAM and swap; SIZE_MAX: unknown. Constant */
    size_t most;         /* that can be in memory, by the last look; 0: none yet */
    size_t fits; /* the same, where limits count maps four times of what may be held free of it */
    /* Since the next allocator was asked to trim, and until it is again. */
    size_t since_starved, starve_after;
    size_t least;                  /* that come back between two looks, at least */
    size_t since_look, look_after; /* that came back since the last look; until the next */
    size_t surplus; /* free ones that a look found too many; the next free purges them */
};

/* Bytes of the longest extent in a thread cache. What waits there is in the way of others: with
 * 64 MiB a pipeline of NumPy's, whose arrays have 8 to 512, moved 130 MiB in each step and took 40
 * faults; with 16 none. A block so long is touched for a thousand times what its lock takes. */
enum { FL_CACHED_MOST = 16 * FL_MIB };
/* What a look at the memory says about holding free memory: tight, cache_max, keep. Returns the
 * bytes of free memory that are too many: to be purged when the lock is released. */
size_t fl_region_note_memory(struct fl_region *r, const struct fl_memory *m);
/* Before `len` free bytes are handed out again: while memory is tight the kernel may have taken
 * them, and will have to give them anew. True: it is time to look at the memory, afterwards. */
bool fl_region_note_reuse(struct fl_region *r, size_t len);
/* Before `len` bytes are handed out unpopulated, to be filled on touch: as at a growth the memory
 * is to be looked at, and the next allocator asked for what it holds when that leaves too little.
 * True: it is time to, afterwards. */
bool fl_region_note_touch(struct fl_region *r, size_t len);
/* After `len` bytes came back: looks at the memory if it is time to, and purges what is too
 * much. No lock held. */
void fl_region_look_after(struct fl_region *r, size_t len);
/* The same with the lock held, which is released. */
void fl_region_unlock_and_look(struct fl_region *r, size_t len);

#endif
