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

/* Why a request does not get what was planned for it. */
enum fl_refusal {
    FL_REFUSED_NOT,    /* it does; or there is no place for it */
    FL_REFUSED_LOOK,   /* not before a look at the memory */
    FL_REFUSED_LOAN,   /* not before idle pages of divided extents were asked for */
    FL_REFUSED_MEMORY, /* limit or machine leave too little */
    FL_REFUSED_LENGTH, /* it is longer than eager_max */
    FL_REFUSED_HALF,   /* half of the whole is in use: only what is touched may be taken */
    FL_REFUSED_NODE,   /* the zone's node has no room */
    FL_REFUSED_PLACE   /* others have mapped something there: elsewhere it may be had */
};

static inline bool fl_refusal_puts_off(enum fl_refusal why)
{
    return why == FL_REFUSED_LOOK || why == FL_REFUSED_LOAN;
}

/* May `fresh` bytes be populated for a request of `len`? FL_REFUSED_NOT, and they are off the
 * budget; else _LENGTH, _MEMORY or _HALF. The kernel is asked anew when a quarter of what was left
 * the last time has been used up: _LOOK when that is so and `seen`, the answer, is NULL. */
enum fl_refusal fl_region_may_populate(struct fl_region *r, size_t len, size_t fresh,
                                       const struct fl_memory *seen);
/* `fresh` bytes that were allowed are not populated after all; and that taken back. */
void fl_region_forgo(struct fl_region *r, size_t fresh);
void fl_region_spend(struct fl_region *r, size_t fresh);

void fl_look_fork_child(struct fl_region *r);

#endif
