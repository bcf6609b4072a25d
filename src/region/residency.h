/* What of the region's memory is there, by the kernel's account: see residency.c. Included by
 * region.h. */
#ifndef FL_REGION_RESIDENCY_H
#define FL_REGION_RESIDENCY_H

#include "core/core.h"
#include "stats/stats.h"

struct fl_extent;
struct fl_inner;
struct fl_region;

/* Adds what of this region is in memory to `out`, by the kernel's account. 0; -EBUSY: the calling
 * thread is amid the region's work, or the region is of another process.
 * Threads: any; takes the region's lock and that of looks, both for short. Signals: not safe. Fork:
 * child may call.
 * Cost: 40 us; 7 us for each run of neighbours of one use, 50 us a GiB of huge pages, 3 to 20 ms a
 * GiB of base pages; where mincore(2) has to do, 0.2 ms a GiB of addresses. No figure is a
 * snapshot: what others do meanwhile may count twice, or not at all. */
int fl_region_residency(struct fl_region *r, struct fl_residency_values *out);

#endif
