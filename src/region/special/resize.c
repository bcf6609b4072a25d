/* realloc without a move: a LIVE extent gives up its tail, or takes over the FREE memory behind
 * it. */
#include "region/free/isolated.h"
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/supply/fill_plan.h"
#include "region/special/user_remapped.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"
#include "region/supply/run.h"
#include "region/supply/supply.h"
#include "region/serve/take.h"

#include <string.h>

enum { MOVE_FROM_HUGE = 4 }; /* huge pages; a smaller extent is copied sooner than moved */

static void shrink(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_range tail = {e->base + len, e->len - len};

    fl_assert(fl_region_is_locked(r));
    fl_region_count_use(r, -(int64_t)tail.len);
    e->len = len;
    fl_extent_publish(&r->space, e);
    struct fl_extent *rest = fl_extent_make(r, tail, FL_CONTENT_POPULATED, e->zone);
    rest->left = e->left;
    (void)fl_fit_insert(r, rest);
}

static bool extend(struct fl_region *r, struct fl_extent *e, size_t len, struct fl_fill_plan *g)
{
    uintptr_t end = e->base + e->len;
    size_t more = len - e->len, have = 0;
    struct fl_extent *f = fl_extent_free_at(&r->space, end, e->zone);
    enum fl_refusal holes;

    fl_assert(fl_region_is_locked(r));
    g->zone = e->zone;
    g->refusal = FL_REFUSED_NOT;
    g->run = (struct fl_run){.start = f, .part = {end, more}, .want = more};
    for (int i = 0; i < FL_RUN_EXTENTS && f != NULL && have < more; i++) {
        have += f->len;
        if (f->content == FL_CONTENT_EMPTY) {
            g->run.fresh +=
                fl_min(f->base + f->len, fl_align_up(end + more, fl_page.huge)) - f->base;
        } else {
            g->run.own += fl_extent_huge_of(f, end, end + more);
        }
        f = fl_extent_free_at(&r->space, f->base + f->len, e->zone);
    }
    struct fl_extent *tail = have >= more ? fl_run_carve(r, g, &holes) : NULL;
    if (tail == NULL) {
        return false;
    }
    fl_left_note_holes(r, g, NULL, holes);
    e->left |= tail->left;
    fl_extent_drop(&r->space, tail);
    e->len = len;
    fl_extent_publish(&r->space, e);
    fl_extent_lay_waypoints(&r->space, e);
    fl_region_count_use(r, (int64_t)more);
    return true;
}

/* The same; where a look at the memory is due the lock is released for it, and all is decided
 * anew. */
static bool extend_looking(struct fl_region *r, struct fl_extent *e, size_t len,
                           struct fl_fill_plan *g)
{
    bool done = extend(r, e, len, g);

    fl_assert(fl_region_is_locked(r));
    if (!done && g->refusal == FL_REFUSED_LOOK && fl_look_leaving_lock(r) &&
        fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) == 0) {
        g->seen = &r->look.noted;
        done = extend(r, e, len, g);
        g->seen = NULL;
    }
    return done;
}

/* A LAZY extent gives whole huge pages of its tail back, and its addresses. The lock is released
 * meanwhile. */
static void shrink_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    size_t kept = fl_align_up(len, fl_page.huge);
    struct fl_range tail = {e->base + kept, e->len - kept};

    fl_assert(fl_region_is_locked(r));
    if (tail.len == 0) {
        return;
    }
    fl_region_count_use(r, -(int64_t)tail.len);
    e->len = kept;
    fl_extent_publish(&r->space, e);
    struct fl_extent *rest = fl_extent_make(r, tail, FL_CONTENT_POPULATED, e->zone);
    rest->left = FL_LEFT_HOLLOW;
    fl_isolated_put(r, rest);
    r->held.populated += tail.len;
    r->held.exempt += tail.len;
    fl_region_unlock(r);
    bool gone = fl_vspace_decommit(&r->space.window, tail) == 0;
    fl_region_lock(r);
    r->held.exempt -= tail.len;
    fl_isolated_return(r, rest, gone);
}

