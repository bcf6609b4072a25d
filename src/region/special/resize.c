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
    size_t more = len - e->len;
    struct fl_extent *behind = fl_extent_free_at(&r->space, e->base + e->len, e->zone),
                     *tail = NULL;
    enum fl_refusal holes;

    fl_assert(fl_region_is_locked(r));
    g->asked.zone = e->zone;
    g->supply.refusal = FL_REFUSED_NOT;
    if (behind != NULL) {
        g->run = fl_run_from(r, behind, more, fl_page.base);
        tail = g->run.fresh != SIZE_MAX ? fl_run_carve(r, g, &holes) : NULL;
    }
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
    if (!done && g->supply.refusal == FL_REFUSED_LOOK && fl_look_unlocking(r) &&
        fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) == 0) {
        g->asked.seen = &r->look.noted;
        done = extend(r, e, len, g);
        g->asked.seen = NULL;
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
    fl_fill_begin(g);
    g->account.exempt = more;
    g->asked.on_touch = (e->left & FL_LEFT_SPARSE) != 0 || fl_extent_is_thin(e);
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
        state = fl_extent_state(behind);
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
    fl_fill_begin(g);
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
