/* A request in one zone: first fit over what is populated, what others keep in vain, by touch, else
 * growth; a little growth sooner where requests hold each other up. Where another mapping lies
 * fl_carve retires the place: the next try looks elsewhere. */
#include "region/free/fit.h"
#include "region/serve/shard.h"
#include "region/serve/take.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/supply/carve.h"
#include "region/supply/run.h"
#include "region/supply/supply.h"

static void note_grown(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *live,
                       enum fl_refusal holes, bool on_touch)
{
    fl_assert(fl_region_is_locked(r));
    fl_left_note_holes(r, g, live, holes);
    r->stats.stalls += (g->account.budgeted != 0 && !g->supply.leaves) ||
                       (g->todo.holes != 0 && !g->supply.leave_holes && !on_touch);
    fl_region_count_lazy(r, on_touch || g->supply.leaves ? live->len : 0);
}

struct fl_extent *fl_take_grown_unlocking(struct fl_region *r, struct fl_fill_plan *g)
{
    struct fl_extent *live = NULL;
    size_t len = g->asked.len;
    bool on_touch = g->asked.on_touch;
    enum fl_refusal holes = FL_REFUSED_NOT; /* why they may not be filled */

    fl_assert(fl_region_is_locked(r));
    if (FL_UNLIKELY(r->zones.placing.nodes != 0) && !on_touch) {
        fl_region_make_way_unlocking(r, len, g->asked.zone);
    }
    if (FL_UNLIKELY(r->pages.holes.split != 0) && !on_touch && fl_supply_is_full(r, len, len)) {
        (void)fl_pieces_smooth_unlocking(
            r, FL_SMOOTHED_MOST); /* so that what lies around can give its pages */
    }
    for (int i = 0; i < FL_FOREIGN_TRIES && live == NULL; i++) {
        fl_run_find(r, len, g->asked.align, g->asked.zone, &g->run);
        if (g->run.start == NULL || fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) != 0) {
            return NULL;
        }
        live = on_touch ? fl_carve(r, g->run.start, g->run.part.base, len, g)
                        : fl_run_carve(r, g, &holes);
        if (g->supply.refusal != FL_REFUSED_PLACE) {
            break;
        }
    }
    if (live != NULL) {
        note_grown(r, g, live, holes, on_touch);
    }
    return live;
}

bool fl_take_has_room(const struct fl_region *r, unsigned zone, size_t len)
{
    return fl_zone_has_room(&r->zones, zone, fl_min(len, FL_LAZY_FROM_HUGE * fl_page.huge));
}

/* In the zone; else, with several shards of one node, in others'. */
static struct fl_extent *first_populated(struct fl_region *r, size_t len, size_t align,
                                         unsigned zone)
{
    unsigned n = fl_zones_alike(r);
    struct fl_extent *e = fl_fit_first(&r->zones.of[zone].populated, len, align);

    for (unsigned i = 1; i < n && e == NULL; i++) {
        e = fl_fit_first(&r->zones.of[(zone + i) % n].populated, len, align);
    }
    return e;
}

static struct fl_extent *take_populated(struct fl_region *r, struct fl_fill_plan *g, unsigned zone)
{
    size_t len = g->asked.len, align = g->asked.align;
    struct fl_extent *e = first_populated(r, len, align, zone);

    fl_assert(fl_region_is_locked(r));
    if (e == NULL || (g->supply.sparse && e->left != 0)) {
        return NULL;
    }
    struct fl_range part = {fl_align_up(e->base, align), len};
    enum fl_refusal refusal = fl_supply_may_fill(r, g, zone, len, part);
    if (fl_refusal_leaves_holes(refusal)) {
        g->supply.refusal = refusal == FL_REFUSED_MEMORY ? FL_REFUSED_NOT : refusal;
        return NULL; /* elsewhere there may be reserve, or free pages that move */
    }
    g->look |= fl_region_note_reuse(r, len);
    e = fl_carve(r, e, part.base, len, g);
    if (e == NULL) {
        fl_supply_not_filled(r, refusal, part);
    } else if (g->todo.holes != 0) {
        fl_left_note_holes(r, g, e, refusal);
        r->stats.stalls += !g->supply.leave_holes;
    }
    return e;
}

/* Where requests hold each other up, what threads and depots hold is no waste: emptied for each
 * request that finds nothing, they serve none, and the next ones want all locks, too. So a little
 * more memory comes first, for lengths that depots serve, as far as nothing is short of it and no
 * look and no loan is wanted. */
