/* LIVE extents that are populated in parts. */
#ifndef FL_REGION_PART_H
#define FL_REGION_PART_H

#include "region/region.h"

/* PART, nothing of it populated, not counted: `len` bytes, whole huge pages. NULL: no addresses. */
struct fl_extent *fl_part_take(struct fl_region *r, size_t len, unsigned zone);
struct fl_part_how {
    bool asked_for;  /* only for want of memory is it refused, however much it is */
    uint8_t threads; /* that populate; 0: automatic */
};
/* fl_inner_fill, of any PART extent. No lock held. */
bool fl_part_fill(struct fl_region *r, struct fl_extent *outer, struct fl_range part,
                  const struct fl_part_how *how);
/* Gives it back; `in`, or with NULL nothing, does not divide it any more. No lock held. */
void fl_part_give(struct fl_region *r, struct fl_extent *outer, struct fl_inner *in);

#endif
