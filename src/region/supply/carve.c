/* Cuts a LIVE extent out of a run of adjacent FREE ones.
 *
 * hold: what the request takes of each is ISOLATED, so that no other thread gets it, and counts as
 * populated. map: what of that is EMPTY, or a bare hole, is mapped; the lock is released meanwhile.
 * make: the parts become one LIVE extent. The first two can fail, and put back what was held. */
#include "region/free/isolated.h"
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"

#include <errno.h>

static void note_dirty(struct fl_todo *t, uintptr_t base, uintptr_t end)
{
    if (end > base) {
        fl_assert(t->ndirty < FL_FILL_DIRTY);
        t->dirty[t->ndirty++] = (struct fl_range){base, end - base};
    }
}

/* What taking `e` costs: population or, for calloc, clearing. */
static void note_part(struct fl_todo *t, const struct fl_extent *e)
{
    struct fl_range part = fl_extent_range(e), zeroed = fl_range_common(part, e->zeroed);

    if (e->content == FL_CONTENT_EMPTY) {
        fl_assert(t->nfresh < FL_FILL_FRESH);
        t->fresh[t->nfresh++] = part;
    } else if (zeroed.len == 0) {
        note_dirty(t, part.base, fl_range_end(part));
    } else {
        note_dirty(t, part.base, zeroed.base);
        note_dirty(t, fl_range_end(zeroed), fl_range_end(part));
    }
}

/* `part` of a FREE extent that was cut out: what is absent of it comes back, when it is filled or
 * touched. */
static void note_holes(struct fl_region *r, struct fl_todo *t, struct fl_range part)
{
    size_t holes = fl_holes_fill(&r->pages.holes, part);

    fl_assert(fl_region_is_locked(r));
    if (holes != 0) {
        r->held.populated += holes;
        r->pieces.refilled += holes;
        t->back = t->holes == 0
                      ? part
                      : (struct fl_range){t->back.base, fl_range_end(part) - t->back.base};
        t->holes += holes;
    }
}

/* What the request takes of `e`: of an EMPTY extent whole huge pages. */
static struct fl_range part_of(const struct fl_extent *e, uintptr_t start, uintptr_t end)
{
    uintptr_t from = fl_max(e->base, start), to = fl_min(e->base + e->len, end);

    if (e->content == FL_CONTENT_EMPTY) {
        from = fl_align_down(from, fl_page.huge);
        to = fl_align_up(to, fl_page.huge);
    }
    return (struct fl_range){from, to - from};
}

/* The FREE neighbour behind `e` that the request reaches into; NULL behind the last. */
static struct fl_extent *next_of(struct fl_region *r, const struct fl_extent *e, uintptr_t end)
{
    return e->base + e->len < end ? fl_extent_free_at(&r->space, e->base + e->len, e->zone) : NULL;
}

static bool is_empty(const struct fl_extent *e)
{
    return e->content == FL_CONTENT_EMPTY;
}

static void put_back(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e = g->todo.held, *next; e != NULL; e = next) {
        next = e->next;
        fl_isolated_return(r, e, is_empty(e));
    }
    g->todo.held = NULL;
    fl_assert(r->held.exempt >= g->account.exempt);
    r->held.exempt -= g->account.exempt;
}

/* Nothing of the fill plan is known but what it is for. */
static void begin(struct fl_fill_plan *g, struct fl_range live)
{
    g->supply.refusal = FL_REFUSED_NOT;
    g->todo.live = live;
    g->todo.nfresh = g->todo.ndirty = g->todo.nhidden = 0;
    g->todo.hollow = g->todo.bare = false;
    g->todo.holes = 0;
    g->todo.held = NULL;
}

bool fl_carve_hold(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                   struct fl_fill_plan *g)
{
    uintptr_t end = start + len;
    struct fl_extent **last = &g->todo.held;

    fl_assert(fl_region_is_locked(r));
    fl_assert(len != 0 && e->base <= start && start < e->base + e->len);
    begin(g, (struct fl_range){start, len});
    if (fl_pagemap_reach(&r->space, fl_align_up(end, fl_page.huge), !g->supply.leaves) != 0) {
        return false;
    }
    r->held.exempt += g->account.exempt;
    for (struct fl_extent *next; e != NULL; e = next) {
        struct fl_range part = part_of(e, start, end);
        if (fl_extent_reserve(&r->space, 2) != 0) {
            fl_lock_permit_calls(true);
            fl_advice_show(&g->todo);
            fl_lock_permit_calls(false);
            put_back(r, g);
            return false;
        }
        next = next_of(r, e, end);
        fl_advice_cut(r, e, part, &g->todo);
        *last = fl_isolated_claim_part(r, e, part);
        (*last)->advised = 0;
        r->held.populated += is_empty(*last) ? part.len : 0;
        g->todo.bare |= fl_holes_bare_in(&r->pages.holes, part) != 0;
        (*last)->next = NULL;
        last = &(*last)->next;
    }
    return true;
}

