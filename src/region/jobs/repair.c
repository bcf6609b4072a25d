/* Huge pages that copy-on-write split after fork(2) become whole again, beside the program, once it
 * has rewritten them. With FAULTLESS_THP=collapse what comes in base pages becomes huge in the same
 * way.
 *
 * What the parent writes while a child shares it the kernel copies in base pages, and leaves it so.
 * The worker looks for such places and collapses them (MADV_COLLAPSE, which copies): a huge page of
 * which half is the parent's own again, so that a child that lives for long does not make us hold
 * more than twice what was rewritten. It ends when nothing is shared or split any more, or when
 * nothing has changed for some minutes. Only what is wholly in memory is collapsed, so no more is
 * held. Huge pages by collapse are waited for until some minutes have passed without any: new
 * memory is touched when the program likes. State: r->repair, under the region lock. */
#include "region/state/counts.h"
#include "region/state/lock.h"

#include <errno.h>

static const uint64_t rest_most = 1000000000;                /* ns */
enum { EXTENTS_A_RUN = 4096 };                               /* walked under the lock */
static const uint64_t patience = (uint64_t)600 * 1000000000; /* ns without a repair */
static const size_t batch = (size_t)64 << 20; /* bytes looked at, and collapsed, in one go */

static void start(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    r->repair.active = true;
    r->repair.begun++;
    r->repair.cursor = r->repair.repaired = r->repair.refused = r->repair.left = 0;
    r->repair.quiet_ns = 0;
    r->repair.rest_ns = FL_REPAIR_REST;
}

void fl_repair_begin(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (r->pages.huge && r->held.populated >= FL_WORKER_FROM) {
        start(r);
        r->repair.forked = true;
        atomic_store(&r->wants_worker, true);
    }
}

/* The next committed addresses from `from` on, at most a batch of whole huge pages; len 0: there
 * are none among the next so many extents. `out_on`: from where to go on; the window's end: that
 * was the last. */
static struct fl_range next_committed(struct fl_region *r, uintptr_t from, uintptr_t *out_on)
{
    struct fl_range run = {0, 0};
    uintptr_t end = fl_range_end(r->space.window.all), addr = r->space.first;
    struct fl_extent *first = NULL;

    fl_assert(fl_region_is_locked(r));
    if (from > addr && fl_inner_around(&r->space, from, &first) == NULL) {
        first = fl_extent_around(&r->space, from);
        if (first != NULL) { /* where a look ended the next one begins */
            fl_extent_lay_waypoints(&r->space, first);
        }
    }
    addr = from >= end ? end : first != NULL ? first->base : addr;
    for (int i = 0; addr < end && run.len < batch; i++) {
        const struct fl_extent *e = fl_extent_at(&r->space, addr);
        if (e == NULL) {
            addr = end;
            break;
        }
        if (i == EXTENTS_A_RUN) {
            break;
        }
        uintptr_t e_end = e->base + e->len;
        bool usable = e->content != FL_CONTENT_EMPTY && !fl_extent_is_pinned(e) &&
                      !fl_extent_is_merely_thin(e);
        if (usable && e_end > from) {
            run.base = run.len == 0 ? fl_max(e->base, from) : run.base;
            run.len = e_end - run.base;
        } else if (run.len != 0) {
            break;
        }
        addr = e_end;
    }
    struct fl_range inner = fl_range_inner(run, fl_page.huge);
    bool cut = inner.len != 0 && addr < end && fl_range_end(run) == addr;
    inner.len = fl_min(inner.len, batch);
    *out_on = cut ? fl_range_end(inner) : addr; /* what was cut goes on */
    return inner;
}

/* Of what the program has not touched yet; unless the kernel refuses to collapse anything. */
static bool more_may_come(const struct fl_region *r)
{
    bool never_any = __atomic_load_n(&r->stats.repair_bytes, __ATOMIC_RELAXED) == 0;

    return r->pages.collapse && !(never_any && r->repair.refused != 0);
}

/* After a look at all of the window. */
static uint64_t end_of_pass(struct fl_region *r)
{
    struct fl_repair *p = &r->repair;

    fl_assert(fl_region_is_locked(r));
    p->quiet_ns = p->repaired != 0 ? 0 : p->quiet_ns + p->rest_ns;
    p->rest_ns = p->repaired != 0 ? FL_REPAIR_REST : p->rest_ns * 2;
    p->rest_ns = p->rest_ns < rest_most ? p->rest_ns : rest_most;
    p->active = (p->left != 0 || p->repaired != 0 || more_may_come(r)) && p->quiet_ns < patience;
    p->forked &= p->active;
    p->cursor = p->repaired = p->refused = p->left = 0;
    return p->active ? p->rest_ns : UINT64_MAX;
}

/* Where memory is short what is free is the kernel's to take: a copy of it would be ours again. */
static bool must_wait(const struct fl_region *r)
{
    return fl_region_is_scarce(r) || (r->pages.collapse && fl_region_is_tight(r));
}

uint64_t fl_region_repair(struct fl_region *r)
{
    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    if (!r->repair.active && atomic_exchange(&r->pages.pace.left_base, false)) {
        start(r);
    }
    bool active = r->repair.active && r->zones.seeded;
    unsigned begun = r->repair.begun;
    const struct fl_repair *p = &r->repair;
    struct fl_collapsed t = {p->forked, p->repaired, p->refused, p->left};
    uintptr_t on = fl_range_end(r->space.window.all);
    struct fl_range run = {0, 0};
    if (active && must_wait(r)) {
        fl_region_unlock(r);
        return rest_most;
    }
    if (active) {
        run = next_committed(r, r->repair.cursor, &on);
    }
    bool over = run.len == 0 && on == fl_range_end(r->space.window.all);
    uint64_t rest = !active ? UINT64_MAX : over ? end_of_pass(r) : 0;
    fl_region_unlock(r);
    if (rest != 0) {
        return rest;
    }
    fl_collapse_range(&r->pages, run, &t);
    fl_region_lock(r);
    if (begun == r->repair.begun) { /* else all is to be looked at: a fork has shared it anew */
        r->repair.cursor = on;
        r->repair.repaired = t.bytes;
        r->repair.refused = t.refused;
        r->repair.left = t.left;
    }
    fl_region_unlock(r);
    return 0;
}
