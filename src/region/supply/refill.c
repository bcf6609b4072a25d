/* How full the huge-page reserve is, and who fills it: the mechanism is pages/reserve.h.
 *
 * Filled ahead of demand: what recent requests needed from the kernel, and will touch by what is
 * known, is the goal, within a sixty-fourth of the peak (or FAULTLESS_STOCK) and within what may be
 * held at all. Below half of the goal the worker is called. The dirty counterpart of the reserve is
 * every free extent's huge pages, oldest first: see supply.c.
 * State: r->refill, under the region lock. */
#include "region/state/budget.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

enum { CAP_SHARE = 64, REST_NS = 100000000 };
static const size_t chunk_least = (size_t)128 << 20;
static const size_t touch_step = (size_t)8 << 20,
                    touch_least = (size_t)64 << 20; /* where first touches are served */

static size_t cap(const struct fl_region *r)
{
    size_t most = fl_max(r->pages.reserve.chunk_len, chunk_least) * FL_RESERVE_CHUNKS;
    size_t share = fl_max(r->held.in_use_peak / CAP_SHARE, r->config.first_touch ? touch_least : 0);

    fl_assert(fl_region_is_locked(r));
    return r->config.no_stock ? 0 : fl_min(r->config.stock != 0 ? r->config.stock : share, most);
}

/* Bytes that are ready for the zone. */
static size_t ready_of(const struct fl_region *r, const struct fl_zone *z)
{
    return r->pages.reserve.ready_of[z - r->zones.of];
}

/* High watermark, bytes. */
static size_t goal(const struct fl_region *r)
{
    size_t allowed = fl_supply_allowed(r, 0), others = fl_region_counted(r) - r->pages.reserve.held;
    size_t room = r->config.stock != 0 || r->config.first_touch ? SIZE_MAX
                  : allowed > others                            ? allowed - others
                                                                : 0;

    fl_assert(fl_region_is_locked(r));
    if (!fl_region_moves_pages(r) ||
        atomic_load_explicit(&r->pages.move.unproven, memory_order_relaxed) ||
        r->space.window.reserved || fl_region_is_scarce(r) || fl_region_is_tight(r)) {
        return 0;
    }
    return fl_align_down(fl_min(fl_min(cap(r), r->refill.demand), room), fl_page.huge);
}

/* What of the goal is the zone's, by its share of what was wanted. */
static size_t goal_of(const struct fl_region *r, const struct fl_zone *z)
{
    size_t all = goal(r), sum = fl_max(r->refill.demand / fl_page.huge, 1);

    fl_assert(fl_region_is_locked(r));
    if (r->zones.placing.nodes == 0) {
        return all;
    }
    return fl_min(fl_align_up(all / sum * (z->demand / fl_page.huge), fl_page.huge), all);
}

void fl_refill_demand(struct fl_region *r, size_t bytes, unsigned zone)
{
    unsigned class = fl_zone_class(r, zone);
    struct fl_zone *z = &r->zones.of[class];

    fl_assert(fl_region_is_locked(r));
    if (!fl_placing_moves(&r->zones.placing, class)) {
        return;
    }
    r->refill.demand += bytes;
    z->demand += bytes;
    if (bytes != 0 && ready_of(r, z) < goal_of(r, z) / 2) {
        atomic_store_explicit(&r->wants_worker, true, memory_order_relaxed);
    }
}

/* What is held by the region changes with what the reserve holds. */
static void count_held(struct fl_region *r, size_t more)
{
    r->held.populated += more;
}

void fl_refill_take(struct fl_region *r, struct fl_fill_plan *g)
{
    size_t n = fl_reserve_take(&r->pages, g->supply.from_reserve, fl_zone_class(r, g->asked.zone),
                               g->todo.piece, &g->todo.npieces);

    fl_assert(fl_region_is_locked(r));
    count_held(r, -n);
}

void fl_refill_give_back(struct fl_region *r, const struct fl_todo *t)
{
    count_held(r, fl_reserve_give_back(&r->pages, t->piece, t->npieces));
}

