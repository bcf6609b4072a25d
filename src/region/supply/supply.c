/* Where the pages of a request come from that takes EMPTY addresses: the reserve, free extents
 * elsewhere, or the kernel.
 *
 * What is held may exceed the most that was ever in use by a sixty-fourth. Up to that the kernel
 * gives new pages: they stay where they are, and a step that repeats finds them there. Beyond it
 * whole huge pages of free extents move: the oldest free ones, whatever their size. So nothing
 * fragments in huge pages, and shapes that vary cost no fault. What comes from the kernel may be
 * left to the first touch: see left.c. */
#include "region/free/isolated.h"
#include "region/state/budget.h"
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

#include <string.h>

enum { SLACK_SHARE = 64 };

bool fl_supply_is_full(const struct fl_region *r, size_t len, size_t fresh)
{
    return fl_region_counted(r) + fresh > fl_supply_allowed(r, len);
}

size_t fl_supply_allowed(const struct fl_region *r, size_t more)
{
    size_t peak = fl_max(r->held.in_use_peak, r->held.in_use + more);

    return peak + fl_max(peak / SLACK_SHARE, 2 * fl_page.huge);
}

static enum fl_refusal may_populate(struct fl_region *r, const struct fl_fill_plan *g, size_t len,
                                    size_t fresh)
{
    enum fl_refusal why = fl_region_may_populate(r, len, fresh, g->asked.seen);

    fl_assert(fl_region_is_locked(r));
    if (why == FL_REFUSED_NOT && !g->asked.any_room &&
        !fl_zone_has_room(&r->zones, g->asked.zone, fresh)) {
        fl_region_forgo(r, fresh);
        why = FL_REFUSED_NODE;
    }
    return why;
}

enum fl_refusal fl_supply_plan(struct fl_region *r, struct fl_fill_plan *g, size_t len,
                               size_t fresh, size_t own)
{
    unsigned class = fl_zone_class(r, g->asked.zone);
    size_t free_huge = fl_zone_donors(r, class);
    bool can_move = fl_region_moves_pages(r) && !fl_sys_is_confined() &&
                    fl_placing_moves(&r->zones.placing, class);
    bool may_lend =
        can_move && fl_loan_may_come(&g->loan, g->asked.zone) && fl_zone_may_lend(r, class);
    bool full = g->asked.to_stay || g->loan.came || may_lend || fl_supply_is_full(r, len, fresh);
    size_t donors = can_move && free_huge > own ? free_huge - own : 0;
    size_t stock = can_move && !may_lend ? r->pages.reserve.ready_of[class]
                                         : 0; /* the worker would fill it anew */

    fl_assert(fl_region_is_locked(r));
    g->supply.from_reserve = full && !g->asked.zero ? 0 : fl_min(stock, fresh);
    g->supply.from_free = full ? fl_min(donors, fresh - g->supply.from_reserve) : 0;
    if (full &&
        !g->asked.zero) { /* what is clean is for calloc, but sooner used than more is held */
        g->supply.from_reserve = fl_min(stock, fresh - g->supply.from_free);
    }
    size_t rest = fresh - g->supply.from_reserve - g->supply.from_free;
    g->account.budgeted = 0;
    if (rest != 0 && may_lend) {
        g->supply.wanted = rest;
        g->supply.from_reserve = g->supply.from_free = 0;
        return FL_REFUSED_LOAN;
    }
    enum fl_refusal why = rest != 0 ? may_populate(r, g, len, rest) : FL_REFUSED_NOT;
    if (why == FL_REFUSED_NOT) {
        g->account.budgeted = rest;
    } else if (why == FL_REFUSED_LOOK) { /* all is decided anew: nothing of this may be left */
        g->supply.from_reserve = g->supply.from_free = 0;
    } else if (donors + stock >= fresh) {
        g->supply.from_free = fl_min(donors, fresh);
        g->supply.from_reserve = fresh - g->supply.from_free;
        why = FL_REFUSED_NOT;
    }
    g->supply.leaves = g->account.budgeted != 0 && fl_left_wants(r, g, len);
    return why;
}

void fl_supply_cancel(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    fl_region_forgo(r, g->account.budgeted);
    g->supply.from_reserve = g->supply.from_free = g->account.budgeted = 0;
    g->supply.leaves = false;
}

/* Will what is asked for be touched? Then the reserve is to have as much the next time. */
static bool is_real(const struct fl_region *r, const struct fl_fill_plan *g)
{
    return !r->config.wait_for_touch || g->asked.to_stay || r->config.stock != 0 ||
           (g->todo.live.len >= fl_page.huge && fl_left_was_touched(r, g->todo.live.len));
}

