/* What the kernel is told of free memory, which core dumps and children of fork do without.
 * Included by region.h. Lock: region, unless it says otherwise. */
#ifndef FL_REGION_ADVICE_H
#define FL_REGION_ADVICE_H

#include "core/core.h"

struct fl_region;
struct fl_todo;
struct fl_extent;

/* Before `part` is cut out of the FREE extent `e`, which is in its tree, to be used: children have
 * it again, and what core dumps are to have again is noted to be done. Then `e` says what is still
 * advised of the rest of it. */
void fl_advice_cut(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                   struct fl_todo *t);
/* What that noted, and an ISOLATED extent, is in core dumps again. No lock held. */
void fl_advice_show(const struct fl_todo *t);
void fl_advice_show_apart(const struct fl_extent *e);
/* The extent was shown: the mark goes with the lock held. */
void fl_advice_note_shown(struct fl_extent *e);
/* Extents that are hidden at one time, at most. */
enum { FL_HIDDEN_MOST = 256 };
/* Hides what was freed `age` ticks ago, `most` extents at most. Releases the lock in between. */
void fl_advice_hide_unlocking(struct fl_region *r, uint32_t age, unsigned most);

#endif
