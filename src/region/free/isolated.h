/* Extents that are out of the tables while one thread works on them without the lock. Lock:
 * region. */
#ifndef FL_REGION_ISOLATED_H
#define FL_REGION_ISOLATED_H

#include "region/region.h"

/* The last whole huge pages of the FREE extent `e`, `most` bytes at most, out of the tree and
 * ISOLATED; what is left of it stays FREE. Two descriptors have been reserved. */
struct fl_extent *fl_isolated_claim(struct fl_region *r, struct fl_extent *e, size_t most);
/* The same of `part` of it, whole huge pages: a child may find nothing there. */
struct fl_extent *fl_isolated_claim_part(struct fl_region *r, struct fl_extent *e,
                                         struct fl_range part);
/* It is the caller's, and on no list. */
void fl_isolated_take(struct fl_region *r, struct fl_extent *e);
/* Bytes of memory that is ISOLATED. Cost: by their number, which is that of the threads at work. */
size_t fl_isolated_bytes(const struct fl_region *r);
/* What is in no list becomes ISOLATED. */
void fl_isolated_put(struct fl_region *r, struct fl_extent *e);
/* FREE again: EMPTY when its pages are `gone`. */
void fl_isolated_return(struct fl_region *r, struct fl_extent *e, bool gone);

#endif
