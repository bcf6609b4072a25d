/* The stock: huge pages that are populated, zero, and under no extent. Requests take them by a move; the worker refills.
 *
 * Filled ahead of demand: what recent requests needed from the kernel, and will touch by what is
 * known, is the goal, within a sixty-fourth of the peak (or FAULTLESS_STOCK) and within what may be
 * held at all. Below half of the goal the worker is called. The dirty counterpart of the stock is
 * every free extent's huge pages, oldest first: see supply.c.
 * State: r->stock, under the region lock. A chunk is being filled or emptied by one thread (`apart`), or it is taken from;
 * bytes below `ready` are there. Children of fork have none of it, and core dumps neither.
 * S1  stock.held == sum of held over chunks; held >= ready.  S2  a chunk with `moving` takers is not refilled. */
#include "region/internal.h"

#include <errno.h>

enum { CAP_SHARE = 64, REST_NS = 100000000 };
static const size_t chunk_least = (size_t)128 << 20;
static const size_t touch_step = (size_t)8 << 20,
                    touch_least = (size_t)64 << 20; /* where first touches are served */
/* bytes: some 0.1 ms, for which whoever maps or forks waits; and in which helpers share */
static const size_t fill_step = (size_t)2 << 20, share_from = (size_t)1 << 30;
/* ns that a huge page may take, and ns to wait when it takes longer */
static const uint64_t slow_huge_ns = 2000000, pause_ns = 1000000000;

/* What is expected, and was not asked for yet. */
static size_t ahead(const struct fl_region *r)
{
    return r->stock.expected - fl_min(r->stock.expected, r->stats.in_use_peak);
}

void fl_region_expect(struct fl_region *r, size_t bytes)
{
    unsigned zone = fl_zone_wish(r, fl_page.huge);

    fl_region_prove(r);
    if (!fl_zone_moves(r, zone)) { /* it comes from no stock */
        return;
    }
    fl_region_lock(r);
    r->stock.expected = fl_align_up(bytes, fl_page.huge);
    r->stock.demand = fl_max(r->stock.demand, r->stock.expected);
    r->zone[zone].demand = fl_max(r->zone[zone].demand, r->stock.expected);
    fl_region_unlock(r);
    atomic_store(&r->wants_worker, true);
}

static size_t cap(const struct fl_region *r)
{
    size_t most = fl_max(r->stock.chunk_len, chunk_least) * FL_STOCK_CHUNKS;
    size_t share =
        fl_max(r->stats.in_use_peak / CAP_SHARE, r->config.first_touch ? touch_least : 0);
    size_t wish = fl_max(r->config.stock != 0 ? r->config.stock : share, ahead(r));

    return r->config.no_stock ? 0 : fl_min(wish, most);
}

/* High watermark, bytes. */
static size_t goal(const struct fl_region *r)
{
    size_t allowed = fl_supply_allowed(r, 0), others = fl_region_counted(r) - r->stock.held;
    size_t room = ahead(r) != 0 || r->config.stock != 0 || r->config.first_touch ? SIZE_MAX
                  : allowed > others                                             ? allowed - others
                                                                                 : 0;

    if (atomic_load_explicit(&r->rung, memory_order_relaxed) == FL_RUNG_PLAIN ||
        atomic_load_explicit(&r->unproven, memory_order_relaxed) || r->window.reserved ||
        atomic_load_explicit(&r->tight, memory_order_relaxed)) {
        return 0;
    }
    return fl_align_down(fl_min(fl_min(cap(r), r->stock.demand), room), fl_page.huge);
}

/* What of the goal is the zone's, by its share of what was wanted. */
static size_t goal_of(const struct fl_region *r, const struct fl_zone *z)
{
    size_t all = goal(r), sum = fl_max(r->stock.demand / fl_page.huge, 1);

    if (r->placing.nodes == 0) {
        return all;
    }
    return fl_min(fl_align_up(all / sum * (z->demand / fl_page.huge), fl_page.huge), all);
}

void fl_stock_demand(struct fl_region *r, size_t bytes, unsigned zone)
{
    struct fl_zone *z = &r->zone[zone];

    if (!fl_zone_moves(r, zone)) {
        return;
    }
    r->stock.demand += bytes;
    z->demand += bytes;
    if (bytes != 0 && z->stock_ready < goal_of(r, z) / 2) {
        atomic_store_explicit(&r->wants_worker, true, memory_order_relaxed);
    }
}

