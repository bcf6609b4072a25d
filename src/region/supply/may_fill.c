/* Holes in what is free: may a request have them filled? */
#include "region/state/lock.h"
#include "region/state/budget.h"
#include "region/supply/supply.h"

void fl_supply_not_filled(struct fl_region *r, enum fl_refusal why, struct fl_range range)
{
    fl_assert(fl_region_is_locked(r));
    if (why == FL_REFUSED_NOT && !fl_sys_is_confined()) { /* there nothing was asked for */
        fl_region_forgo(r, fl_holes_in(&r->pages.holes, range));
    }
}

enum fl_refusal fl_supply_may_fill(struct fl_region *r, const struct fl_fill_plan *g, unsigned zone,
                                   size_t len, struct fl_range range)
{
    size_t holes = r->pages.holes.split != 0 ? fl_holes_in(&r->pages.holes, range) : 0;

    fl_assert(fl_region_is_locked(r));
    if (holes == 0 || fl_sys_is_confined()) {
        return FL_REFUSED_NOT;
    }
    fl_region_forgo(r, g->account.budgeted); /* it is asked for once more, with the holes */
    enum fl_refusal why =
        fl_region_may_populate(r, len, holes + g->account.budgeted, g->asked.seen);
    if (why != FL_REFUSED_NOT) {
        fl_region_spend(r, g->account.budgeted);
    } else if (!g->asked.any_room && !fl_zone_has_room(&r->zones, zone, holes)) {
        fl_region_forgo(r, holes);
        why = FL_REFUSED_NODE;
    }
    return why;
}
