/* How much may be populated before the memory is looked at again. Included by region.h. Lock:
 * region. */
#ifndef FL_REGION_BUDGET_H
#define FL_REGION_BUDGET_H

#include "core/core.h"

struct fl_region;

struct fl_budget {
    size_t left;            /* bytes that may be populated before the next look */
    _Atomic size_t granted; /* bytes that were ever allowed to be populated. Lock: to write */
};

/* May `fresh` bytes be populated for a request of `len`? 0, and they are off the budget; -E2BIG
 * when the request is larger than eager_max; -ENOMEM when limit or machine leave too little;
 * -EAGAIN when they leave enough, but half of the whole is in use, so that only what is touched
 * may be taken. The kernel is asked anew when a quarter of what was left the last time has been
 * used up: -EBUSY when that is so and `seen`, the answer, is NULL. */
int fl_region_may_populate(struct fl_region *r, size_t len, size_t fresh,
                           const struct fl_memory *seen);
/* `fresh` bytes that were allowed are not populated after all; and that taken back. */
void fl_region_forgo(struct fl_region *r, size_t fresh);
void fl_region_spend(struct fl_region *r, size_t fresh);

void fl_look_fork_child(struct fl_region *r);

#endif
