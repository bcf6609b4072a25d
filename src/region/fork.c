/* fork(2): the child gets a region that is not in the middle of a change, and none of the memory
 * that is free.
 *
 * What both had would have to be copied, a base page at a time, when the parent writes it again: so
 * free huge pages are taken out of what is inherited (MADV_DONTFORK) until they are used again: see
 * fl_fork_undo. The child finds nothing mapped there. Where the window is reserved they are
 * inherited like the rest: a hole in the child would be free for any mapping.
 * What is live is inherited; see repair.c for what that does to the parent. */
#include "region/serve/shard.h"
#include "region/free/advised.h"
#include "region/free/isolated.h"
#include "region/state/budget.h"
#include "region/state/counts.h"
#include "region/supply/fill_plan.h"
#include "region/free/fit.h"
#include "region/fork.h"
#include "region/state/lock.h"

#include <string.h>

/* extents: each may make a map more, and the kernel allows so many */
enum { KEPT_MOST = 4096 };

static bool keep(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    e->advised |= FL_ADVISED_NO_FORK;
    if (fl_sys.advise(fl_extent_inner(e), FL_ADVICE_NO_FORK) == 0) {
        return true;
    }
    fl_fork_undo(r, e); /* too many maps: the kernel may have done a part */
    return false;
}

/* From here on an extent that says unforked is so as a whole; what it has merged with since the
 * last time may not be. */
static void keep_from_child(struct fl_region *r)
{
    struct fl_extent *e;
    unsigned n = 0;
    bool may = !fl_sys_is_confined();

    fl_assert(fl_region_is_locked(r));
    (void)fl_cache_drain_all(r, 0);
    (void)fl_pieces_smooth_unlocking(r, FL_SMOOTHED_MOST);
    FL_EACH_ZONE(r, z)
    {
        TAILQ_FOREACH(e, &z->by_age, by_age)
        {
            may = may && n++ < KEPT_MOST && keep(r, e);
            if (!may) { /* the rest is inherited */
                fl_fork_undo(r, e);
            }
        }
        TAILQ_FOREACH(e, &z->rough, by_age)
        {
            fl_fork_undo(r, e); /* from the last time, of a part that was not rough yet */
        }
    }
}

void fl_region_fork_lock(struct fl_region *r)
{
    fl_assert(!fl_region_is_locked(r));
    atomic_fetch_add_explicit(&r->fork.threads, 1, memory_order_relaxed);
    atomic_store_explicit(&r->fork.shares, true, memory_order_relaxed);
    fl_lock_acquire(&r->pages.asking);
    fl_region_lock(r);
    if (!r->space.window.reserved) {
        fl_lock_permit_calls(true); /* the process stands still anyway */
        keep_from_child(r);
        fl_lock_permit_calls(false);
    }
    fl_depot_fork_lock(r);
    fl_lock_acquire(&r->pages.move.lock); /* no descriptor of ours is open */
    fl_lock_hold_for_fork(&r->pages.move.lock);
    for (unsigned i = 0; i < fl_shards_open(&r->shards); i++) {
        fl_lock_hold_for_fork(&r->shards.of[i].lock);
    }
    fl_lock_hold_for_fork(&r->pages.asking);
}

void fl_region_fork_parent(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    atomic_fetch_sub_explicit(&r->fork.threads, 1, memory_order_relaxed);
    fl_depot_fork_parent(r);
    fl_lock_release_in_parent(&r->pages.move.lock);
    for (unsigned i = 0; i < fl_shards_open(&r->shards); i++) {
        fl_lock_release_in_parent(&r->shards.of[i].lock);
    }
    fl_lock_release_in_parent(&r->pages.asking);
    fl_region_leave();
    fl_region_lock(r);
    fl_repair_begin(r);
    fl_region_unlock(r); /* with what was freed meanwhile */
}

static bool is_piece(const struct fl_extent *e)
{
    return fl_extent_inner(e).len != e->len;
}

/* The threads that worked on them are not here: these extents may or may not be mapped, and what is
 * mapped where one is EMPTY may be another mapping's. Pieces become mapped, but for what the table
 * of holes has as bare; some of them may be absent, which comes back on touch. */