static bool claim_span(struct fl_region *r)
{
    struct fl_reserve *s = &r->pages.reserve;

    fl_assert(!fl_region_is_locked(r));
    if (s->chunk_len == 0) { /* which the worker alone changes */
        struct fl_vspace span;
        size_t wanted = fl_max(r->config.stock, r->pressure.total / 8) / FL_RESERVE_CHUNKS;
        size_t chunk_len = fl_max(fl_align_up(wanted, fl_page.huge), chunk_least);
        bool claimed = fl_vspace_claim(&span, chunk_len * FL_RESERVE_CHUNKS, fl_page.huge,
                                       fl_range_end(r->space.descriptors.span.all) +
                                           fl_holes_table_len(r->space.window.all.len),
                                       "faultless:stock") == 0;
        fl_region_lock(r);
        if (claimed) {
            s->span = span;
        }
        r->config.no_stock = !claimed;
        s->chunk_len = chunk_len;
        fl_region_unlock(r);
    }
    return !r->config.no_stock;
}

/* An empty chunk to put up to `want` bytes into, isolated; NULL: none, or the memory is better left
 * alone. */
static struct fl_reserve_chunk *claim_empty(struct fl_region *r, size_t *want, unsigned zone)
{
    size_t limit = r->config.limit;

    fl_assert(fl_region_is_locked(r));
    *want = fl_min(*want, r->pages.reserve.chunk_len);
    if (*want == 0 || (limit != 0 && fl_region_counted(r) + *want > limit)) {
        return NULL;
    }
    struct fl_reserve_chunk *c = fl_reserve_claim(&r->pages, *want, zone);
    count_held(r, c != NULL ? *want : 0);
    return c;
}

static void fill_one(struct fl_region *r, struct fl_reserve_chunk *c, size_t want)
{
    fl_assert(fl_region_is_locked(r));
    fl_unsettled_begin();
    fl_region_unlock(r);
    if (r->zones.placing.nodes != 0) {
        r->zones.placing.fill_begin(c->zone);
    }
    size_t there = fl_reserve_fill(&r->pages, c, want);
    if (r->zones.placing.nodes != 0) {
        r->zones.placing.fill_end();
    }
    __atomic_fetch_add(&r->stats.populate_bytes, there, __ATOMIC_RELAXED);
    fl_region_lock(r);
    fl_unsettled_end();
    fl_reserve_filled(&r->pages, c, want, there, fl_region_epoch(r));
    count_held(r, -(want - there));
}

/* The zone that is furthest from its goal; NULL: none wants any. */
static struct fl_zone *neediest(struct fl_region *r)
{
    struct fl_zone *best = NULL;
    size_t most = 0;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_zone *z = r->zones.of; z < r->zones.of + fl_max(r->zones.placing.nodes, 1);
         z++) {
        size_t high = goal_of(r, z);
        size_t demand = r->zones.placing.nodes == 0 ? r->refill.demand : z->demand;
        bool wanted = demand != 0 && ready_of(r, z) < (r->refill.filling ? high : high / 2);
        if (wanted && high - ready_of(r, z) > most) {
            best = z;
            most = high - ready_of(r, z);
        }
    }
    return best;
}

/* Bytes that the memory leaves for what was not asked for; none under limits that count maps. No
 * lock held: a delay of this thread in a system call must not delay others. */
static size_t room_for_stock(struct fl_region *r, const struct fl_zone *z)
{
    struct fl_memory m;

    if (r->zones.placing.nodes != 0) {
        r->zones.placing.look((unsigned)(z - r->zones.of));
    }
    fl_memory_look(&m, &r->look.worker_scratch);
    bool may = m.keep == UINT64_MAX && !fl_populate_backs_off(&r->pages) &&
               fl_sys.now_ns() >= r->pages.reserve.pause_until_ns;
    return may && claim_span(r) ? m.eager : 0;
}

static void halve_demand(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    r->refill.demand = fl_align_down(r->refill.demand / 2, fl_page.huge);
    for (struct fl_zone *z = r->zones.of; z < r->zones.of + fl_max(r->zones.placing.nodes, 1);
         z++) {
        z->demand = fl_align_down(z->demand / 2, fl_page.huge);
    }
}

static bool has_room(struct fl_region *r, const struct fl_zone *z)
{
    return r->zones.placing.nodes == 0 ||
           r->zones.placing.has_room((unsigned)(z - r->zones.of), goal_of(r, z) - ready_of(r, z));
}

