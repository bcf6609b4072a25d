/* A request: first fit over what is populated, else growth, else the next allocator. */
#include "region/serve/shard.h"
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/supply/run.h"
#include "region/supply/supply.h"
#include "region/serve/take.h"
#include "region/state/tick.h"

enum {
    LAZY_FROM_HUGE = 8, /* huge pages from which on a request may be handed out unpopulated */
    NO_ZONE = 255,
};

static void note_grown(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *live,
                       enum fl_refusal holes, bool on_touch)
{
    fl_assert(fl_region_is_locked(r));
    fl_left_note_holes(r, g, live, holes);
    r->stats.stalls += (g->account.budgeted != 0 && !g->supply.leaves) ||
                       (g->todo.holes != 0 && !g->supply.leave_holes && !on_touch);
    fl_region_count_lazy(r, on_touch || g->supply.leaves ? live->len : 0);
}

/* Carves from EMPTY memory. Where another mapping lies, fl_carve retires the place: the next try
 * looks elsewhere. */
static struct fl_extent *grow(struct fl_region *r, struct fl_fill_plan *g)
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

/* Of a giant little may be touched. */
static bool has_room_for(const struct fl_region *r, unsigned zone, size_t len)
{
    return fl_zone_has_room(&r->zones, zone, fl_min(len, LAZY_FROM_HUGE * fl_page.huge));
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
    bool beyond = !g->asked.wish->on_touch && fl_left_is_beyond(r, len) &&
                  has_room_for(r, g->asked.zone, len);
    struct fl_extent *e =
        g->supply.sparse || beyond ? fl_take_sparse(r, len, align, g->asked.zone) : NULL;

    fl_assert(fl_region_is_locked(r));
    if (e == NULL && g->supply.sparse && fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) == 0) {
        g->supply.sparse = false; /* what is free is better than nothing */
        e = take_populated(r, g, g->asked.zone);
    }
    return e;
}

static struct fl_extent *take_locked(struct fl_region *r, struct fl_fill_plan *g)
{
    const struct fl_wish *wish = g->asked.wish;
    size_t len = g->asked.len;

    fl_assert(fl_region_is_locked(r));
    if (fl_take_seed(r, len) != 0 || fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) != 0) {
        return NULL;
    }
    if (FL_UNLIKELY(r->zones.placing.nodes != 0) && g->asked.own != NULL) {
        (void)fl_cache_drain(r, g->asked.own, 0); /* it is about to keep what lies elsewhere */
    }
    unsigned zone = wish->on_touch ? wish->touched : g->asked.zone;
    g->supply.sparse = !wish->on_touch && fl_left_is_sparse(r, len) && has_room_for(r, zone, len);
    struct fl_extent *e = take_populated(r, g, zone);
    for (size_t n = FL_DRAINED_AT_ONCE; e == NULL && fl_cache_drain_some(r, n) != 0;
         n = fl_min(2 * n, SIZE_MAX / 2)) {
        e = take_populated(r, g, zone);
    }
    if (e == NULL && fl_sys_is_confined()) { /* more memory is the next allocator's to ask for */
        return NULL;
    }
    if (e == NULL && wish->on_touch && !fl_refusal_puts_off(g->supply.refusal)) {
        e = take_alike(r, g);
    }
    if (e == NULL && fl_refusal_puts_off(g->supply.refusal)) { /* after a look it may be had */
        return NULL;
    }
    if (e == NULL) {
        e = take_sparse(r, g);
    }
    if (e == NULL && (wish->on_touch || (r->zones.placing.nodes == 0 && fl_touch_wants(r, len)))) {
        g->look |= fl_region_note_touch(r, len);
        e = fl_take_lazy(r, len, g->asked.align, g->asked.zone, r->config.wait_for_touch);
    }
    return e != NULL || wish->on_touch ? e : grow(r, g);
}

/* In that zone, as if nothing had been planned yet. */
static struct fl_extent *take_in(struct fl_region *r, struct fl_fill_plan *g, unsigned zone,
                                 bool any_room)
{
    fl_assert(fl_region_is_locked(r));
    fl_fill_again(g);
    g->asked.zone = (uint8_t)zone;
    g->asked.any_room = any_room;
    return take_locked(r, g);
}

