/* Looks at the memory, with no lock of the region's held. Included by region.h. Lock: region. */
#ifndef FL_REGION_LOOK_H
#define FL_REGION_LOOK_H

#include "core/core.h"

struct fl_region;

/* Lock: pages.asking. */
struct fl_look {
    struct fl_memory seen;  /* the last answer */
    struct fl_memory noted; /* the same, less what was granted since. Lock: region */
    size_t granted;         /* budget.granted when that look began */
    _Atomic uint32_t begun; /* looks. Read without the lock: which look one may share */
    struct fl_memory_scratch scratch;
    struct fl_memory_scratch worker_scratch; /* the worker's, without the lock */
};

/* Looks at the memory, and notes what is seen: r->look.noted. The lock is released meanwhile: all
 * that depends on it is to be decided anew.
 * False: another thread forks, and nothing was seen. */
bool fl_look_unlocking(struct fl_region *r);
/* What a look at the memory says about holding free memory: tight, cache_max, keep. Returns the
 * bytes of free memory that are too many: to be purged when the lock is released. */
size_t fl_region_note_memory(struct fl_region *r, const struct fl_memory *m);
/* After a request that wanted a look but did not wait for it; `on_touch` bytes were handed out
 * unpopulated. No lock held. */
void fl_look_after_take(struct fl_region *r, size_t on_touch);

/* Maps count, used or not. The table of holes, without which none goes back, is made now: where the
 * limit is met there is no room for it. The lock is not held, or permits calls. */
void fl_look_make_table(struct fl_region *r);

#endif
