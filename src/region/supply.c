/* Where the pages of a request come from that takes EMPTY addresses: the stock, free extents elsewhere, or the kernel.
 *
 * What is held may exceed the most that was ever in use by a sixty-fourth. Up to that the kernel
 * gives new pages: they stay where they are, and a step that repeats finds them there. Beyond it
 * whole huge pages of free extents move: the oldest free ones, whatever their size. So nothing
 * fragments in huge pages, and shapes that vary cost no fault. What comes from the kernel may be
 * left to the first touch: see left.c. */
#include "region/internal.h"

#include <errno.h>
#include <string.h>

enum { SLACK_SHARE = 64, SHARE_HELPERS = 16 };
/* ns a huge page (the kernel clears one in 0.1 ms; the host of a virtual machine may need 4 to find it), and ns to go without. */
static const uint64_t crawl_from = 16000000, crawl_for = 1000000000;
/* ns; a thread that lost its processor for a while is no sign of it */
static const uint64_t crawl_least = 250000000;
static const size_t share_from = (size_t)128 << 20;    /* bytes: below it helpers do not pay */
static const size_t populate_piece = (size_t)32 << 20; /* bytes: some 1.5 ms */

bool fl_supply_is_full(const struct fl_region *r, size_t len, size_t fresh)
{
    return fl_region_counted(r) + fresh > fl_supply_allowed(r, len);
}

size_t fl_supply_allowed(const struct fl_region *r, size_t more)
{
    size_t peak = fl_max(r->stats.in_use_peak, r->stats.in_use + more);

    return peak + fl_max(peak / SLACK_SHARE, 2 * fl_page.huge);
}

static int may_populate(struct fl_region *r, const struct fl_grant *g, size_t len, size_t fresh)
{
    int rc = fl_region_may_populate(r, len, fresh, g->seen);

    if (rc == 0 && r->placing.nodes != 0 && !g->any_room && !r->placing.has_room(g->zone, fresh)) {
        fl_region_forgo(r, fresh);
        rc = -ENOSPC;
    }
    return rc;
}

int fl_supply_plan(struct fl_region *r, struct fl_grant *g, size_t len, size_t fresh, size_t own)
{
    const struct fl_zone *z = &r->zone[g->zone];
    bool can_move = atomic_load_explicit(&r->rung, memory_order_relaxed) != FL_RUNG_PLAIN &&
                    !fl_sys_is_confined() && fl_zone_moves(r, g->zone);
    bool may_lend = can_move && fl_grant_may_borrow(g) && fl_inner_has_memory(r, g->zone);
    bool full = g->to_stay || g->lent || may_lend || fl_supply_is_full(r, len, fresh);
    size_t donors = can_move && z->free_huge > own ? z->free_huge - own : 0;
    size_t stock = can_move && !may_lend ? z->stock_ready : 0; /* the worker would fill it anew */

    g->from_stock = full && !g->zero ? 0 : fl_min(stock, fresh);
    g->from_free = full ? fl_min(donors, fresh - g->from_stock) : 0;
    if (full && !g->zero) { /* what is clean is for calloc, but sooner used than more is held */
        g->from_stock = fl_min(stock, fresh - g->from_free);
    }
    size_t rest = fresh - g->from_stock - g->from_free;
    g->budgeted = 0;
    if (rest != 0 && may_lend) {
        g->wanted = rest;
        g->from_stock = g->from_free = 0;
        return -EBUSY;
    }
    int refusal = rest != 0 ? may_populate(r, g, len, rest) : 0;
    if (refusal == 0) {
        g->budgeted = rest;
    } else if (refusal == -EBUSY) { /* all is decided anew: nothing of this may be left */
        g->from_stock = g->from_free = 0;
    } else if (donors + stock >= fresh) {
        g->from_free = fl_min(donors, fresh);
        g->from_stock = fresh - g->from_free;
        refusal = 0;
    }
    g->leaves = g->budgeted != 0 && fl_left_wants(r, g, len);
    return refusal;
}