void fl_supply_claim(struct fl_region *r, struct fl_fill_plan *g)
{
    struct fl_extent *oldest;
    size_t want = g->supply.from_free;

    fl_assert(fl_region_is_locked(r));
    fl_refill_take(r, g);
    bool fresh = g->todo.nfresh != 0 || fl_carve_wants_map(&g->todo);
    g->account.filling = fresh && (!g->supply.leaves || g->todo.npieces != 0);
    if (g->account.filling) {
        atomic_fetch_add(&r->held.filling, 1);
    }
    if (is_real(r, g)) {
        fl_refill_demand(r, g->account.budgeted + g->supply.from_reserve, g->asked.zone);
    }
    while (want >= fl_page.huge &&
           (oldest = fl_zone_oldest(r, fl_zone_class(r, g->asked.zone))) != NULL &&
           fl_extent_reserve(&r->space, 2) == 0) {
        struct fl_extent *e = fl_isolated_claim(r, oldest, want);
        want -= e->len;
        r->held.moving += e->len;
        g->todo.hollow |= e->left != 0;
        e->next = g->todo.donors;
        g->todo.donors = e;
    }
}

/* In a child of fork(2) that a handler has made amid it it is not counted any more. */
static void end_filling(struct fl_region *r, struct fl_fill_plan *g)
{
    size_t n = atomic_load(&r->held.filling);

    while (g->account.filling && n != 0 &&
           !atomic_compare_exchange_weak(&r->held.filling, &n, n - 1)) {
    }
    g->account.filling = false;
}

static void return_donors(struct fl_region *r, struct fl_todo *t)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e = t->donors, *next; e != NULL; e = next) {
        next = e->next;
        r->held.moving -= e->len;
        fl_isolated_return(r, e, e->spent);
    }
    t->donors = NULL;
}

void fl_supply_unclaim(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    fl_refill_give_back(r, &g->todo);
    g->todo.npieces = 0;
    return_donors(r, &g->todo);
    end_filling(r, g);
}

static void close_range(struct fl_region *r, struct fl_filling *f)
{
    fl_assert(f->i <= FL_FILL_FRESH);
    if (f->open) {
        fl_move_end(&r->pages, &f->move);
        f->open = false;
    }
    f->i++;
}

/* How much of the fresh range may be moved to. mremap puts another map there: only whole huge pages
 * that are the request's alone; the rest of such a page is free, or another block's, by now. */
static size_t reach(const struct fl_fill_plan *g, struct fl_range to)
{
    struct fl_range own = fl_range_inner(fl_range_common(to, g->todo.live), fl_page.huge);

    if (g->done.move.method == FL_METHOD_MOVE) {
        return to.len;
    }
    return own.base == to.base ? own.len : 0;
}

/* Moves `from` to where the filling stands. Returns bytes moved, from its start. */
static size_t fill_from(struct fl_region *r, struct fl_fill_plan *g, struct fl_range from,
                        bool hollow)
{
    struct fl_filling *f = &g->done;

    fl_assert(!fl_region_is_locked(r));
    f->from = from;
    f->moved = 0;
    while (f->moved < f->from.len && f->i < g->todo.nfresh) {
        struct fl_range to = g->todo.fresh[f->i];
        size_t *done = &f->done[f->i];
        if (*done == to.len) {
            close_range(r, f);
            continue;
        }
        if (!f->open && !(f->open = fl_move_begin(&r->pages, &f->move, to, g->asked.zone))) {
            f->i = g->todo.nfresh;
            break;
        }
        size_t upto = reach(g, to);
        if (*done >= upto) {
            close_range(r, f);
            continue;
        }
        fl_assert(*done <= upto && upto <= to.len);
        size_t piece = fl_min(f->from.len - f->moved, upto - *done);
        struct fl_range part = {f->from.base + f->moved, piece};
        size_t n = hollow ? fl_move_hollow(&r->pages, &f->move, part, to.base + *done)
                          : fl_move_pages(&r->pages, &f->move, part, to.base + *done);
        *done += fl_align_down(n, fl_page.huge);
        fl_assert(*done <= to.len);
        f->moved += n;
        if (n < piece) {
            break;
        }
    }
    return f->moved;
}

static void note_dirty(struct fl_todo *t, struct fl_range part)
{
    part = fl_range_common(part, t->live);
    if (part.len != 0) {
        t->dirty[t->ndirty++] = part;
    }
}

