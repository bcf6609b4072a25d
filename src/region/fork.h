/* What fork leaves out of children, and what a child does about it. Lock: region. */
#ifndef FL_REGION_FORK_H
#define FL_REGION_FORK_H

#include "region/region.h"

/* Before a FREE extent is used: children of later forks have it again. The worker, which must
 * not hold others up, never does it. */
void fl_fork_undo(struct fl_region *r, struct fl_extent *e);
/* After fork: empties the caches of threads that are gone, for others to use. */
void fl_region_adopt_orphans(struct fl_region *r);

#endif
