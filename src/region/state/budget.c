/* How much may be populated before the memory is looked at again. State: r->budget,
 * under the region lock. */
#include "region/state/lock.h"
#include "region/state/budget.h"
#include "region/state/counts.h"

static void grant(struct fl_region *r, size_t fresh)
{
    atomic_fetch_add_explicit(&r->budget.granted, fresh, memory_order_relaxed);
}

void fl_region_forgo(struct fl_region *r, size_t fresh)
{
    fl_assert(fl_region_is_locked(r));
    r->budget.left += fresh;
    atomic_fetch_sub_explicit(&r->budget.granted, fresh, memory_order_relaxed);
}

void fl_region_spend(struct fl_region *r, size_t fresh)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(r->budget.left >= fresh);
    r->budget.left -= fresh;
    grant(r, fresh);
}

enum fl_refusal fl_region_may_populate(struct fl_region *r, size_t len, size_t fresh,
                                       const struct fl_memory *seen)
{
    const struct fl_region_config *c = &r->config;
    bool too_large = c->eager_max != 0 && len > c->eager_max;

    fl_assert(fl_region_is_locked(r));
    if (c->limit != 0 && fl_region_counted(r) + fresh > c->limit) {
        return FL_REFUSED_MEMORY;
    }
    if (!too_large && fresh <= r->budget.left && (c->eager_max != 0 || len <= r->budget.left / 2)) {
        fl_region_spend(r, fresh);
        return FL_REFUSED_NOT;
    }
    if (seen == NULL) {
        return FL_REFUSED_LOOK;
    }
    if (fresh > seen->headroom / 2) {
        atomic_store_explicit(&r->starved, true, memory_order_relaxed);
        return FL_REFUSED_MEMORY;
    }
    if (too_large || (c->eager_max == 0 && len > seen->eager / FL_EAGER_SHARE)) {
        return FL_REFUSED_LENGTH;
    }
    if (fresh > seen->eager) {
        return FL_REFUSED_HALF;
    }
    /* Where the process has bounds of its own each growth has to look. */
    r->budget.left = seen->bounded ? 0 : (seen->eager - fresh) / 4;
    grant(r, fresh);
    return FL_REFUSED_NOT;
}