void fl_stock_take(struct fl_region *r, struct fl_grant *g)
{
    struct fl_stock *s = &r->stock;
    size_t want = g->from_stock;

    for (unsigned i = 0; i < FL_STOCK_CHUNKS && want != 0 && g->npieces < FL_GRANT_PIECES; i++) {
        struct fl_stock_chunk *c = &s->chunk[i];
        size_t n = fl_min(want, c->ready);
        if (c->apart || n == 0 || c->zone != g->zone) {
            continue;
        }
        c->ready -= n;
        c->held -= n;
        c->moving++;
        fl_unsettled_begin();
        s->ready -= n;
        r->zone[c->zone].stock_ready -= n;
        s->held -= n;
        r->populated_bytes -= n;
        want -= n;
        uintptr_t base = s->span.all.base + i * s->chunk_len + c->ready;
        g->piece[g->npieces++] = (struct fl_stock_piece){{base, n}, 0, i};
    }
}

static struct fl_range chunk_range(const struct fl_region *r, const struct fl_stock_chunk *c)
{
    size_t i = (size_t)(c - r->stock.chunk);

    return (struct fl_range){r->stock.span.all.base + i * r->stock.chunk_len, r->stock.chunk_len};
}

static struct fl_range mapped_range(const struct fl_region *r, const struct fl_stock_chunk *c)
{
    return (struct fl_range){chunk_range(r, c).base, c->mapped};
}

/* What did not move at all is stock again, if it lies where the chunk's ready bytes end. */
static bool put_back(struct fl_region *r, struct fl_stock_chunk *c, struct fl_range piece)
{
    if (c->apart || chunk_range(r, c).base + c->ready != piece.base) {
        return false;
    }
    c->ready += piece.len;
    c->held += piece.len;
    r->stock.ready += piece.len;
    r->zone[c->zone].stock_ready += piece.len;
    r->stock.held += piece.len;
    r->populated_bytes += piece.len;
    return true;
}

void fl_stock_return(struct fl_region *r, const struct fl_grant *g)
{
    bool by_remap = atomic_load_explicit(&r->rung, memory_order_relaxed) != FL_RUNG_MOVE;

    for (unsigned i = 0; i < g->npieces; i++) {
        const struct fl_stock_piece *p = &g->piece[i];
        struct fl_stock_chunk *c = &r->stock.chunk[p->chunk];
        c->moving--;
        fl_unsettled_end();
        if (p->moved != 0 || !put_back(r, c, p->range)) {
            /* mremap took the map along, and all that it was told */
            c->holed |= p->moved < p->range.len || by_remap;
        }
    }
}