void fl_supply_cancel(struct fl_region *r, struct fl_grant *g)
{
    fl_region_forgo(r, g->budgeted);
    g->from_stock = g->from_free = g->budgeted = 0;
    g->leaves = false;
}

/* Will what is asked for be touched? Then the stock is to have as much the next time. */
static bool is_real(const struct fl_region *r, const struct fl_grant *g)
{
    return !r->config.wait_for_touch || g->to_stay || r->config.stock != 0 ||
           r->stock.expected > r->stats.in_use_peak ||
           (g->live.len >= fl_page.huge && fl_left_was_touched(r, g->live.len));
}

void fl_supply_claim(struct fl_region *r, struct fl_grant *g)
{
    struct fl_extent_list *by_age = &r->zone[g->zone].by_age;
    size_t want = g->from_free;

    fl_stock_take(r, g);
    bool fresh = g->nfresh != 0 || fl_carve_wants_map(g);
    g->filling = fresh && (!g->leaves || g->npieces != 0);
    if (g->filling) {
        atomic_fetch_add(&r->filling, 1);
    }
    if (is_real(r, g)) {
        fl_stock_demand(r, g->budgeted + g->from_stock, g->zone);
    }
    while (want >= fl_page.huge && !TAILQ_EMPTY(by_age) && fl_extent_reserve(&r->space, 2) == 0) {
        struct fl_extent *e = fl_apart_claim(r, TAILQ_FIRST(by_age), want);
        want -= e->len;
        r->leaving += e->len;
        g->hollow |= e->left != 0;
        e->next = g->donors;
        g->donors = e;
    }
}

/* In a child of fork(2) that a handler has made amid it nobody counts any more. */
static void end_filling(struct fl_region *r, struct fl_grant *g)
{
    size_t n = atomic_load(&r->filling);

    while (g->filling && n != 0 && !atomic_compare_exchange_weak(&r->filling, &n, n - 1)) {
    }
    g->filling = false;
}

static void return_donors(struct fl_region *r, struct fl_grant *g)
{
    for (struct fl_extent *e = g->donors, *next; e != NULL; e = next) {
        next = e->next;
        r->leaving -= e->len;
        fl_apart_return(r, e, e->spent);
    }
    g->donors = NULL;
}

void fl_supply_unclaim(struct fl_region *r, struct fl_grant *g)
{
    fl_stock_return(r, g);
    g->npieces = 0;
    return_donors(r, g);
    end_filling(r, g);
}

/* One write a base page: what kernels without MADV_POPULATE_WRITE leave. In the request's own part
 * alone: the rest may be another thread's block by now, which has made it unreadable. It must
 * change nothing: what has moved there is kept. */
