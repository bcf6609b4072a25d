/* The region's lock, with the guard against signal handlers. */
#ifndef FL_REGION_LOCK_H
#define FL_REGION_LOCK_H

#include "region/region.h"

/* Lock with the signal guard: see fl_region_busy. Unlock hands deferred frees back first. */
void fl_region_lock(struct fl_region *r);
/* False: another thread forks, and the caller goes elsewhere. */
bool fl_region_lock_unless_forking(struct fl_region *r);
/* The same, or not to be had without sleeping. */
bool fl_region_lock_soon(struct fl_region *r);
void fl_region_unlock(struct fl_region *r);
/* Does the calling thread hold all shards' locks, or one? "Lock: region" of a function that runs
 * under either means the lock of the shard whose extents it touches; else it means all. Both assert
 * this. */
static inline bool fl_region_is_locked(const struct fl_region *r)
{
    (void)r;
    return fl_lock_is_held(FL_RANK_REGION, FL_SHARDS);
}
/* The calling thread is in no other critical section than the one of the region's lock. */
bool fl_region_is_outer(void);

#endif
