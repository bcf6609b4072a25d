/* The region's accounts: see counts.h. */
#include "region/state/lock.h"
#include "region/state/counts.h"

/* The kernel's own rule (overcommit_memory=0) refuses one map of more than all RAM and swap
 * (__vm_enough_memory() in mm/util.c), and the window is not under that rule: the next allocator
 * maps such a block, or is refused it. */
bool fl_region_is_absurd(const struct fl_region *r, size_t len)
{
    return len > r->pressure.absurd_above;
}

void fl_region_count_use(struct fl_region *r, int64_t in_use)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(in_use >= 0 || r->held.in_use >= (uint64_t)-in_use);
    r->held.in_use += (uint64_t)in_use;
    r->held.in_use_most = fl_max(r->held.in_use_most, r->held.in_use);
    r->depots.uses++;
    r->settle.due |=
        r->held.in_use > r->held.in_use_peak + r->depots.seen || r->depots.uses >= FL_DEPOT_USES;
    if (fl_region_counted(r) > r->held.populated_peak) {
        r->held.populated_peak = fl_region_counted(r);
    }
    if (!r->clock.has_worker && fl_region_is_worth_worker(r)) {
        atomic_store_explicit(&r->wants_worker, true, memory_order_relaxed);
    }
}