static bool grows_sooner(struct fl_region *r, const struct fl_fill_plan *g, unsigned zone)
{
    size_t len = g->asked.len, fresh = fl_align_up(len, fl_page.huge);

    fl_assert(fl_region_is_locked(r));
    return fl_shards_open(&r->shards) != 1 && fl_depot_has_bin(len) &&
           !g->asked.zonelist->on_touch && !fl_sys_is_confined() && !fl_region_is_tight(r) &&
           r->config.limit == 0 && r->config.eager_max == 0 &&
           fresh + fl_page.huge <= r->budget.left / 2 && !fl_supply_is_full(r, len, fresh) &&
           !fl_zone_may_lend(r, fl_zone_class(r, zone));
}

/* By what threads' caches and depots give back, some more each time. */
static struct fl_extent *take_drained(struct fl_region *r, struct fl_fill_plan *g, unsigned zone)
{
    struct fl_extent *e = NULL;

    fl_assert(fl_region_is_locked(r));
    for (size_t n = FL_DRAINED_AT_ONCE; e == NULL && fl_cache_drain_some(r, n) != 0 &&
                                        fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) == 0;
         n = fl_min(2 * n, SIZE_MAX / 2)) {
        e = take_populated(r, g, zone);
    }
    return e;
}

/* Growth was refused. Where that does not serve either, its reason stands. */
static struct fl_extent *take_drained_at_last(struct fl_region *r, struct fl_fill_plan *g,
                                              unsigned zone)
{
    enum fl_refusal why = g->supply.refusal;

    fl_supply_cancel(r, g);
    struct fl_extent *e = take_drained(r, g, zone);
    if (e == NULL && !fl_refusal_puts_off(g->supply.refusal)) {
        g->supply.refusal = why;
    }
    return e;
}

/* Touched by several threads, in whatever pieces: a block of that length again, or none. */
static struct fl_extent *take_alike(struct fl_region *r, struct fl_fill_plan *g)
{
    unsigned zone = fl_placing_touch(&r->zones.placing);
    struct fl_extent *e = fl_fit_first(&r->zones.of[zone].populated, g->asked.len, g->asked.align);

    return e != NULL && e->len == g->asked.len ? take_populated(r, g, e->zone) : NULL;
}

/* By base pages, where little of it will be touched. */
static struct fl_extent *take_sparse(struct fl_region *r, struct fl_fill_plan *g)
{
    size_t len = g->asked.len, align = g->asked.align;
    bool beyond = !g->asked.zonelist->on_touch && fl_left_is_beyond(r, len) &&
                  fl_take_has_room(r, g->asked.zone, len);
    struct fl_extent *e =
        g->supply.sparse || beyond ? fl_take_sparse(r, len, align, g->asked.zone) : NULL;

    fl_assert(fl_region_is_locked(r));
    if (e == NULL && g->supply.sparse && fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) == 0) {
        g->supply.sparse = false; /* what is free is better than nothing */
        e = take_populated(r, g, g->asked.zone);
    }
    return e;
}

struct fl_extent *fl_take_in_zone_unlocking(struct fl_region *r, struct fl_fill_plan *g)
{
    const struct fl_zonelist *zonelist = g->asked.zonelist;
    size_t len = g->asked.len;

    fl_assert(fl_region_is_locked(r));
    if (fl_take_seed(r, len) != 0 || fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) != 0) {
        return NULL;
    }
    if (FL_UNLIKELY(r->zones.placing.nodes != 0) && g->asked.own != NULL) {
        (void)fl_cache_drain(r, g->asked.own, 0); /* it is about to keep what lies elsewhere */
    }
    unsigned zone = zonelist->on_touch ? zonelist->touched : g->asked.zone;
    g->supply.sparse =
        !zonelist->on_touch && fl_left_is_sparse(r, len) && fl_take_has_room(r, zone, len);
    struct fl_extent *e = take_populated(r, g, zone);
    bool grows = e == NULL && grows_sooner(r, g, zone);
    if (e == NULL && !grows) {
        e = take_drained(r, g, zone);
    }
    if (e == NULL && fl_sys_is_confined()) { /* more memory is the next allocator's to ask for */
        return NULL;
    }
    if (e == NULL && zonelist->on_touch && !fl_refusal_puts_off(g->supply.refusal)) {
        e = take_alike(r, g);
    }
    if (e == NULL && fl_refusal_puts_off(g->supply.refusal)) { /* after a look it may be had */
        return NULL;
    }
    if (e == NULL) {
        e = take_sparse(r, g);
    }
    if (e == NULL &&
        (zonelist->on_touch || (r->zones.placing.nodes == 0 && fl_touch_wants(r, len)))) {
        g->look |= fl_region_note_touch(r, len);
        e = fl_take_lazy(r, len, g->asked.align, g->asked.zone, r->config.wait_for_touch);
    }
    if (e == NULL && !zonelist->on_touch) {
        e = fl_take_grown_unlocking(r, g);
    }
    return e == NULL && grows && !fl_refusal_puts_off(g->supply.refusal)
               ? take_drained_at_last(r, g, zone)
               : e;
}
