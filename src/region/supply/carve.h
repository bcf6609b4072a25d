/* A LIVE extent is cut out of adjacent FREE ones. Lock: region. */
#ifndef FL_REGION_CARVE_H
#define FL_REGION_CARVE_H

#include "region/free/front.h"
#include "region/supply/fill_plan.h"

/* Takes [start, start + len) out of the adjacent FREE extents that begin with `e` and hold it all.
 * What lies before and behind stays FREE; an EMPTY part is cut at huge pages, so some of it becomes
 * populated FREE memory: `g->todo.fresh` says what to fill. Descriptors have been reserved. Returns
 * the extent, LIVE; NULL when the memory cannot be committed, with g->supply.refusal _PLACE when
 * others have mapped something there: then it is FOREIGN, and another place will do. The lock is
 * released where something of it is EMPTY. */
struct fl_extent *fl_carve(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                           struct fl_fill_plan *g);

/* The same step by step. hold: false, with nothing held: no descriptors or no pagemap. map, with
 * the lock released meanwhile where some of it is EMPTY: false, with nothing held and
 * g->supply.refusal as above. make cannot fail. */
bool fl_carve_hold(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                   struct fl_fill_plan *g);
bool fl_carve_map_unlocking(struct fl_region *r, struct fl_fill_plan *g);
struct fl_extent *fl_carve_make(struct fl_region *r, struct fl_fill_plan *g);
/* Is some of what is held EMPTY? */
bool fl_carve_wants_map(const struct fl_todo *t);

#endif
