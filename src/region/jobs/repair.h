/* Huge pages that fork split become whole again. Included by region.h. Lock: region,
 * unless it says otherwise. */
#ifndef FL_REGION_REPAIR_H
#define FL_REGION_REPAIR_H

#include "core/core.h"

struct fl_region;

/* Lock: region. */
struct fl_repair {
    bool active;
    _Atomic bool backoff_said; /* that compaction is backed off from. Any thread */
    bool forked;               /* pages may be shared with a child */
    unsigned begun;            /* how often: a look that was under way at the last time is void */
    uintptr_t cursor;          /* how far this look at the window has come */
    size_t repaired;           /* bytes, in this look */
    size_t refused;            /* collapses that the kernel refuses for good, in this look */
    size_t left;               /* huge pages seen that are shared or split still, in this look */
    uint64_t rest_ns, quiet_ns;
};

/* ns between two looks, at least. */
#define FL_REPAIR_REST UINT64_C(100000000)
/* After fork(2), in the parent. */
void fl_repair_begin(struct fl_region *r);

#endif