static void populate_by_touch(struct fl_range range)
{
    for (uintptr_t p = range.base; p < fl_range_end(range); p += fl_page.base) {
        char none = 0;        /* a page that is not there reads as 0: then 0 is written */
        char *at = (char *)p; /* NOLINT(performance-no-int-to-ptr) */
        (void)__atomic_compare_exchange_n(at, &none, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* When one call began: by the clock, and by the processor's time that the thread had. */
struct pace {
    uint64_t now, own;
};

static struct pace begin_pace(const struct fl_region *r)
{
    return (struct pace){fl_sys.now_ns(), r->config.huge ? fl_sys.own_ns() : 0};
}

/* The kernel compacts memory to make a huge page, in the caller's time: it may take a second for one. Then base pages do
 * for a while, and the worker makes huge pages of them when nobody waits. No sign of it is time that
 * the thread spent without a processor. */
static void note_pace(struct fl_region *r, size_t len, struct pace began)
{
    uint64_t now = fl_sys.now_ns(), most = fl_max(len / fl_page.huge * crawl_from, crawl_least);

    if (r->config.huge && now - began.now > most && fl_sys.own_ns() - began.own > most / 2) {
        atomic_store_explicit(&r->crawl_until, now + crawl_for, memory_order_relaxed);
        __atomic_fetch_add(&r->stats.compactions, 1, __ATOMIC_RELAXED);
        atomic_store_explicit(&r->repair.wanted, true, memory_order_relaxed);
        atomic_store(&r->wants_worker, true);
    }
}

bool fl_supply_is_crawling(const struct fl_region *r)
{
    uint64_t until = atomic_load_explicit(&r->crawl_until, memory_order_relaxed);

    return until != 0 && fl_sys.now_ns() < until;
}

/*   own  the part of `range`, or more, that is surely nobody else's. */
static int populate_pieces(struct fl_region *r, struct fl_range range, struct fl_range own,
                           size_t step)
{
    int rc = 0;

    for (size_t done = 0; done < range.len && rc == 0; done += step) {
        struct fl_range piece = {range.base + done, fl_min(step, range.len - done)};
        struct pace began = begin_pace(r);
        rc = r->config.populate_by_touch ? -EINVAL : fl_sys.populate(piece);
        if (rc == -EINVAL || rc == -ENOSYS) {
            populate_by_touch(fl_range_common(piece, own));
            rc = 0;
        }
        note_pace(r, piece.len, began);
    }
    return rc;
}

/* In base pages, yet advised as before: so that the maps stay one, and the worker may collapse what is here. */
static int populate_base_pages(struct fl_region *r, struct fl_range range, struct fl_range own)
{
    (void)fl_sys.advise(range, FL_ADVICE_NO_HUGE);
    int rc = populate_pieces(r, range, own, populate_piece);
    (void)fl_sys.advise(range, FL_ADVICE_HUGE);
    return rc;
}

/* In pieces: while one is filled, whoever maps something waits for it, and with it whoever wants the region lock. */
static int populate_by(struct fl_region *r, struct fl_range range, struct fl_range own, size_t step,
                       unsigned helpers)
{
    int rc = 0;
    size_t done = 0;

    if (fl_supply_is_crawling(r)) {
        return populate_base_pages(r, range, own);
    }
    if (range.len >= share_from && !r->config.populate_by_touch) {
        struct pace began = begin_pace(r);
        rc = fl_sys.populate_shared(range, helpers);
        note_pace(r, range.len, began);
        if (rc != -EINVAL && rc != -ENOSYS) {
            return rc;
        }
        rc = 0;
    }
    for (; done < range.len && rc == 0 && !fl_supply_is_crawling(r); done += step) {
        struct fl_range piece = {range.base + done, fl_min(step, range.len - done)};
        rc = populate_pieces(r, piece, own, step);
    }
    if (done < range.len && rc == 0) {
        rc = populate_base_pages(r, (struct fl_range){range.base + done, range.len - done}, own);
    }
    return rc;
}

int fl_supply_populate(struct fl_region *r, struct fl_range range, size_t step)
{
    return populate_by(r, range, range, step, SHARE_HELPERS);
}

/* How far the fresh ranges of a grant are filled, in whole huge pages. */
struct filling {
    struct fl_grant *g;
    size_t done[FL_GRANT_FRESH]; /* bytes, from the start of each */
    unsigned i;                  /* the range that is being filled; nfresh: no more can be moved */
    bool open;
    struct fl_move move;
};

static void close_range(struct fl_region *r, struct filling *f)
{
    if (f->open) {
        fl_move_end(r, &f->move);
        f->open = false;
    }
    f->i++;
}

/* How much of the fresh range may be moved to. mremap puts another map there: only whole huge pages that are the
 * request's alone; the rest of such a page is free, or somebody's, by now. */
static size_t reach(const struct filling *f, struct fl_range to)
{
    struct fl_range own = fl_range_inner(fl_range_common(to, f->g->live), fl_page.huge);

    if (f->move.rung == FL_RUNG_MOVE) {
        return to.len;
    }
    return own.base == to.base ? own.len : 0;
}

/* Moves `from` to where the filling stands. Returns bytes moved, from its start. */
static size_t fill_from(struct fl_region *r, struct filling *f, struct fl_range from, bool hollow)
{
    size_t moved = 0;

    while (moved < from.len && f->i < f->g->nfresh) {
        struct fl_range to = f->g->fresh[f->i];
        size_t *done = &f->done[f->i];
        if (*done == to.len) {
            close_range(r, f);
            continue;
        }
        if (!f->open && !(f->open = fl_move_begin(r, &f->move, to, f->g->zone))) {
            f->i = f->g->nfresh;
            break;
        }
        size_t upto = reach(f, to);
        if (*done >= upto) {
            close_range(r, f);
            continue;
        }
        size_t piece = fl_min(from.len - moved, upto - *done);
        size_t n = (hollow ? fl_move_hollow : fl_move_pages)(
            r, &f->move, (struct fl_range){from.base + moved, piece}, to.base + *done);
        *done += fl_align_down(n, fl_page.huge);
        moved += n;
        if (n < piece) {
            break;
        }
    }
    return moved;
}

static void note_dirty(struct fl_grant *g, struct fl_range part)
{
    part = fl_range_common(part, g->live);
    if (part.len != 0) {
        g->dirty[g->ndirty++] = part;
    }
}

static void fill_by_moves(struct fl_region *r, struct filling *f)
{
    struct fl_grant *g = f->g;
    size_t clean[FL_GRANT_FRESH];

    for (unsigned i = 0; i < g->npieces; i++) {
        g->piece[i].moved = fill_from(r, f, g->piece[i].range, false);
    }
    memcpy(clean, f->done, sizeof clean);

    for (struct fl_extent *e = g->donors; e != NULL; e = e->next) {
        fl_advice_show_apart(e);
        e->spent = fill_from(r, f, fl_extent_range(e), e->left != 0) != 0;
    }
    close_range(r, f);
    /* The next huge page may have got part of one that is mapped by base pages. */
    for (unsigned i = 0; i < g->nfresh && g->donors != NULL; i++) {
        size_t upto = fl_min(f->done[i] + fl_page.huge, g->fresh[i].len);
        note_dirty(g, (struct fl_range){g->fresh[i].base + clean[i], upto - clean[i]});
    }
}

/* Bytes that did not move: they come from the kernel, beyond the plan. */
static size_t stuck_bytes(const struct fl_grant *g)
{
    size_t stuck = 0;

    for (unsigned i = 0; i < g->npieces; i++) {
        stuck += g->piece[i].range.len - g->piece[i].moved;
    }
    for (const struct fl_extent *e = g->donors; e != NULL; e = e->next) {
        stuck += e->spent ? 0 : e->len;
    }
    return stuck;
}

static bool is_too_much(struct fl_region *r, size_t more)
{
    struct fl_memory seen;

    fl_region_lock(r);
    int refusal = fl_region_may_populate(r, 0, more, NULL);
    if (refusal == -EBUSY && fl_look_leaving_lock(r, &seen)) {
        refusal = fl_region_may_populate(r, 0, more, &seen);
    }
    fl_region_unlock(r);
    return refusal != 0 && refusal != -EBUSY;
}

/* Sources without their pages leave no map behind. What the kernel did not let go stays free memory, if there is room for
 * it beside what comes instead; else it goes back. */
static void settle(struct fl_region *r, struct fl_grant *g)
{
    size_t stuck = stuck_bytes(g);
    bool too_much = stuck != 0 && is_too_much(r, stuck);

    for (struct fl_extent *e = g->donors; e != NULL; e = e->next) {
        e->spent =
            (e->spent || too_much) && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
    }
    fl_region_lock(r);
    fl_stock_return(r, g);
    for (struct fl_extent *e = g->donors; e != NULL; e = e->next) {
        fl_advice_note_shown(e);
    }
    return_donors(r, g);
    if (too_much) {
        (void)fl_stock_release(r, 0);
    }
    fl_region_unlock(r);
}

static void populate_rest(struct fl_region *r, const struct filling *f)
{
    /* When tight the kernel may have taken what moved; what is to stay waits for no touch. */
    bool all =
        atomic_load_explicit(&r->tight, memory_order_relaxed) || (f->g->to_stay && f->g->hollow);
    unsigned helpers = f->g->hands != 0 ? f->g->hands - 1u : SHARE_HELPERS;
    uint64_t from_ns = fl_timeline_now(), brought = 0;

    for (unsigned i = 0; i < f->g->nfresh; i++) {
        size_t done = all ? 0 : f->done[i];
        struct fl_range rest = {f->g->fresh[i].base + done, f->g->fresh[i].len - done};
        if (rest.len != 0) {
            int rc = populate_by(r, rest, f->g->live, populate_piece, helpers);
            __atomic_fetch_add(&r->stats.populate_bytes, rest.len, __ATOMIC_RELAXED);
            __atomic_fetch_add(&r->stats.populate_errors, rc != 0, __ATOMIC_RELAXED);
            brought += rest.len;
        }
    }
    fl_timeline_brought(from_ns, brought);
}

/* The first huge pages of `range` that are split, as far as it goes; len 0: there are none. No lock
 * held. */
static struct fl_range next_split(const struct fl_region *r, struct fl_range range)
{
    uintptr_t at = range.base, end = fl_range_end(range), from = end;

    for (bool split = false; at < end; at = fl_align_down(at, fl_page.huge) + fl_page.huge) {
        bool is = fl_holes_is_split(r, at);
        if (split && !is) {
            break;
        }
        from = is && !split ? at : from;
        split = is;
    }
    return (struct fl_range){from, fl_min(at, end) - from};
}

/* Holes in what was free, of the request's own part. Of huge pages that are not split nothing is
 * brought in. */
static void fill_holes(struct fl_region *r, const struct fl_grant *g)
{
    bool fills = g->holes != 0 && !g->leave_holes && !g->on_touch && !fl_sys_is_confined();
    struct fl_range rest = g->back, split;

    while (FL_UNLIKELY(fills) && (split = next_split(r, rest)).len != 0) {
        int rc = populate_pieces(r, split, g->live, populate_piece);
        __atomic_fetch_add(&r->stats.populate_errors, rc != 0, __ATOMIC_RELAXED);
        rest = (struct fl_range){fl_range_end(split), fl_range_end(rest) - fl_range_end(split)};
    }
    if (FL_UNLIKELY(fills)) {
        __atomic_fetch_add(&r->stats.populate_bytes, g->holes, __ATOMIC_RELAXED);
    }
}

bool fl_supply_is_coming(const struct fl_region *r)
{
    return atomic_load(&r->leaving) != 0 || atomic_load(&r->filling) != 0;
}

static void tell_once(struct fl_region *r)
{
    if (r->config.verbose && __atomic_load_n(&r->stats.compactions, __ATOMIC_RELAXED) != 0 &&
        !atomic_exchange(&r->crawl_said, true)) {
        fl_say("the kernel compacts memory for each huge page: base pages for a while");
    }
}

static void clear(struct fl_region *r, const struct fl_grant *g, struct fl_range part)
{
    if (g->hollow || g->leaves) {
        (void)fl_left_clear(r, part, fl_left_clear_plainly);
    } else {
        memset((void *)part.base, 0, part.len); /* NOLINT(performance-no-int-to-ptr) */
    }
}

static bool is_done(const struct fl_grant *g)
{
    return g->nfresh == 0 && g->npieces == 0 && g->nhidden == 0 && g->holes == 0 &&
           g->donors == NULL && !g->filling && !g->zero;
}

void fl_grant_fulfil(struct fl_region *r, struct fl_grant *g)
{
    if (is_done(g)) {
        return;
    }
    struct filling f = {.g = g};

    fl_advice_show(g);
    if (g->npieces != 0 || g->donors != NULL) {
        fill_by_moves(r, &f);
        settle(r, g);
    }
    if (!g->leaves) {
        populate_rest(r, &f);
    }
    fill_holes(r, g);
    end_filling(r, g);
    tell_once(r);
    for (unsigned i = 0; g->zero && i < g->ndirty; i++) {
        clear(r, g, g->dirty[i]);
    }
}
