/* Ticks of the clock by which memory ages, where there is no worker. */
#ifndef FL_REGION_TICK_H
#define FL_REGION_TICK_H

#include "region/region.h"

/* Ticks without a worker. is_due: the region's age has gone up, or the last tick left something to
 * do; then tick_alone does it, with no lock held. */
bool fl_tick_is_due(struct fl_region *r);
void fl_region_tick_alone(struct fl_region *r);
/* What others have to age at such ticks. Not in a free, which may come from them. No lock held. */
void fl_region_age_more(struct fl_region *r);
/* Both, where they are due. */
static inline void fl_tick_after(struct fl_region *r, bool tick, bool more)
{
    if (FL_UNLIKELY(tick)) {
        fl_region_tick_alone(r);
    }
    if (FL_UNLIKELY(more)) {
        fl_region_age_more(r);
    }
}

#endif
