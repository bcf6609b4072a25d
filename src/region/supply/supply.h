/* Where the pages of a request come from. Lock: region, but where it says otherwise. */
#ifndef FL_REGION_SUPPLY_H
#define FL_REGION_SUPPLY_H

#include "region/supply/fill_plan.h"

/* Decides where `fresh` bytes for a request of `len` come from; FL_REFUSED_NOT, or why that may not
 * be: as fl_region_may_populate, or _NODE, or _LOAN and g->supply.wanted.
 *   own  bytes, in whole huge pages, of free extents that the request takes as they are. */
enum fl_refusal fl_supply_plan(struct fl_region *r, struct fl_fill_plan *g, size_t len,
                               size_t fresh, size_t own);
/* The request failed after the plan. */
void fl_supply_cancel(struct fl_region *r, struct fl_fill_plan *g);
/* Takes what the plan says out of reserve and free extents, into the fill plan; and puts that
 * back. */
void fl_supply_claim(struct fl_region *r, struct fl_fill_plan *g);
void fl_supply_unclaim(struct fl_region *r, struct fl_fill_plan *g);
/* May the holes in `range`, for a request of `len`, be filled besides what the plan has from the
 * kernel? As fl_region_may_populate, or _NODE: that of `zone` has no room. */
enum fl_refusal fl_supply_may_fill(struct fl_region *r, const struct fl_fill_plan *g, unsigned zone,
                                   size_t len, struct fl_range range);
/* It said `why`, and they are not taken after all. */
void fl_supply_not_filled(struct fl_region *r, enum fl_refusal why, struct fl_range range);
/* Or are they left to the touch? */
static inline bool fl_refusal_leaves_holes(enum fl_refusal why)
{
    return why != FL_REFUSED_NOT && why != FL_REFUSED_LENGTH && why != FL_REFUSED_HALF;
}
/* Bytes that may be held populated once `more` are in use. */
size_t fl_supply_allowed(const struct fl_region *r, size_t more);
/* Would `fresh` bytes for a request of `len` be more than that? Then free extents give their
 * pages. */
bool fl_supply_is_full(const struct fl_region *r, size_t len, size_t fresh);
/* Are pages on their way to addresses that were handed out, and to what is free beside them? Then
 * what is absent there may not stay so. No lock needed. */
bool fl_supply_is_coming(const struct fl_region *r);

/* Brings in what no move has brought of fresh ranges; and holes. Not under the lock. */
void fl_fill_populate(struct fl_region *r, const struct fl_fill_plan *g);
void fl_fill_holes(struct fl_region *r, const struct fl_fill_plan *g);
/* Does what the fill plan says: moves, populates, clears. Not under the lock. */
void fl_fill_carry_out(struct fl_region *r, struct fl_fill_plan *g);

#endif
