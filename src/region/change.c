/* What may change of the region's configuration while it runs. Lock: region. */
#include "region/lock.h"

uint64_t fl_region_decay_ns(struct fl_region *r)
{
    fl_region_lock(r);
    uint64_t tick_ns = r->config.tick_ns;
    fl_region_unlock(r);
    return tick_ns * FL_DECAY_TICKS;
}