/* A LAZY extent takes over EMPTY addresses behind it, in whole huge pages, and stays LAZY. */
static bool extend_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    uintptr_t end = e->base + e->len;
    size_t more = fl_align_up(len, fl_page.huge) - e->len;
    struct fl_extent *next =
        fl_extent_free_at(&r->space, end, fl_placing_when_empty(&r->zones.placing, e->zone));

    fl_assert(fl_region_is_locked(r));
    if (fl_region_is_absurd(r, len) || next == NULL || next->content != FL_CONTENT_EMPTY ||
        next->len < more) {
        return false;
    }
    struct fl_fill_plan *g = FL_FILL_PLAN();
    fl_fill_begin(g, false, NULL);
    g->exempt = more;
    g->on_touch = (e->left & FL_LEFT_SPARSE) != 0 || fl_extent_is_thin(e);
    struct fl_extent *tail = fl_carve(r, next, end, more, g);
    fl_fill_return(g);
    if (tail == NULL) {
        return false;
    }
    r->held.populated -= more;
    fl_extent_drop(&r->space, tail);
    e->len += more;
    fl_extent_publish(&r->space, e);
    fl_extent_lay_waypoints(&r->space, e);
    fl_region_count_use(r, (int64_t)more);
    return true;
}

static bool resize_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    if (len > e->len) {
        return extend_lazy(r, e, len);
    }
    shrink_lazy(r, e, len);
    return true;
}

/* Does any wait behind `e`, in what it wants, with nothing before it but what is free? */
static bool waits_behind(struct fl_region *r, const struct fl_extent *e, size_t len)
{
    uintptr_t at = e->base + e->len;
    uint32_t state = FL_EXTENT_FREE;

    for (int i = 0; i < FL_RUN_EXTENTS && state == FL_EXTENT_FREE && at < e->base + len; i++) {
        const struct fl_extent *behind = fl_extent_at(&r->space, at);
        if (behind == NULL || fl_extent_zone(behind) != e->zone) {
            return false;
        }
        state = atomic_load_explicit(&behind->state, memory_order_relaxed);
        at += behind->len;
    }
    return state == FL_EXTENT_CACHED;
}

/* Depots are emptied for what lies right there alone. */
static void drain_for(struct fl_region *r, const struct fl_extent *e, size_t len)
{
    fl_assert(fl_region_is_locked(r));
    (void)fl_cache_drain_some(r, FL_DRAINED_AT_ONCE);
    if (waits_behind(r, e, len)) {
        (void)fl_cache_drain_all(r, 0);
    }
}

bool fl_region_resize(struct fl_region *r, struct fl_extent *e, size_t len)
{
    bool done = true;
    size_t had = e->len;

    if (FL_UNLIKELY(fl_extent_is_user_remapped(e)) &&
        (len <= e->len || !fl_extent_is_merely_thin(e))) {
        fl_remapped_shrink(r, e, len);
        bool wasted = (e->left & FL_LEFT_HUGETLB) != 0 && len < e->len / 2;
        return len <= e->len && !wasted;
    }
    if (!fl_region_lock_unless_forking(r)) {
        return false;
    }
    struct fl_fill_plan *g = FL_FILL_PLAN();
    fl_fill_begin(g, false, NULL);
    if (fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) != 0) {
        done = len <= e->len;
    } else if (e->content == FL_CONTENT_LAZY) {
        done = resize_lazy(r, e, len);
    } else if (len < e->len) {
        shrink(r, e, len);
    } else if (len > e->len) {
        drain_for(r, e, len);
        done = extend_looking(r, e, len, g);
    }
    if (done && len > had) {
        fl_thin_watch(r, e, len - had);
    }
    fl_region_unlock(r);
    if (done) {
        fl_fill_carry_out(r, g);
    }
    fl_fill_return(g);
    return done;
}

/* What `e` has been made thin by goes with its pages: with those that are `there`. */
static void hand_on_thin(struct fl_extent *e, struct fl_extent *to, struct fl_range there)
{
    (void)fl_sys.advise(there, FL_ADVICE_NO_HUGE);
    atomic_store_explicit(&to->user_remapped, FL_REMAPPED_THIN, memory_order_relaxed);
    atomic_store_explicit(&e->user_remapped, 0, memory_order_relaxed);
}

/* The whole of a LAZY extent, with its map. */
static struct fl_extent *move_lazy(struct fl_region *r, struct fl_extent *e, size_t len)
{
    size_t had = e->len;

