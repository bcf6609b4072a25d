/* Shared by the files of learn/ alone. */
#ifndef FL_PLAN_LEARN_MERGE_H
#define FL_PLAN_LEARN_MERGE_H

#include "plan/plan.h"

#define FL_MERGE_NONE UINT32_MAX
/* No step has more lives than this: slots and events are numbered by 32 bits. */
#define FL_MERGE_MOST ((size_t)1 << 28)

/* Which life of `other` is each life of `newest`: its number in match[], or FL_MERGE_NONE. In each
 * thread by size and lifetime in their order, so that some may be missing on either side. Returns
 * how many have one. Cost: 0.2 us a life. */
size_t fl_match_steps(const struct fl_lives *newest, const struct fl_lives *other, uint32_t *match,
                      struct fl_bump room);
size_t fl_match_scratch(size_t newest);

/* Births and deaths of the slots as places in the newest step's order of events; 0 .. the returned
 * horizon. Slots of all kinds, deaths after the step at the horizon. */
uint64_t fl_order_newest(const struct fl_lives *newest, struct fl_slot *slot, struct fl_bump room);
/* Lengthens lifetimes of planned slots until all that conflict in `step` do. */
void fl_order_cover(const struct fl_lives *step, const uint32_t *match, struct fl_slot *slot,
                    size_t n, struct fl_bump room);
/* The most bytes that the step's lives hold at once if the step before was like it; those that are
 * never freed left out. `size`: what to take for each life's size, or NULL. */
uint64_t fl_order_peak(const struct fl_lives *step, const struct fl_slot *size,
                       struct fl_bump room);
/* For all three, `most` lives in the longest step. */
size_t fl_order_scratch(size_t most);

#endif