/* One zone after the other, while it is its node that has no room. */
static struct fl_extent *take_wished(struct fl_region *r, struct fl_fill_plan *g)
{
    const struct fl_wish *wish = g->asked.wish;
    struct fl_extent *e = NULL;
    unsigned i = 0;

    fl_assert(fl_region_is_locked(r));
    do {
        e = take_in(r, g, wish->zone[i], false);
        if (e == NULL && g->supply.refusal == FL_REFUSED_NODE &&
            fl_region_clear_node_unlocking(r, g->asked.len, wish->zone[i])) {
            e = take_in(r, g, wish->zone[i], false);
        }
    } while (e == NULL && g->supply.refusal == FL_REFUSED_NODE && ++i < wish->n);
    if (e == NULL && g->supply.refusal == FL_REFUSED_NODE &&
        !wish->strict) { /* as the kernel will have it */
        e = take_in(r, g, wish->zone[0], true);
    }
    return e;
}

/* The same; for a look the lock is released, and all is decided anew. NULL, and something wanted: a
 * loan comes first, and then the request begins anew, with what was seen. */
static struct fl_extent *take_looking(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    for (;;) {
        struct fl_extent *e = take_wished(r, g);
        bool looks = e == NULL && g->supply.refusal == FL_REFUSED_LOOK && g->asked.seen == NULL;
        if (!looks || !fl_look_unlocking(r)) {
            g->asked.seen = g->supply.wanted != 0 ? g->asked.seen : NULL;
            return e;
        }
        g->asked.seen = &r->look.noted;
    }
}

/* The first wished zone whose node has room for what touches will bring; NO_ZONE: none. Lock:
 * region; it is released where a node is cleared. */
static unsigned zone_with_room(struct fl_region *r, size_t len, const struct fl_wish *wish)
{
    fl_assert(fl_region_is_locked(r));
    for (unsigned i = 0; i < wish->n; i++) {
        unsigned zone = wish->zone[i];
        if (has_room_for(r, zone, len) ||
            (fl_region_clear_node_unlocking(r, fl_min(len, LAZY_FROM_HUGE * fl_page.huge), zone) &&
             has_room_for(r, zone, len))) {
            return zone;
        }
    }
    return NO_ZONE;
}

/* Where memory is short, what is free here goes back to the kernel first and the request is tried
 * once more. Then, or where the request is larger than one may have unasked, it is handed out for
 * the kernel to fill on touch: a large one in huge pages, a smaller one in base pages, which take
 * no more than what is touched. Under FAULTLESS_LIMIT a smaller one is left to the next
 * allocator. */
static struct fl_extent *take_refused(struct fl_region *r, struct fl_fill_plan *g)
{
    const struct fl_wish *wish = g->asked.wish;
    size_t len = g->asked.len;

    fl_assert(fl_region_is_locked(r));
    if (g->supply.refusal == FL_REFUSED_MEMORY && fl_region_free(r).bytes >= fl_page.huge) {
        fl_region_unlock(r);
        size_t given = fl_region_purge_some(r, 0, len + 2 * fl_page.huge);
        fl_region_lock(r);
        struct fl_extent *e = given != 0 ? take_looking(r, g) : NULL;
        if (e != NULL || g->supply.wanted != 0) {
            return e;
        }
    }
    if (fl_refusal_puts_off(g->supply.refusal)) { /* another thread forks */
        return NULL;
    }
    unsigned zone = zone_with_room(r, len, wish);
    if (zone == NO_ZONE && wish->strict) {
        g->supply.refusal = FL_REFUSED_NODE;
        return NULL;
    }
    zone = zone == NO_ZONE ? wish->zone[0] : zone;
    if (len >= LAZY_FROM_HUGE * fl_page.huge) {
        return fl_take_lazy(r, len, g->asked.align, zone, r->config.wait_for_touch);
    }
    enum fl_refusal refusal = g->supply.refusal;
    if (refusal == FL_REFUSED_MEMORY) {
        return NULL;
    }
    fl_fill_again(g);
    g->supply.refusal = refusal;
    g->asked.on_touch = true;
    g->asked.zone = (uint8_t)zone;
    return grow(r, g);
}

/* Neither addresses, maps nor memory are to be had: what others hold in vain may be enough. */
static bool others_gave(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    fl_region_unlock(r);
    size_t given = fl_region_release_more(r);
    fl_region_lock(r);
    return given != 0;
}

static _Thread_local bool is_bound;

