/* Free memory goes back to the kernel, oldest first. Lock: region, but where it says otherwise. */
#ifndef FL_REGION_PURGE_H
#define FL_REGION_PURGE_H

#include "region/region.h"

struct fl_fill_plan;

/* fl_region_purge until `want` bytes are given back. No lock held. */
size_t fl_region_purge_some(struct fl_region *r, uint32_t age, size_t want);
/* On several nodes, before `len` bytes come into memory in that zone: where more would be held
 * than ever was in use at once, what is free in other zones, for a tick or more, goes back to
 * the kernel. The lock is released meanwhile. */
void fl_region_make_way_unlocking(struct fl_region *r, size_t len, unsigned zone);
/* The node of that zone has no room for `len` bytes more: what is free, and may lie there, of zones
 * of several nodes and of what programs touched goes back. True: some did. Lock: region; it is
 * released meanwhile. */
bool fl_region_clear_node_unlocking(struct fl_region *r, size_t len, unsigned zone);
/* What lend does, for a plan that had to ask for it (supply.wanted): all is to be planned anew. The
 * lock is released meanwhile, but for a fork. */
void fl_region_take_loan_unlocking(struct fl_region *r, struct fl_fill_plan *g);
/* What release_more does, where it is plugged in. No lock held. */
size_t fl_region_release_more(struct fl_region *r);
/* Tells the kernel that it may take `part`, which is no thread's but the caller's. False: it
 * refuses. */
bool fl_region_soften_part(struct fl_region *r, struct fl_range part);
/* Tells the kernel that it may take free memory when it is short. No lock held. */
void fl_region_soften(struct fl_region *r);

#endif