static void unmap_upto(struct fl_region *r, const struct fl_todo *t, const struct fl_extent *end)
{
    for (const struct fl_extent *e = t->held; e != end; e = e->next) {
        if (is_empty(e)) {
            (void)fl_vspace_decommit(&r->space.window, fl_extent_range(e));
        } else if (t->bare) {
            fl_purge_unmap_bare(&r->pages, fl_extent_range(e));
        }
    }
}

/* 0, or why the kernel refuses. */
static int map_one(struct fl_region *r, const struct fl_fill_plan *g, const struct fl_extent *e)
{
    bool huge = r->pages.huge && !g->asked.on_touch;

    if (is_empty(e)) {
        return fl_pages_commit(&r->pages, fl_extent_range(e), huge, e->zone);
    }
    if (g->todo.bare && fl_sys_is_confined()) { /* a map more is the next allocator's to ask for */
        return -EPERM;
    }
    return g->todo.bare ? fl_purge_map_bare(&r->pages, fl_extent_range(e), e->zone) : 0;
}

/* All or none. Returns the one that the kernel refuses, NULL: none. No lock held. */
static struct fl_extent *map_held(struct fl_region *r, const struct fl_fill_plan *g, int *out_rc)
{
    *out_rc = 0;
    for (struct fl_extent *e = g->todo.held; e != NULL; e = e->next) {
        if ((*out_rc = map_one(r, g, e)) != 0) {
            unmap_upto(r, &g->todo, e);
            return e;
        }
    }
    return NULL;
}

