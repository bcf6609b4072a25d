/* The walk over all blocks for those that are to be thin. Lock: region. */
#ifndef FL_REGION_THIN_WALK_H
#define FL_REGION_THIN_WALK_H

#include "region/region.h"

/* The slots that are free are for blocks that had none, of kinds that are thin. */
void fl_thin_walk_on(struct fl_region *r);
/* What of a slot's block may be made thin: its whole huge pages, and those that it shares with thin
 * blocks alone. */
struct fl_range fl_thin_reach(struct fl_region *r, const struct fl_thin_slot *s);

#endif