    fl_region_lock(r);
    unsigned zone = fl_placing_when_empty(&r->zones.placing, e->zone);
    struct fl_extent *to = NULL;
    if (!fl_region_is_absurd(r, len)) { /* one map, so that the kernel moves it the next time */
        to = (e->left & FL_LEFT_SPARSE) != 0
                 ? fl_take_sparse(r, len, fl_page.base, zone)
                 : fl_take_lazy(r, len, fl_page.base, zone, r->config.wait_for_touch);
    }
    if (to != NULL) {
        fl_region_count_use(r, (int64_t)to->len);
        r->stats.takes++;
        r->stats.take_bytes += to->len;
    }
    fl_region_unlock(r);
    if (to == NULL) {
        return NULL;
    }
    bool moved = fl_move_map(&r->pages, fl_extent_range(e), to->base, to->zone) == 0;
    struct fl_extent *gone = moved ? e : to;
    (void)fl_extent_claim(gone, atomic_load_explicit(&r->epoch, memory_order_relaxed));
    if (!moved) {
        fl_region_give(r, to);
        return NULL;
    }
    if (FL_UNLIKELY(fl_extent_is_thin(e))) {
        hand_on_thin(e, to, fl_extent_range(to));
    }
    fl_region_lock(r);
    fl_thin_forget(r, e);
    e->content = FL_CONTENT_EMPTY; /* the kernel took the map along with the pages */
    fl_region_give_locked(r, e);
    fl_thin_watch(r, to, to->len - had);
    fl_region_unlock(r);
    return to;
}

/* An extent of `len` bytes at EMPTY addresses, as far into a huge page as `e` is. The fill plan
 * wants all of it but for the pages that `e` brings along: those are in `own`. NULL: not possible.
 * Lock: region. */
static FL_APART struct fl_extent *carve_alike(struct fl_region *r, const struct fl_extent *e,
                                              size_t len, struct fl_range own,
                                              struct fl_fill_plan *g)
{
    size_t into = e->base & (fl_page.huge - 1);
    size_t all = fl_align_up(into + len, fl_page.huge), fresh = all - own.len;
    unsigned zone = fl_placing_when_empty(&r->zones.placing, e->zone);

    fl_assert(fl_region_is_locked(r));
    g->zone = (uint8_t)zone;
    g->exempt = own.len;
    fl_zone_extend(r, zone, all, fl_page.huge);
    struct fl_extent *empty = fl_fit_first(&r->zones.of[zone].empty, all, fl_page.huge);

    g->refusal = FL_REFUSED_NOT;
    if (empty == NULL) {
        return NULL;
    }
    g->run = (struct fl_run){.start = empty,
                             .part = {fl_align_up(empty->base, fl_page.huge) + into, len},
                             .want = len - e->len,
                             .fresh = fresh};
    enum fl_refusal holes;
    struct fl_extent *to = fl_run_carve(r, g, &holes);
    if (to == NULL) {
        return NULL;
    }
    r->held.leaving += own.len;
    fl_unsettled_begin();
    fl_region_count_use(r, (int64_t)len - (int64_t)e->len);
    to->left |= e->left;
    r->stats.stalls += g->budgeted != 0 && !g->leaves;
    fl_region_count_lazy(r, g->leaves ? len - e->len : 0);
    return to;
}

/* Leaves in the fill plan what `e` does not bring along: before and behind `there`. */
static void spare(struct fl_fill_plan *g, struct fl_range there)
{
    struct fl_range all = g->fresh[0];

    g->fresh[0].len = there.base - all.base;
    g->fresh[1] = (struct fl_range){fl_range_end(there), fl_range_end(all) - fl_range_end(there)};
    g->nfresh = 2;
}

static void copy(struct fl_range from, uintptr_t to)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): ranges are memory */
    (void)fl_libc.memcpy((void *)to, (const void *)from.base, from.len);
}

/* Gives `e` up, whose pages in `moved` are elsewhere now. */
static FL_APART void give_remains(struct fl_region *r, struct fl_extent *e, struct fl_range own,
                                  struct fl_range moved)
{
    struct fl_extent *gone = NULL;

    (void)fl_extent_claim(e, atomic_load_explicit(&r->epoch, memory_order_relaxed));
    fl_region_lock(r);
    fl_thin_forget(r, e);
    r->held.leaving -= own.len;
    fl_unsettled_end();
    e->unreclaimable = e->len;
    struct fl_extent *rest = fl_fit_insert(r, e);
    if (moved.len != 0 && fl_extent_reserve(&r->space, 2) == 0) {
        gone = fl_isolated_claim_part(r, rest, moved);
    }
    fl_region_unlock(r);
    if (gone != NULL) {
        bool unmapped = fl_vspace_decommit(&r->space.window, moved) == 0;
        fl_region_lock(r);
        fl_isolated_return(r, gone, unmapped);
        fl_region_unlock(r);
    }
}

