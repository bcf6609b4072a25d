/* What fork leaves out of children, and what a child does about it. Included by region.h. Lock:
 * region. */
#ifndef FL_REGION_FORK_H
#define FL_REGION_FORK_H

#include "core/core.h"

struct fl_region;
struct fl_cache;
struct fl_extent;

struct fl_region_fork {
    _Atomic int threads;       /* amid fork(2). Relaxed: a hint */
    _Atomic bool shares;       /* what was live at a fork may be a child's, too. Relaxed: a hint */
    bool orphans;              /* after it: caches of threads that are not in this process */
    struct fl_cache *survivor; /* then: the one that it does have, or NULL */
};

/* After fork: empties the caches of threads that are gone, for others to use. */
void fl_region_adopt_orphans(struct fl_region *r);

#endif