static void give_up_apart(struct fl_region *r)
{
    struct fl_extent *e;

    fl_assert(fl_region_is_locked(r));
    while ((e = TAILQ_FIRST(&r->isolated)) != NULL) {
        fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
        bool ours = e->content != FL_CONTENT_EMPTY || r->space.window.reserved;
        if (is_piece(e)) {
            e->left |= FL_LEFT_HOLLOW;
            fl_purge_settle_bare(&r->pages, fl_extent_range(e), e->zone);
            if (fl_extent_inner(e).len != 0) { /* what it was cut from may have been hidden */
                (void)fl_sys.advise(fl_extent_inner(e), FL_ADVICE_DUMP);
            }
            fl_isolated_return(r, e, false);
        } else if (ours && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0) {
            fl_isolated_return(r, e, true);
        } else { /* neither is sure: these addresses are not handed out any more */
            size_t had = fl_extent_populated(e);
            TAILQ_REMOVE(&r->isolated, e, by_age);
            atomic_store_explicit(&e->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
            r->held.populated -= had - fl_extent_populated(e);
        }
    }
    r->held.moving = r->held.filling = r->held.exempt = 0;
}

/* What was kept from the child: addresses with nothing behind them. */
static void note_absent_of(struct fl_region *r, struct fl_zone *z)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e = TAILQ_FIRST(&z->by_age), *next; e != NULL; e = next) {
        next = TAILQ_NEXT(e, by_age);
        fl_assert(fl_extent_state(e) == FL_EXTENT_FREE);
        if ((e->advised & FL_ADVISED_NO_FORK) == 0) {
            continue;
        }
        if (fl_extent_reserve(&r->space, 2) != 0) { /* then all of it is lost to us */
            fl_fit_remove(r, e);
            atomic_store_explicit(&e->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
            continue;
        }
        fl_isolated_return(r, fl_isolated_claim(r, e, SIZE_MAX), true);
    }
}

static void note_absent(struct fl_region *r)
{
    FL_EACH_ZONE(r, z)
    {
        note_absent_of(r, z);
    }
}

bool fl_region_fork_child(struct fl_region *r, struct fl_cache *survivor)
{
    bool whole = fl_lock_release_in_child(&r->pages.move.lock);

    atomic_store_explicit(&r->fork.threads, 0, memory_order_relaxed);
    for (unsigned i = 0; i < fl_shards_open(&r->shards); i++) {
        whole = fl_lock_release_in_child(&r->shards.of[i].lock) && whole;
    }
    fl_fill_fork_child();
    fl_look_fork_child(r);
    fl_depot_fork_child(r);
    fl_region_leave();
    atomic_store_explicit(&r->locked, false, memory_order_relaxed); /* mlockall(2) ends at fork */
    if (!whole) {
        return false;
    }
    fl_shards_fork_child(r);
    fl_region_lock(r);
    if (fl_unsettled()) { /* the interrupted call goes on, and may want free memory */
        note_absent(r);
        fl_region_unlock(r);
        return false;
    }
    fl_assert(fl_region_is_locked(r));
    fl_refill_fork_child(r);
    note_absent(r); /* first: pieces merge with what is there, and then are one with it */
    fl_lock_permit_calls(true); /* there is no other thread */
    give_up_apart(r);
    fl_pin_fork_child(r);
    fl_thin_fork_child(r);
    fl_lock_permit_calls(false);
    r->repair.active = false;
    r->pieces.joining = 0;
    atomic_store(&r->pages.holes.making, false);
    /* The thread that asked, or was asked, is not here. */
    memset(&r->touch.slot, 0, sizeof r->touch.slot);
    atomic_store(&r->touch.open, false);
    r->held.populated_peak = r->held.populated;
    r->held.in_use_peak = r->held.in_use_most = r->held.in_use;
    r->depots.seen = 0;
    r->clock.has_worker = r->clock.is_aging = false;
    atomic_store(&r->wants_worker, r->held.populated >= FL_WORKER_FROM);
    r->fork.survivor = survivor;
    r->fork.orphans = true; /* drained by the first use, so that fork and exec costs nothing */
    fl_unsettled_none();    /* what others had isolated was put back here */
    fl_region_unlock(r);
    return true;
}

void fl_region_adopt_orphans(struct fl_region *r)
{
    r->fork.orphans = false;
    fl_cache_drain_orphans(r, r->fork.survivor);
}