static bool claim_span(struct fl_region *r)
{
    struct fl_stock *s = &r->stock;

    if (s->chunk_len == 0) { /* which nobody but the worker changes */
        struct fl_vspace span;
        size_t wish = fl_max(r->config.stock, r->memory_total / 8) / FL_STOCK_CHUNKS;
        size_t chunk_len = fl_max(fl_align_up(wish, fl_page.huge), chunk_least);
        bool claimed = fl_vspace_claim(&span, chunk_len * FL_STOCK_CHUNKS, fl_page.huge,
                                       fl_range_end(r->descriptors.all) +
                                           fl_holes_table_len(r->window.all.len),
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

/* An empty chunk to put up to `want` bytes into, apart; NULL: none, or the memory is better left alone. */
static struct fl_stock_chunk *claim_empty(struct fl_region *r, size_t *want, unsigned zone)
{
    for (struct fl_stock_chunk *c = r->stock.chunk; c < r->stock.chunk + FL_STOCK_CHUNKS; c++) {
        if (c->apart || c->ready != 0 || c->moving != 0) {
            continue;
        }
        *want = fl_min(*want, r->stock.chunk_len);
        size_t limit = r->config.limit;
        if (*want == 0 || (limit != 0 && fl_region_counted(r) + *want > limit)) {
            return NULL;
        }
        c->apart = true;
        c->holed |= c->zone != zone && c->mapped != 0; /* mapped for another */
        c->zone = (uint8_t)zone;
        c->held = *want;
        r->stock.held += *want;
        r->populated_bytes += *want;
        return c;
    }
    return NULL;
}

void fl_stock_advise(struct fl_range range)
{
    (void)fl_sys.advise(range, FL_ADVICE_NO_FORK);
    (void)fl_sys.advise(range, FL_ADVICE_NO_DUMP);
}

/* No more than is wanted: after mlockall(MCL_FUTURE) all that is mapped is in memory. */
static bool map_upto(struct fl_region *r, struct fl_stock_chunk *c, size_t want)
{
    struct fl_range more = {chunk_range(r, c).base + c->mapped,
                            want > c->mapped ? want - c->mapped : 0};

    if (more.len == 0) {
        return true;
    }
    if (fl_vspace_commit(&r->stock.span, more, r->config.huge) != 0) {
        return false;
    }
    fl_zone_mapped(r, more, c->zone);
    fl_stock_advise(more);
    c->mapped = want;
    return true;
}

/* Whoever maps or forks waits while the kernel fills: when it has to search for huge pages, the stock can wait. */
static size_t fill_steps(struct fl_region *r, struct fl_range all)
{
    size_t done = 0, step = all.len >= share_from ? all.len : fill_step;

    while (done < all.len) {
        struct fl_range piece = {all.base + done, fl_min(step, all.len - done)};
        uint64_t began = fl_sys.now_ns();
        fl_repair_bring(r, piece);
        if (fl_supply_populate(r, piece, fill_step) != 0) {
            break;
        }
        done += piece.len;
        uint64_t now = fl_sys.now_ns();
        if (now - began > (piece.len / fl_page.huge + 1) * slow_huge_ns) {
            r->stock.pause_until_ns = now + pause_ns;
            break;
        }
    }
    return done;
}

/* Not under the lock; the chunk is apart. Returns bytes that are there now. */
static size_t fill(struct fl_region *r, struct fl_stock_chunk *c, size_t want)
{
    struct fl_range all = chunk_range(r, c);

    if (c->holed && fl_vspace_decommit(&r->stock.span, mapped_range(r, c)) == 0) {
        c->holed = false;
        c->mapped = 0;
    }
    if (!map_upto(r, c, want)) {
        return 0;
    }
    return c->holed ? 0 : fill_steps(r, (struct fl_range){all.base, want});
}

static void fill_one(struct fl_region *r, struct fl_stock_chunk *c, size_t want)
{
    fl_unsettled_begin();
    fl_region_unlock(r);
    if (r->placing.nodes != 0) {
        r->placing.fill_begin(c->zone);
    }
    size_t there = fill(r, c, want);
    if (r->placing.nodes != 0) {
        r->placing.fill_end();
    }
    __atomic_fetch_add(&r->stats.populate_bytes, there, __ATOMIC_RELAXED);
    fl_region_lock(r);
    fl_unsettled_end();
    c->apart = false;
    c->ready = there;
    c->held -= want - there;
    r->stock.held -= want - there;
    r->populated_bytes -= want - there;
    r->stock.ready += there;
    r->zone[c->zone].stock_ready += there;
    atomic_store_explicit(&c->epoch, atomic_load_explicit(&r->epoch, memory_order_relaxed),
                          memory_order_relaxed);
}

/* The zone that is furthest from its goal; NULL: none wants any. */
static struct fl_zone *neediest(struct fl_region *r)
{
    struct fl_zone *best = NULL;
    size_t most = 0;

    for (struct fl_zone *z = r->zone; z < r->zone + fl_max(r->placing.nodes, 1); z++) {
        size_t high = goal_of(r, z);
        size_t demand = r->placing.nodes == 0 ? r->stock.demand : z->demand;
        bool wanted = demand != 0 && z->stock_ready < (r->stock.filling ? high : high / 2);
        if (wanted && high - z->stock_ready > most) {
            best = z;
            most = high - z->stock_ready;
        }
    }
    return best;
}

/* Bytes that the memory leaves for what nobody asked for; none under limits that count maps. No lock held: whoever holds this
 * thread up in a system call must not hold up others. */
static size_t room_for_stock(struct fl_region *r, const struct fl_zone *z)
{
    struct fl_memory m;

    if (r->placing.nodes != 0) {
        r->placing.look((unsigned)(z - r->zone));
    }
    fl_memory_look(&m, &r->worker_scratch);
    bool may = m.keep == UINT64_MAX && !fl_supply_is_crawling(r) &&
               fl_sys.now_ns() >= r->stock.pause_until_ns;
    return may && claim_span(r) ? m.eager : 0;
}

static void halve_demand(struct fl_region *r)
{
    r->stock.demand = fl_align_down(r->stock.demand / 2, fl_page.huge);
    for (struct fl_zone *z = r->zone; z < r->zone + fl_max(r->placing.nodes, 1); z++) {
        z->demand = fl_align_down(z->demand / 2, fl_page.huge);
    }
}

static bool has_room(struct fl_region *r, const struct fl_zone *z)
{
    return r->placing.nodes == 0 ||
           r->placing.has_room((unsigned)(z - r->zone), goal_of(r, z) - z->stock_ready);
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
        size_t want = fl_min(goal_of(r, z) - z->stock_ready, fl_align_down(room, fl_page.huge));
        want = fl_min(want, r->config.first_touch ? touch_step : SIZE_MAX);
        struct fl_stock_chunk *c = claim_empty(r, &want, (unsigned)(z - r->zone));
        if (c != NULL) {
            fill_one(r, c, want);
            more = c->ready != 0 && (z->stock_ready < goal_of(r, z) || neediest(r) != NULL);
        }
    }
    more = more || another;
    r->stock.filling = more;
    if (!more) {
        halve_demand(r);
    }
    bool later = r->stock.demand != 0;
    fl_region_unlock(r);
    return more ? 0 : later ? REST_NS : UINT64_MAX;
}

/* May `len` bytes more be held for the zone, and is there nothing of it? 0, or why not: as
 * fl_region_may_populate. */
static int may_hold(struct fl_region *r, size_t len, unsigned zone, const struct fl_memory *seen)
{
    bool may = r->zone[zone].stock_ready == 0 && !r->window.reserved &&
               (r->placing.nodes == 0 || r->placing.has_room(zone, len));

    return may ? fl_region_may_populate(r, len, len, seen) : -ENOMEM;
}

static struct fl_stock_chunk *claim_now(struct fl_region *r, size_t len, unsigned zone)
{
    struct fl_memory seen;
    int refusal = may_hold(r, len, zone, NULL);
    size_t want = len;

    if (refusal == -EBUSY && fl_look_leaving_lock(r, &seen)) {
        refusal = may_hold(r, len, zone, &seen);
    }
    return refusal == 0 ? claim_empty(r, &want, zone) : NULL;
}

bool fl_region_fill_now(struct fl_region *r, size_t len, unsigned zone)
{
    bool there = false;

    if (!claim_span(r)) {
        return false;
    }
    if (r->placing.nodes != 0) {
        r->placing.look(zone);
    }
    fl_region_lock(r);
    struct fl_stock_chunk *c = claim_now(r, len, zone);
    if (c != NULL) {
        fill_one(r, c, len);
        there = c->ready == len;
    }
    fl_region_unlock(r);
    return there;
}

static bool is_aged(const struct fl_region *r, const struct fl_stock_chunk *c, uint32_t age)
{
    return atomic_load_explicit(&r->epoch, memory_order_relaxed) -
               atomic_load_explicit(&c->epoch, memory_order_relaxed) >=
           age;
}

/* The chunk's pages go back; the lock is released meanwhile. Returns bytes. */
static size_t empty_chunk(struct fl_region *r, struct fl_stock_chunk *c)
{
    size_t had = c->ready;

    c->apart = true;
    c->ready = 0;
    r->stock.ready -= had;
    r->zone[c->zone].stock_ready -= had;
    fl_unsettled_begin();
    fl_region_unlock(r);
    bool gone = fl_vspace_decommit(&r->stock.span, mapped_range(r, c)) == 0;
    fl_region_lock(r);
    fl_unsettled_end();
    c->apart = false;
    if (!gone) {
        c->ready = had;
        r->stock.ready += had;
        r->zone[c->zone].stock_ready += had;
        return 0;
    }
    c->mapped = 0;
    c->holed = false;
    c->held -= had;
    r->stock.held -= had;
    r->populated_bytes -= had;
    r->stats.purge_bytes += had;
    return had;
}

size_t fl_stock_release(struct fl_region *r, uint32_t age)
{
    size_t given = 0;

    for (struct fl_stock_chunk *c = r->stock.chunk; c < r->stock.chunk + FL_STOCK_CHUNKS; c++) {
        if (!c->apart && c->mapped != 0 && c->moving == 0 && is_aged(r, c, age)) {
            given += empty_chunk(r, c);
        }
    }
    return given;
}

bool fl_stock_is_mapped(const struct fl_region *r)
{
    const struct fl_stock_chunk *c = r->stock.chunk;

    while (c < r->stock.chunk + FL_STOCK_CHUNKS && c->held == 0 && c->mapped == 0) {
        c++;
    }
    return c < r->stock.chunk + FL_STOCK_CHUNKS;
}

struct fl_range fl_stock_mapped(const struct fl_region *r, unsigned i)
{
    return mapped_range(r, &r->stock.chunk[i]);
}

void fl_stock_fork_child(struct fl_region *r)
{
    for (struct fl_stock_chunk *c = r->stock.chunk; c < r->stock.chunk + FL_STOCK_CHUNKS; c++) {
        *c = (struct fl_stock_chunk){.mapped = 0};
    }
    r->populated_bytes -= r->stock.held;
    r->stock.ready = r->stock.held = r->stock.demand = 0;
    FL_EACH_ZONE(r, z)
    {
        z->stock_ready = z->demand = 0;
    }
}
