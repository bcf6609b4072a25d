/* realloc of a block that cannot grow where it lies: its pages go along. */
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

    fl_assert(fl_extent_is_live(e) && e->content == FL_CONTENT_LAZY);
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
    fl_assert(to->len >= len && to->base != e->base);
    bool moved = fl_move_map(&r->pages, fl_extent_range(e), to->base, to->zone) == 0;
    struct fl_extent *gone = moved ? e : to;
    (void)fl_extent_claim(gone, fl_region_epoch(r));
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
    g->asked.zone = (uint8_t)zone;
    g->account.exempt = own.len;
    fl_zone_extend(r, zone, all, fl_page.huge);
    struct fl_extent *empty = fl_fit_first(&r->zones.of[zone].empty, all, fl_page.huge);

    g->supply.refusal = FL_REFUSED_NOT;
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
    r->held.moving += own.len;
    fl_unsettled_begin();
    fl_region_count_use(r, (int64_t)len - (int64_t)e->len);
    to->left |= e->left;
    r->stats.stalls += g->account.budgeted != 0 && !g->supply.leaves;
    fl_region_count_lazy(r, g->supply.leaves ? len - e->len : 0);
    return to;
}

/* Leaves in the fill plan what `e` does not bring along: before and behind `there`. */
static void spare(struct fl_fill_plan *g, struct fl_range there)
{
    struct fl_range all = g->todo.fresh[0];

    fl_assert(g->todo.nfresh == 1 && fl_range_common(there, all).len == there.len);
    g->todo.fresh[0].len = there.base - all.base;
    g->todo.fresh[1] =
        (struct fl_range){fl_range_end(there), fl_range_end(all) - fl_range_end(there)};
    g->todo.nfresh = 2;
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

    fl_assert(fl_range_common(moved, fl_extent_range(e)).len == moved.len);
    (void)fl_extent_claim(e, fl_region_epoch(r));
    fl_region_lock(r);
    fl_thin_forget(r, e);
    fl_assert(r->held.moving >= own.len);
    r->held.moving -= own.len;
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

/* The steps of move_populated, apart: none has the stack of another one on top of its own.
 * Where it goes; NULL: not possible. No lock held. */
static FL_APART struct fl_extent *find_place(struct fl_region *r, const struct fl_extent *e,
                                             size_t len, struct fl_fill_plan *g)
{
    fl_region_lock(r);
    (void)fl_cache_drain_all(r, 0); /* what waits there may give its pages */
    struct fl_extent *to = carve_alike(r, e, len, fl_extent_inner(e), g);
    if (to == NULL && g->supply.refusal == FL_REFUSED_LOOK && fl_look_unlocking(r)) {
        g->asked.seen = &r->look.noted;
        to = carve_alike(r, e, len, fl_extent_inner(e), g);
        g->asked.seen = NULL;
    }
    fl_region_unlock(r);
    return to;
}

/* Returns bytes moved: the rest is to be filled, and copied. */
static FL_APART size_t move_most(struct fl_region *r, struct fl_extent *e, struct fl_extent *to,
                                 struct fl_fill_plan *g)
{
    struct fl_range own = fl_extent_inner(e), there = {own.base - e->base + to->base, own.len};

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
    struct fl_range all = fl_extent_range(e), own = fl_extent_inner(e);
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

    fl_fill_begin(g);
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
    bool plain = !fl_region_moves_pages(r);
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
