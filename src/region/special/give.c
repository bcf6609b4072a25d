/* A block comes back: to a shard, as most do, or by what became of it in the program's hands. */
#include "region/serve/shard.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/special/user_remapped.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

/* May a LAZY extent be kept? Else it goes back to the kernel at once. */
static bool is_worth_keeping(struct fl_region *r, const struct fl_extent *e)
{
    bool locked = atomic_load_explicit(&r->locked, memory_order_relaxed); /* and so all there */

    if (!locked &&
        ((e->left & FL_LEFT_SPARSE) != 0 || !fl_residency_is_dense(fl_extent_range(e)))) {
        return false;
    }
    fl_pagemap_populate(&r->space, fl_extent_range(e)); /* it will be cut into others */
    fl_region_lock(r);
    bool fits = r->config.limit == 0 || fl_region_counted(r) + e->len <= r->config.limit;
    fl_region_unlock(r);
    return fits;
}

static void give_handled(struct fl_region *r, struct fl_extent *e)
{
    fl_region_lock(r);
    bool may = fl_hugetlb_leave(r, e);
    fl_region_unlock(r);
    if (!may) {
        return;
    }
    bool renewed = fl_remapped_renew(r, e);
    fl_region_lock(r);
    fl_remapped_settle(r, e, renewed);
    fl_region_unlock(r);
}

/* While it is the caller's alone: what is written later stays. Returns bytes. */
static size_t leave_to_kernel(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_range part = fl_extent_range(e);
    bool scarce = fl_region_is_scarce(r);

    if (!scarce && !fl_region_is_tight(r)) {
        return 0;
    }
    part = scarce ? part : fl_range_inner(part, fl_page.huge);
    return part.len != 0 && fl_region_soften_part(r, part) ? part.len : 0;
}

void fl_region_give(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && fl_extent_is_sound(e));
    if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1) && fl_shard_give(r, e)) {
        fl_shards_look_if_due(r, &r->shards);
        return;
    }
    size_t len = e->len, unreclaimable = len;
    bool disarmed = fl_touch_disarm(r, e);

    if (FL_UNLIKELY(fl_extent_is_user_remapped(e))) {
        give_handled(r, e);
        fl_region_look_after(r, len);
        return;
    }
    bool gone = e->content == FL_CONTENT_LAZY && !(disarmed && is_worth_keeping(r, e)) &&
                fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;

    if (FL_UNLIKELY(!gone && r->zones.placing.nodes != 0 && e->content == FL_CONTENT_LAZY)) {
        fl_zone_find(r, e);
    }
    if (!gone) {
        unreclaimable -= leave_to_kernel(r, e);
    }
    if (!fl_region_lock_unless_forking(r)) {
        fl_region_defer(r, e); /* LAZY counts as populated then, until a purge */
        return;
    }
    if (gone) {
        e->content = FL_CONTENT_EMPTY;
    }
    e->unreclaimable = unreclaimable;
    fl_region_give_locked(r, e);
    fl_region_unlock_and_look(r, len);
}