bool fl_region_is_bound(void)
{
    return is_bound;
}

/* Lock: region. */
static void note_taken(struct fl_region *r, struct fl_extent *e, bool zero)
{
    fl_assert(fl_region_is_locked(r));
    r->stats.takes++;
    r->stats.take_bytes += e->len;
    fl_region_count_use(r, (int64_t)e->len);
    if (e->content == FL_CONTENT_LAZY && !r->clock.has_worker &&
        r->stats.in_use >= FL_WORKER_FROM) {
        atomic_store_explicit(&r->wants_worker, true,
                              memory_order_relaxed); /* it will be populated */
    }
    if (zero) {
        fl_rezero_earn(&r->rezero, e->len);
    }
    fl_watch_new(r, e);
}

/* Where it is to lie is decided without the lock. */
static FL_APART void begin_request(struct fl_region *r, struct fl_fill_plan *g,
                                   struct fl_cache *own, size_t len, size_t align, bool zero)
{
    static const struct fl_wish anywhere = {.n = 1};

    fl_fill_begin(g);
    g->asked = (struct fl_region_request){.own = own,
                                          .len = len,
                                          .align = align,
                                          .zero = zero,
                                          .wish = &anywhere,
                                          .site = FL_SITE_NONE};
    g->loan.tries = FL_LOANS;
    if (FL_UNLIKELY(r->zones.placing.nodes != 0)) {
        g->asked.site = fl_cache_wish(r, own, len, &g->wish);
        g->asked.wish = &g->wish;
    } else if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1) && len < FL_SHARDED_BELOW) {
        g->wish = (struct fl_wish){.n = 1, .zone = {(uint8_t)fl_shard_here(r, own)}};
        g->asked.wish = &g->wish;
    }
}

/* As planned; else from what others hold in vain, by touch, or not at all. Lock: region. */
static struct fl_extent *take_any(struct fl_region *r, struct fl_fill_plan *g)
{
    struct fl_extent *e = take_looking(r, g);
    bool may_grow = e == NULL && g->supply.wanted == 0 && !fl_sys_is_confined();

    if (may_grow &&
        (g->supply.refusal == FL_REFUSED_NOT || g->supply.refusal == FL_REFUSED_MEMORY) &&
        others_gave(r)) {
        g->loan = (struct fl_loan){.tries = 0};
        e = take_looking(r, g);
    }
    return e == NULL && may_grow && g->supply.refusal != FL_REFUSED_NOT &&
                   g->supply.refusal != FL_REFUSED_NODE
               ? take_refused(r, g)
               : e;
}

/* What is to be done for it; NULL: for none. No lock held. */
static FL_APART void fulfil(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *e)
{
    bool lazy = e != NULL && e->content == FL_CONTENT_LAZY;

    if (e != NULL && !lazy) {
        fl_fill_carry_out(r, g);
    } else if (lazy && (g->asked.wish->on_touch || r->zones.placing.nodes == 0) &&
               fl_touch_wants(r, e->len)) {
        fl_touch_arm(r, e);
    }
    if (FL_UNLIKELY(g->look)) {
        fl_look_after_take(r, lazy ? g->asked.len : 0);
    }
}

struct fl_extent *fl_take_long(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                               bool zero)
{
    struct fl_fill_plan *g = FL_FILL_PLAN();

    begin_request(r, g, own, len, align, zero);
    if (!fl_region_lock_unless_forking(r)) {
        fl_fill_return(g);
        return NULL;
    }
    struct fl_extent *e;
    while ((e = take_any(r, g)) == NULL && g->supply.wanted != 0) {
        fl_region_take_loan_unlocking(r, g); /* from here: it takes much of a small stack */
    }
    if (e != NULL) {
        note_taken(r, e, g->asked.zero);
        if (g->asked.own != NULL && FL_UNLIKELY(r->zones.placing.nodes != 0)) {
            fl_cache_settle(g->asked.own, g->asked.site, g->asked.wish->zone[0]);
        }
    } else {
        r->stats.refused++;
        is_bound = g->supply.refusal == FL_REFUSED_NODE;
    }
    bool tick = fl_tick_is_due(r), more = r->clock.ages_more;
    fl_region_unlock(r);
    fulfil(r, g, e);
    fl_fill_return(g);
    fl_tick_after(r, tick, more);
    return e;
}
