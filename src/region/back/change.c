/* What may change of the region's configuration while it runs. Lock: region. */
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/purge.h"

uint64_t fl_region_decay_ns(struct fl_region *r)
{
    fl_region_lock(r);
    uint64_t tick_ns = r->config.tick_ns;
    fl_region_unlock(r);
    return tick_ns * FL_DECAY_TICKS;
}

void fl_region_set_decay(struct fl_region *r, uint64_t tick_ns, bool crowd_goes)
{
    fl_region_lock(r);
    r->config.tick_ns = tick_ns;
    r->config.crowd_goes = crowd_goes;
    r->clock.due_ns = 0;
    fl_region_unlock(r);
}

void fl_region_set_limit(struct fl_region *r, size_t limit)
{
    fl_region_lock(r);
    size_t held = fl_region_counted(r);
    r->config.limit = limit;
    fl_region_unlock(r);
    if (limit != 0 && held > limit) {
        (void)fl_region_purge_some(r, 0, held - limit);
    }
}

void fl_region_set_eager(struct fl_region *r, size_t eager_max, bool wait_for_touch)
{
    fl_region_lock(r);
    r->config.eager_max = eager_max;
    r->config.wait_for_touch = wait_for_touch;
    r->look.scratch.promises = wait_for_touch;
    fl_region_unlock(r);
}
