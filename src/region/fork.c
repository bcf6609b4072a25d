/* fork(2): the child gets a region that nobody is in the middle of changing, and none of the memory that is free.
 *
 * What both had would have to be copied, a base page at a time, when the parent writes it again: so free huge pages are taken out of
 * what is inherited (MADV_DONTFORK) until they are used again: see fl_fork_undo. The child finds nothing mapped there. Where the
 * window is reserved they are inherited like the rest: a hole in the child would be anybody's.
 * What is live is inherited; see repair.c for what that does to the parent. */
#include "region/internal.h"

#include <errno.h>
#include <string.h>

/* extents: each may make a map more, and the kernel allows so many */
enum { KEPT_MOST = 4096 };

static struct fl_range inner(const struct fl_extent *e)
{
    return fl_range_inner(fl_extent_range(e), fl_page.huge);
}

void fl_fork_undo(struct fl_region *r, struct fl_extent *e)
{
    if (FL_UNLIKELY(e->unforked)) {
        if (fl_sys.advise(inner(e), FL_ADVICE_FORK) ==
            -ENOMEM) { /* a child that no handler was told of */
            (void)fl_zone_commit(r, inner(e), r->config.huge, e->zone);
        }
        e->unforked = false;
    }
}

static bool keep(struct fl_region *r, struct fl_extent *e)
{
    e->unforked = true;
    if (fl_sys.advise(inner(e), FL_ADVICE_NO_FORK) == 0) {
        return true;
    }
    fl_fork_undo(r, e); /* too many maps: the kernel may have done a part */
    return false;
}

/* From here on an extent that says unforked is so as a whole; what it has merged with since the last time may not be. */
static void keep_from_child(struct fl_region *r)
{
    struct fl_extent *e;
    unsigned n = 0;
    bool may = true;

    (void)fl_cache_drain_all(r, 0);
    FL_EACH_ZONE(r, z)
    {
        TAILQ_FOREACH(e, &z->by_age, by_age)
        {
            may = may && n++ < KEPT_MOST && keep(r, e);
            if (!may) { /* the rest is inherited */
                fl_fork_undo(r, e);
            }
        }
    }
}

bool fl_region_fork_prepare(struct fl_region *r)
{
    if (fl_region_busy()) {
        return false;
    }
    fl_region_fork_lock(r);
    return true;
}

void fl_region_fork_lock(struct fl_region *r)
{
    fl_region_lock(r);
    if (!r->window.reserved) {
        keep_from_child(r);
    }
    fl_lock_acquire(&r->moving); /* no descriptor of ours is open */
}

void fl_region_fork_parent(struct fl_region *r)
{
    fl_lock_release(&r->moving);
    fl_repair_begin(r);
    fl_region_unlock(r);
}

/* The threads that were at it are not here: these extents may or may not be mapped. */
static void give_up_apart(struct fl_region *r)
{
    struct fl_extent *e;

    while ((e = TAILQ_FIRST(&r->apart)) != NULL) {
        if (fl_vspace_decommit(&r->window, fl_extent_range(e)) == 0) {
            fl_apart_return(r, e, true);
        } else { /* neither is sure: nobody gets these addresses any more */
            TAILQ_REMOVE(&r->apart, e, by_age);
        }
    }
    r->leaving = 0;
}

/* What was kept from the child: addresses with nothing behind them. */
static void note_absent_of(struct fl_region *r, struct fl_zone *z)
{
    for (struct fl_extent *e = TAILQ_FIRST(&z->by_age), *next; e != NULL; e = next) {
        next = TAILQ_NEXT(e, by_age);
        if (!e->unforked) {
            continue;
        }
        if (fl_extent_reserve(r, 2) != 0) { /* then all of it is lost to us */
            fl_fit_remove(r, e);
            atomic_store_explicit(&e->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
            continue;
        }
        fl_apart_return(r, fl_apart_claim(r, e, SIZE_MAX), true);
    }
}

static void note_absent(struct fl_region *r)
{
    FL_EACH_ZONE(r, z)
    {
        note_absent_of(r, z);
    }
}

void fl_region_fork_child(struct fl_region *r, struct fl_cache *survivor)
{
    fl_lock_release(&r->moving);
    fl_stock_fork_child(r);
    give_up_apart(r);
    note_absent(r);
    fl_pin_fork_child(r);
    r->repair.active = false;
    memset(&r->touch.slot, 0, sizeof r->touch.slot); /* whoever asked, or was asked, is not here */
    atomic_store(&r->touch.open, false);
    r->stats.populated_peak = r->populated_bytes;
    r->stats.in_use_peak = r->stats.in_use;
    r->has_worker = false;
    atomic_store(&r->wants_worker, r->populated_bytes >= FL_WORKER_FROM);
    r->survivor = survivor;
    r->orphans = true; /* drained by the first use, so that fork and exec costs nothing */
    fl_region_unlock(r);
}

void fl_region_adopt_orphans(struct fl_region *r)
{
    r->orphans = false;
    for (struct fl_cache *c = r->caches; c != NULL; c = c->next) {
        if (c != r->survivor) {
            (void)fl_cache_drain(r, c, 0);
            atomic_store(&c->owned, false);
        }
    }
}
