/* Blocks to whose pages the program did something that free has to undo. */
#ifndef FL_REGION_USER_REMAPPED_H
#define FL_REGION_USER_REMAPPED_H

#include "region/region.h"

/* Of an extent that was user-remapped. renew, without the lock or with it: maps anew what it shares
 * with neighbours, unmaps the rest; false: the kernel refuses. settle: then it is FREE, and
 * EMPTY where it can be; or it is in no block any more. */
bool fl_remapped_renew(struct fl_region *r, const struct fl_extent *e);
void fl_remapped_settle(struct fl_region *r, struct fl_extent *e, bool renewed);
/* realloc to fewer bytes: its tail goes. No lock held. */
void fl_remapped_shrink(struct fl_region *r, struct fl_extent *e, size_t len);

#endif
