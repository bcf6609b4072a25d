/* A LIVE extent by plan: the plan says where the bytes come from that nothing is behind yet. What
 * it takes is claimed before the lock is released, so no other call plans with that. */
#include "region/state/lock.h"
#include "region/supply/carve.h"
#include "region/free/fit.h"
#include "region/supply/run.h"
#include "region/supply/supply.h"

enum { CANDIDATES = 64 }; /* EMPTY extents that are looked at */

struct fl_run fl_run_from(struct fl_region *r, struct fl_extent *e, size_t len, size_t align)
{
    uintptr_t start = fl_align_up(e->base, align), end = start + len;
    struct fl_run g = {.start = e, .part = {start, len}, .want = len};

    for (int i = 0; i < FL_RUN_EXTENTS && e != NULL; i++) {
        uintptr_t e_end = e->base + e->len;
        if (e->content == FL_CONTENT_EMPTY) {
            g.fresh += fl_min(e_end, fl_align_up(end, fl_page.huge)) -
                       fl_max(e->base, fl_align_down(start, fl_page.huge));
        } else {
            g.own += fl_extent_huge_of(e, start, end);
        }
        if (e_end >= end || start >= e_end) {
            g.fresh = e_end >= end ? g.fresh : SIZE_MAX;
            return g;
        }
        e = fl_extent_free_at(&r->space, e_end, e->zone);
    }
    return (struct fl_run){.fresh = SIZE_MAX};
}

static void consider(struct fl_region *r, struct fl_run *best, struct fl_extent *start, size_t len,
                     size_t align)
{
    if (start != NULL) {
        struct fl_run g = fl_run_from(r, start, len, align);
        *best = g.fresh < best->fresh ? g : *best;
    }
}

void fl_run_find(struct fl_region *r, size_t len, size_t align, unsigned zone, struct fl_run *best)
{
    struct fl_extent_tree *empty = &r->zones.of[zone].empty;

    fl_assert(fl_region_is_locked(r));
    *best = (struct fl_run){.fresh = SIZE_MAX};
    fl_zone_extend(r, zone, len, align);
    struct fl_extent *e = fl_tree_lowest(empty);
    bool lowest = fl_supply_is_full(r, len, fl_page.huge);

    for (int i = 0; i < CANDIDATES && e != NULL && !(lowest && best->start != NULL); i++) {
        consider(r, best, fl_extent_free_before(&r->space, e->base, zone), len, align);
        consider(r, best, e, len, align);
        e = fl_tree_higher(e);
    }
    if (best->start == NULL) {
        consider(r, best, fl_fit_first(empty, len, align), len, align);
    }
}

/* Why the run may not be taken; `out_holes`: why its holes may not be filled. */
static enum fl_refusal plan(struct fl_region *r, struct fl_fill_plan *g, enum fl_refusal *out_holes)
{
    const struct fl_run *run = &g->run;
    enum fl_refusal why = fl_supply_plan(r, g, run->want, run->fresh, run->own);

    fl_assert(fl_region_is_locked(r));
    if (why != FL_REFUSED_NOT) {
        return why;
    }
    *out_holes = fl_supply_may_fill(r, g, g->asked.zone, run->want, run->part);
    if (!fl_refusal_leaves_holes(*out_holes)) {
        return FL_REFUSED_NOT;
    }
    fl_supply_cancel(r, g);
    return *out_holes;
}

struct fl_extent *fl_run_carve(struct fl_region *r, struct fl_fill_plan *g,
                               enum fl_refusal *out_holes)
{
    const struct fl_run *run = &g->run;

    fl_assert(fl_region_is_locked(r));
    g->supply.refusal = plan(r, g, out_holes);
    if (g->supply.refusal != FL_REFUSED_NOT) {
        return NULL;
    }
    bool held = fl_carve_hold(r, run->start, run->part.base, run->part.len, g);
    if (held) {
        fl_supply_claim(r, g);
        if (fl_carve_map_unlocking(r, g)) {
            return fl_carve_make(r, g);
        }
        fl_supply_unclaim(r, g);
    }
    fl_supply_not_filled(r, *out_holes, run->part);
    fl_supply_cancel(r, g);
    return NULL;
}
