/* The front of free memory. */
#ifndef FL_REGION_FRONT_H
#define FL_REGION_FRONT_H

#include "region/region.h"

/* Most requests are so: the front of memory that is there. Then nothing is held, nothing can fail,
 * and where nothing is to be cleared there is no need of a fill plan. */
bool fl_carve_is_plain(const struct fl_extent *e, uintptr_t start, size_t len);
/* The first `len` bytes of such an `e`, LIVE. One descriptor has been reserved. */
struct fl_extent *fl_carve_front(struct fl_region *r, struct fl_extent *e, size_t len);

#endif
