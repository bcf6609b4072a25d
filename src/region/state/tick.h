/* Ticks of the clock by which memory ages: the worker's, or where there is none those of requests
 * and frees, of which the rest here is. Included by region.h. */
#ifndef FL_REGION_TICK_H
#define FL_REGION_TICK_H

#include "core/core.h"

struct fl_region;

/* Ticks in FAULTLESS_DECAY_MS: what was freed so many ago goes back. */
enum { FL_DECAY_TICKS = 4 };

/* Lock: region. */
struct fl_clock {
    _Atomic bool has_worker; /* Lock: to write */
    bool is_behind;          /* the last tick without a worker left aged memory */
    bool ages_more;          /* hooks.age_more is to be called by the next request */
    bool is_aging;           /* a request calls it */
    uint64_t due_ns;         /* monotonic; the next tick without a worker; 0: none yet */
};

/* Ticks without a worker. is_due: the region's age has gone up, or the last tick left something to
 * do; then tick_alone does it, with no lock held. */
bool fl_tick_is_due(struct fl_region *r);
/* There is a worker, or nothing ages. Lock: any shard's. */
bool fl_tick_is_never_due(const struct fl_region *r);
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