static void fill_by_moves(struct fl_region *r, struct fl_fill_plan *g)
{
    struct fl_filling *f = &g->done;

    fl_assert(g->todo.npieces <= FL_RESERVE_PIECES && g->todo.nfresh <= FL_FILL_FRESH);
    for (unsigned i = 0; i < g->todo.npieces; i++) {
        g->todo.piece[i].moved = fill_from(r, g, g->todo.piece[i].range, false);
        fl_assert(g->todo.piece[i].moved <= g->todo.piece[i].range.len);
    }
    memcpy(f->clean, f->done, sizeof f->clean);

    for (struct fl_extent *e = g->todo.donors; e != NULL; e = e->next) {
        fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
        fl_advice_show_apart(e);
        e->spent = fill_from(r, g, fl_extent_range(e), e->left != 0) != 0;
    }
    close_range(r, f);
    /* The next huge page may have got part of one that is mapped by base pages. */
    for (unsigned i = 0; i < g->todo.nfresh && g->todo.donors != NULL; i++) {
        size_t upto = fl_min(f->done[i] + fl_page.huge, g->todo.fresh[i].len);
        note_dirty(&g->todo,
                   (struct fl_range){g->todo.fresh[i].base + f->clean[i], upto - f->clean[i]});
    }
}

/* Bytes that did not move: they come from the kernel, beyond the plan. */
static size_t stuck_bytes(const struct fl_todo *t)
{
    size_t stuck = 0;

    for (unsigned i = 0; i < t->npieces; i++) {
        stuck += t->piece[i].range.len - t->piece[i].moved;
    }
    for (const struct fl_extent *e = t->donors; e != NULL; e = e->next) {
        stuck += e->spent ? 0 : e->len;
    }
    return stuck;
}

static bool is_too_much(struct fl_region *r, size_t more)
{
    fl_region_lock(r);
    enum fl_refusal why = fl_region_may_populate(r, 0, more, NULL);
    if (why == FL_REFUSED_LOOK && fl_look_unlocking(r)) {
        why = fl_region_may_populate(r, 0, more, &r->look.noted);
    }
    fl_region_unlock(r);
    return why != FL_REFUSED_NOT && why != FL_REFUSED_LOOK;
}

/* Sources without their pages leave no map behind. What the kernel did not let go stays free
 * memory, if there is room for it beside what comes instead; else it goes back. */
static FL_APART void settle(struct fl_region *r, struct fl_fill_plan *g)
{
    size_t stuck = stuck_bytes(&g->todo);
    bool too_much = stuck != 0 && is_too_much(r, stuck);

    fl_assert(!fl_region_is_locked(r));
    for (struct fl_extent *e = g->todo.donors; e != NULL; e = e->next) {
        fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
        e->spent =
            (e->spent || too_much) && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
    }
    fl_region_lock(r);
    fl_refill_give_back(r, &g->todo);
    for (struct fl_extent *e = g->todo.donors; e != NULL; e = e->next) {
        fl_advice_note_shown(e);
    }
    return_donors(r, &g->todo);
    if (too_much) {
        (void)fl_refill_release_unlocking(r, 0);
    }
    fl_region_unlock(r);
}

bool fl_supply_is_coming(const struct fl_region *r)
{
    return atomic_load(&r->held.moving) != 0 || atomic_load(&r->held.filling) != 0;
}

static void tell_once(struct fl_region *r)
{
    if (r->config.verbose && __atomic_load_n(&r->stats.compactions, __ATOMIC_RELAXED) != 0 &&
        !atomic_exchange(&r->repair.backoff_said, true)) {
        fl_say("the kernel compacts memory for each huge page: base pages for a while");
    }
}

static void clear(struct fl_region *r, const struct fl_fill_plan *g, struct fl_range part)
{
    if (g->todo.hollow || g->supply.leaves) {
        (void)fl_clear_touched(&r->pages, part, fl_supply_is_coming(r));
    } else {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): ranges are memory */
        (void)fl_libc.memset((void *)part.base, 0, part.len);
    }
}

static bool is_done(const struct fl_fill_plan *g)
{
    return g->todo.nfresh == 0 && g->todo.npieces == 0 && g->todo.nhidden == 0 &&
           g->todo.holes == 0 && g->todo.donors == NULL && !g->account.filling && !g->asked.zero;
}

/* Apart: what it takes of the stack is given back before the clearing, which takes most. */
static FL_APART void fill(struct fl_region *r, struct fl_fill_plan *g)
{
    memset(&g->done, 0, sizeof g->done);
    fl_advice_show(&g->todo);
    if (g->todo.npieces != 0 || g->todo.donors != NULL) {
        fill_by_moves(r, g);
        settle(r, g);
    }
    if (!g->supply.leaves) {
        fl_fill_populate(r, g);
    }
    fl_fill_holes(r, g);
    end_filling(r, g);
    tell_once(r);
}

void fl_fill_carry_out(struct fl_region *r, struct fl_fill_plan *g)
{
    if (is_done(g)) {
        return;
    }
    fill(r, g);
    for (unsigned i = 0; g->asked.zero && i < g->todo.ndirty; i++) {
        clear(r, g, g->todo.dirty[i]);
    }
}
