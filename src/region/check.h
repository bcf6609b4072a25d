/* The invariants of region.h. */
#ifndef FL_REGION_CHECK_H
#define FL_REGION_CHECK_H

#include "region/region.h"

/* fl_region_check, with the lock held, once the window is seeded. */
const char *fl_region_check_locked(struct fl_region *r);

#endif
