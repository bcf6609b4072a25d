/* Hooks of the lock: see settle.c. */
#ifndef FL_REGION_SETTLE_H
#define FL_REGION_SETTLE_H

#include "region/region.h"

void fl_settle_start(struct fl_region *r);

#endif