/* The program has mapped something there: these addresses are not handed out any more. */
static void retire(struct fl_region *r, struct fl_todo *t, struct fl_extent *foreign)
{
    struct fl_extent **link = &t->held;

    fl_assert(fl_region_is_locked(r));
    while (*link != foreign) {
        link = &(*link)->next;
    }
    *link = foreign->next;
    fl_assert(!is_empty(foreign) || r->held.populated >= foreign->len);
    r->held.populated -= is_empty(foreign) ? foreign->len : 0;
    fl_isolated_take(r, foreign);
    atomic_store_explicit(&foreign->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
}

/* With the lock released, but where it would not be had again soon: by who forks it is taken next,
 * and a handler that forks amid another section of this thread leaves it as it is. */
static bool leave(struct fl_region *r)
{
    bool may =
        atomic_load_explicit(&r->fork.threads, memory_order_relaxed) == 0 && fl_region_is_outer();

    fl_assert(fl_region_is_locked(r));
    if (may) {
        fl_region_unlock(r);
    } else {
        fl_lock_permit_calls(true);
    }
    return may;
}

static void come_back(struct fl_region *r, bool left)
{
    if (left) {
        fl_region_lock(r);
    } else {
        fl_lock_permit_calls(false);
    }
}

static int map(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    int rc;
    bool left = leave(r);
    struct fl_extent *refused = map_held(r, g, &rc);
    fl_advice_show(&g->todo);
    g->todo.nhidden = 0;
    if (rc != 0 && rc != -EEXIST) {
        fl_look_make_table(r);
    }
    come_back(r, left);
    if (rc == -EEXIST) {
        retire(r, &g->todo, refused);
    } else if (rc != 0 && r->hooks.maps_are_counted != NULL) {
        r->hooks.maps_are_counted();
    }
    if (rc != 0) {
        put_back(r, g);
    }
    return rc;
}

static void undo_map(struct fl_region *r, struct fl_fill_plan *g)
{
    bool left = leave(r);

    unmap_upto(r, &g->todo, NULL);
    come_back(r, left);
    put_back(r, g);
}

/* With pages.collapse: memory comes by base pages, which the worker is to make huge. */
static void want_huge(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (!r->pages.collapse) {
        return;
    }
    if (r->repair.active) {
        r->repair.quiet_ns = 0;
        r->repair.rest_ns = FL_REPAIR_REST;
    } else if (r->held.populated >= FL_WORKER_FROM) {
        atomic_store_explicit(&r->pages.pace.left_base, true, memory_order_relaxed);
        atomic_store(&r->wants_worker, true);
    }
}

bool fl_carve_map_unlocking(struct fl_region *r, struct fl_fill_plan *g)
{
    bool fresh = fl_carve_wants_map(&g->todo);

    fl_assert(fl_region_is_locked(r));
    if (!fresh && !g->todo.bare) {
        return true;
    }
    if (fresh) {
        want_huge(r);
    }
    int rc = map(r, g);
    if (rc == 0 && fl_extent_reserve(&r->space, 2) == 0) { /* for what is new on both sides */
        return true;
    }
    if (rc == 0) {
        undo_map(r, g);
    }
    g->supply.refusal = rc == -EEXIST ? FL_REFUSED_PLACE : FL_REFUSED_NOT;
    return false;
}

/* What is new beside the LIVE extent, in [from, to). */
static void put_fringe(struct fl_region *r, const struct fl_fill_plan *g,
                       const struct fl_extent *live, uintptr_t from, uintptr_t to)
{
    struct fl_range range = {from, to - from};

    fl_assert(fl_region_is_locked(r));
    if (range.len != 0) {
        struct fl_extent *e = fl_extent_make(r, range, FL_CONTENT_POPULATED, live->zone);
        if (g->supply.from_free == 0) { /* no page that was written to comes here */
            e->zeroed = range;
        }
        e->left = live->left & FL_LEFT_HOLLOW;
        (void)fl_fit_insert(r, e);
    }
}

/* Notes what it is to cost, and drops it. */
static void use_up(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    note_part(&g->todo, e);
    g->todo.hollow |= e->left != 0;
    if (e->holes != 0) {
        note_holes(r, &g->todo, fl_extent_range(e));
    }
    fl_isolated_take(r, e);
    fl_extent_drop(&r->space, e);
}

static struct fl_extent *hand_out(struct fl_region *r, struct fl_extent *live,
                                  const struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    atomic_store_explicit(&live->state, FL_EXTENT_LIVE, memory_order_relaxed);
    live->left = fl_left_of(r, g);
    fl_extent_lay_waypoints(&r->space, live);
    return live;
}

struct fl_extent *fl_carve_make(struct fl_region *r, struct fl_fill_plan *g)
{
    uintptr_t front = g->todo.live.base, end = fl_range_end(g->todo.live), cut = end;
    unsigned zone = g->asked.zone;

    fl_assert(fl_region_is_locked(r));
    fl_assert(g->todo.held != NULL && g->todo.live.len != 0);
    for (struct fl_extent *e = g->todo.held, *next; e != NULL; e = next) {
        next = e->next;
        front = fl_min(front, e->base);
        cut = e->base + e->len;
        zone = e->zone;
        use_up(r, g, e);
    }
    fl_assert(front <= g->todo.live.base && cut >= end);
    g->todo.held = NULL;
    r->held.exempt -= g->account.exempt;
    if (g->asked.on_touch) {
        g->todo.nfresh = 0;
    }
    struct fl_extent *live =
        hand_out(r, fl_extent_make(r, g->todo.live, FL_CONTENT_POPULATED, zone), g);
    put_fringe(r, g, live, front, g->todo.live.base);
    put_fringe(r, g, live, end, cut);
    return live;
}

bool fl_carve_wants_map(const struct fl_todo *t)
{
    const struct fl_extent *e = t->held;

    while (e != NULL && !is_empty(e)) {
        e = e->next;
    }
    return e != NULL;
}

static FL_APART struct fl_extent *carve_plain(struct fl_region *r, struct fl_extent *e, size_t len,
                                              struct fl_fill_plan *g)
{
    struct fl_range part = {e->base, len}, zeroed = fl_range_common(part, e->zeroed);

    fl_assert(fl_region_is_locked(r));
    begin(g, part);
    g->todo.hollow = e->left != 0;
    struct fl_extent *live = fl_carve_front(r, e, len);
    live->left = fl_left_of(r, g);
    live->zeroed = zeroed;
    note_part(&g->todo, live);
    live->zeroed = (struct fl_range){part.base, 0};
    return live;
}

struct fl_extent *fl_carve(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                           struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    if (g->account.exempt == 0 && fl_carve_is_plain(e, start, len)) {
        return carve_plain(r, e, len, g);
    }
    bool may = fl_carve_hold(r, e, start, len, g) && fl_carve_map_unlocking(r, g);

    return may ? fl_carve_make(r, g) : NULL;
}