/* Returns bytes moved, from the start of `own`. */
static FL_APART size_t move_own(struct fl_region *r, const struct fl_extent *e, struct fl_range own,
                                struct fl_range there, unsigned zone)
{
    struct fl_move m;
    size_t moved = 0;

    if (fl_sys_is_confined()) {
        return fl_move_by_map(&r->pages, own, there.base, zone);
    }
    if (fl_move_begin(&r->pages, &m, there, zone)) {
        moved = (e->left != 0 ? fl_move_hollow : fl_move_pages)(&r->pages, &m, own, there.base);
        fl_move_end(&r->pages, &m);
    }
    return moved;
}

/* What of `e` can move: whole huge pages. */
static struct fl_range own_of(const struct fl_extent *e)
{
    return fl_range_inner(fl_extent_range(e), fl_page.huge);
}

/* The steps of move_populated, apart: none has the stack of another one on top of its own.
 * Where it goes; NULL: not possible. No lock held. */
static FL_APART struct fl_extent *find_place(struct fl_region *r, const struct fl_extent *e,
                                             size_t len, struct fl_fill_plan *g)
{
    fl_region_lock(r);
    (void)fl_cache_drain_all(r, 0); /* what waits there may give its pages */
    struct fl_extent *to = carve_alike(r, e, len, own_of(e), g);
    if (to == NULL && g->refusal == FL_REFUSED_LOOK && fl_look_leaving_lock(r)) {
        g->seen = &r->look.noted;
        to = carve_alike(r, e, len, own_of(e), g);
        g->seen = NULL;
    }
    fl_region_unlock(r);
    return to;
}

/* Returns bytes moved: the rest is to be filled, and copied. */
static FL_APART size_t move_most(struct fl_region *r, struct fl_extent *e, struct fl_extent *to,
                                 struct fl_fill_plan *g)
{
    struct fl_range own = own_of(e), there = {own.base - e->base + to->base, own.len};

    if (FL_UNLIKELY(fl_extent_is_thin(e))) {
        hand_on_thin(e, to, there);
        (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_HUGE); /* for the heirs of the rest */
    }
    size_t moved = move_own(r, e, own, there, to->zone);
    /* No other pages may come to where only holes of a huge page have moved. */
    spare(g, (struct fl_range){there.base, fl_align_up(moved, fl_page.huge)});
    return moved;
}

/* What did not move is copied, into what a part of a huge page has become, too; `e` is given up. */
static FL_APART void copy_rest(struct fl_region *r, struct fl_extent *e, struct fl_extent *to,
                               size_t moved)
{
    struct fl_range all = fl_extent_range(e), own = own_of(e);
    uintptr_t there = own.base - all.base + to->base;

    copy((struct fl_range){own.base + moved, own.len - moved}, there + moved);
    copy((struct fl_range){all.base, own.base - all.base}, to->base);
    copy((struct fl_range){fl_range_end(own), fl_range_end(all) - fl_range_end(own)},
         there + own.len);
    give_remains(r, e, own, (struct fl_range){own.base, fl_align_down(moved, fl_page.huge)});
    fl_region_lock(r);
    fl_thin_watch(r, to, to->len - all.len);
    fl_region_unlock(r);
}

static struct fl_extent *move_populated(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_fill_plan *g = FL_FILL_PLAN();

    fl_fill_begin(g, false, NULL);
    struct fl_extent *to = find_place(r, e, len, g);
    if (to == NULL) {
        fl_fill_return(g);
        return NULL;
    }
    size_t moved = move_most(r, e, to, g);
    fl_fill_carry_out(r, g);
    fl_fill_return(g);
    copy_rest(r, e, to, moved);
    return to;
}

struct fl_extent *fl_region_move(struct fl_region *r, struct fl_extent *e, size_t len)
{
    fl_region_prove(r);
    bool plain =
        atomic_load_explicit(&r->pages.move.method, memory_order_relaxed) == FL_METHOD_NONE;
    bool remapped = fl_extent_is_user_remapped(e) && !fl_extent_is_merely_thin(e);

    if (len <= e->len || remapped || len / 2 > r->space.window.all.len / 2 ||
        !fl_move_may_map(&r->pages, e->len)) {
        return NULL;
    }
    if (e->content == FL_CONTENT_LAZY) {
        return r->space.window.reserved ? NULL : move_lazy(r, e, len);
    }
    return plain || e->len < MOVE_FROM_HUGE * fl_page.huge ? NULL : move_populated(r, e, len);
}
