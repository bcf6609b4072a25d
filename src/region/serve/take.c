/* A request: one zone after the other, with a look at the memory or a loan where that may help;
 * else by touch, else the next allocator. */
#include "region/serve/shard.h"
#include "region/state/counts.h"
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"
#include "region/back/purge.h"
#include "region/supply/supply.h"
#include "region/serve/take.h"
#include "region/state/tick.h"

enum { NO_ZONE = 255 };

/* In that zone, as if nothing had been planned yet. */
static struct fl_extent *take_in(struct fl_region *r, struct fl_fill_plan *g, unsigned zone,
                                 bool any_room)
{
    fl_assert(fl_region_is_locked(r));
    fl_fill_again(g);
    g->asked.zone = (uint8_t)zone;
    g->asked.any_room = any_room;
    g->asked.on_touch = false;
    return fl_take_in_zone_unlocking(r, g);
}

/* One zone after the other, while it is its node that has no room. */
static struct fl_extent *take_listed(struct fl_region *r, struct fl_fill_plan *g)
{
    const struct fl_zonelist *zonelist = g->asked.zonelist;
    struct fl_extent *e = NULL;
    unsigned i = 0;

    fl_assert(fl_region_is_locked(r));
    do {
        e = take_in(r, g, zonelist->zone[i], false);
        if (e == NULL && g->supply.refusal == FL_REFUSED_NODE &&
            fl_region_clear_node_unlocking(r, g->asked.len, zonelist->zone[i])) {
            e = take_in(r, g, zonelist->zone[i], false);
        }
    } while (e == NULL && g->supply.refusal == FL_REFUSED_NODE && ++i < zonelist->n);
    if (e == NULL && g->supply.refusal == FL_REFUSED_NODE &&
        !zonelist->strict) { /* as the kernel will have it */
        e = take_in(r, g, zonelist->zone[0], true);
    }
    return e;
}

/* The same; for a look the lock is released, and all is decided anew. NULL, and something wanted: a
 * loan comes first, and then the request begins anew, with what was seen. */
static struct fl_extent *take_looking(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    for (;;) {
        struct fl_extent *e = take_listed(r, g);
        bool looks = e == NULL && g->supply.refusal == FL_REFUSED_LOOK && g->asked.seen == NULL;
        if (!looks || !fl_look_unlocking(r)) {
            g->asked.seen = g->supply.wanted != 0 ? g->asked.seen : NULL;
            return e;
        }
        g->asked.seen = &r->look.noted;
    }
}

/* The first zone of the list whose node has room for what touches will bring; NO_ZONE: none. Lock:
 * region; it is released where a node is cleared. */
static unsigned zone_with_room(struct fl_region *r, size_t len, const struct fl_zonelist *zonelist)
{
    fl_assert(fl_region_is_locked(r));
    for (unsigned i = 0; i < zonelist->n; i++) {
        unsigned zone = zonelist->zone[i];
        if (fl_take_has_room(r, zone, len) ||
            (fl_region_clear_node_unlocking(r, fl_min(len, FL_LAZY_FROM_HUGE * fl_page.huge),
                                            zone) &&
             fl_take_has_room(r, zone, len))) {
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
    const struct fl_zonelist *zonelist = g->asked.zonelist;
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
    unsigned zone = zone_with_room(r, len, zonelist);
    if (zone == NO_ZONE && zonelist->strict) {
        g->supply.refusal = FL_REFUSED_NODE;
        return NULL;
    }
    zone = zone == NO_ZONE ? zonelist->zone[0] : zone;
    if (len >= FL_LAZY_FROM_HUGE * fl_page.huge) {
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
    return fl_take_grown_unlocking(r, g);
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
static void note_taken(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    r->stats.takes++;
    r->stats.take_bytes += e->len;
    fl_region_count_use(r, (int64_t)e->len);
    if (e->content == FL_CONTENT_LAZY && !r->clock.has_worker && r->held.in_use >= FL_WORKER_FROM) {
        atomic_store_explicit(&r->wants_worker, true,
                              memory_order_relaxed); /* it will be populated */
    }
    fl_watch_new(r, e);
}

/* Where it is to lie is decided without the lock. */
static FL_APART void begin_request(struct fl_region *r, struct fl_fill_plan *g,
                                   struct fl_cache *own, size_t len, size_t align, bool zero)
{
    static const struct fl_zonelist anywhere = {.n = 1};

    fl_fill_begin(g);
    g->asked = (struct fl_region_request){.own = own,
                                          .len = len,
                                          .align = align,
                                          .zero = zero,
                                          .zonelist = &anywhere,
                                          .site = FL_SITE_NONE};
    g->loan.tries = FL_LOANS;
    if (FL_UNLIKELY(r->zones.placing.nodes != 0)) {
        g->asked.site = fl_cache_zonelist(r, own, len, &g->zonelist);
        g->asked.zonelist = &g->zonelist;
    } else if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1) && len < FL_SHARDED_BELOW) {
        g->zonelist = (struct fl_zonelist){.n = 1, .zone = {(uint8_t)fl_shard_here(r, own)}};
        g->asked.zonelist = &g->zonelist;
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
    } else if (lazy && (g->asked.zonelist->on_touch || r->zones.placing.nodes == 0) &&
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
        note_taken(r, e);
        if (g->asked.own != NULL && FL_UNLIKELY(r->zones.placing.nodes != 0)) {
            fl_cache_settle(g->asked.own, g->asked.site, g->asked.zonelist->zone[0]);
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