/* One chunk a run, so that first touches do not wait for all of it. */
uint64_t fl_region_refill(struct fl_region *r)
{
    bool more = false;

    fl_region_lock(r);
    const struct fl_zone *wanted = neediest(r);
    fl_region_unlock(r);
    size_t room = wanted != NULL ? room_for_stock(r, wanted) : 0;
    fl_region_lock(r);
    struct fl_zone *z = neediest(r);
    bool another = z != NULL && z != wanted; /* its node was not looked at */
    if (z != NULL && !another && room != 0 && has_room(r, z)) {
        size_t goal = goal_of(r, z); /* 0 where pages have just been found not to move */
        size_t want =
            fl_min(goal - fl_min(goal, ready_of(r, z)), fl_align_down(room, fl_page.huge));
        want = fl_min(want, r->config.first_touch ? touch_step : SIZE_MAX);
        struct fl_reserve_chunk *c = claim_empty(r, &want, (unsigned)(z - r->zones.of));
        if (c != NULL) {
            fill_one(r, c, want);
            more = c->ready != 0 && (ready_of(r, z) < goal_of(r, z) || neediest(r) != NULL);
        }
    }
    more = more || another;
    r->refill.filling = more;
    if (!more) {
        halve_demand(r);
    }
    bool later = r->refill.demand != 0;
    fl_region_unlock(r);
    return more ? 0 : later ? REST_NS : UINT64_MAX;
}

/* May `len` bytes more be held for the zone, and is there nothing of it? As
 * fl_region_may_populate. */
static enum fl_refusal may_hold(struct fl_region *r, size_t len, unsigned zone,
                                const struct fl_memory *seen)
{
    bool may = r->pages.reserve.ready_of[zone] == 0 && !r->space.window.reserved &&
               (r->zones.placing.nodes == 0 || r->zones.placing.has_room(zone, len));

    fl_assert(fl_region_is_locked(r));
    return may ? fl_region_may_populate(r, len, len, seen) : FL_REFUSED_MEMORY;
}

static struct fl_reserve_chunk *claim_now(struct fl_region *r, size_t len, unsigned zone)
{
    enum fl_refusal why = may_hold(r, len, zone, NULL);
    size_t want = len;

    fl_assert(fl_region_is_locked(r));
    if (why == FL_REFUSED_LOOK && fl_look_unlocking(r)) {
        why = may_hold(r, len, zone, &r->look.noted);
    }
    return why == FL_REFUSED_NOT ? claim_empty(r, &want, zone) : NULL;
}

bool fl_region_fill_now(struct fl_region *r, size_t len, unsigned zone)
{
    bool there = false;

    zone = fl_zone_class(r, zone);
    if (!claim_span(r)) {
        return false;
    }
    if (r->zones.placing.nodes != 0) {
        r->zones.placing.look(zone);
    }
    fl_region_lock(r);
    struct fl_reserve_chunk *c = claim_now(r, len, zone);
    if (c != NULL) {
        fill_one(r, c, len);
        there = c->ready == len;
    }
    fl_region_unlock(r);
    return there;
}

/* The chunk's pages go back; the lock is released meanwhile. Returns bytes. */
static size_t empty_chunk(struct fl_region *r, struct fl_reserve_chunk *c)
{
    size_t had = fl_reserve_empty_begin(&r->pages, c);

    fl_assert(fl_region_is_locked(r));
    fl_unsettled_begin();
    fl_region_unlock(r);
    bool gone = fl_reserve_empty(&r->pages, c);
    fl_region_lock(r);
    fl_unsettled_end();
    size_t given = fl_reserve_empty_end(&r->pages, c, had, gone);
    count_held(r, -given);
    r->stats.purge_bytes += given;
    return given;
}

size_t fl_refill_release_unlocking(struct fl_region *r, uint32_t age)
{
    struct fl_reserve_chunk *c = r->pages.reserve.chunk;
    size_t given = 0;

    for (unsigned i = 0; i < FL_RESERVE_CHUNKS; i++, c++) {
        if (fl_reserve_may_empty(c, age, fl_region_epoch(r))) {
            given += empty_chunk(r, c);
        }
    }
    return given;
}

void fl_refill_fork_child(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    count_held(r, -fl_reserve_fork_child(&r->pages.reserve));
    r->refill.demand = 0;
    FL_EACH_ZONE(r, z)
    {
        z->demand = 0;
    }
}
