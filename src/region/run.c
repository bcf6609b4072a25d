/* A LIVE extent by plan: the plan says where the bytes come from that nothing is behind yet. What
 * it takes is claimed before the lock is released, so no other call plans with that. */
#include "region/carve.h"
#include "region/run.h"
#include "region/supply.h"

/* 0, or why the run may not be taken; `out_holes`: why its holes may not be filled. */
static int plan(struct fl_region *r, struct fl_fill_plan *g, const struct fl_run *run,
                int *out_holes)
{
    int rc = fl_supply_plan(r, g, run->want, run->fresh, run->own);

    if (rc != 0) {
        return rc;
    }
    *out_holes = fl_pieces_may_fill(r, g, g->zone, run->want, run->part);
    if (!fl_pieces_refuses(*out_holes)) {
        return 0;
    }
    fl_supply_cancel(r, g);
    return *out_holes;
}

struct fl_extent *fl_run_carve(struct fl_region *r, struct fl_fill_plan *g,
                               const struct fl_run *run, int *out_holes)
{
    g->refusal = plan(r, g, run, out_holes);
    if (g->refusal != 0) {
        return NULL;
    }
    bool held = fl_carve_hold(r, run->start, run->part.base, run->part.len, g);
    if (held) {
        fl_supply_claim(r, g);
        if (fl_carve_map(r, g)) {
            return fl_carve_make(r, g);
        }
        fl_supply_unclaim(r, g);
    }
    fl_pieces_not_filled(r, *out_holes, run->part);
    fl_supply_cancel(r, g);
    return NULL;
}
