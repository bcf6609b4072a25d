/* Huge pages that were split for pieces become huge again: the worker collapses those that have no
 * hole left and were in use as a whole at two looks, some seconds apart.
 * State: r->pieces, under the region lock. */
#include "region/state/lock.h"

enum { MENDS_A_LOCK = 16 };
static const uint64_t mend_every = (uint64_t)5 * 1000000000; /* ns */

/* Is all of it in use, and as we gave it out? */
static bool is_full(struct fl_region *r, struct fl_range huge)
{
    const struct fl_extent *e = fl_extent_in_use_around(&r->space, huge.base);
    bool full = e != NULL;

    while (full && e != NULL) {
        uint32_t state = fl_extent_state(e);
        uintptr_t end = e->base + e->len;
        full = (state == FL_EXTENT_LIVE || state == FL_EXTENT_CACHED) &&
               fl_extent_is_populated(e) && !fl_extent_is_user_remapped(e);
        e = end < fl_range_end(huge) ? fl_extent_in_use_around(&r->space, end) : NULL;
        full = full && (e != NULL || end >= fl_range_end(huge));
    }
    return full;
}

/* The next huge page that was full at the last look, too; 0: none among the next so many, or, with
 * the cursor at 0, at all. */
static uintptr_t find_full(struct fl_region *r)
{
    struct fl_pieces *p = &r->pieces;
    uintptr_t end =
        r->space.base + atomic_load_explicit(&r->pages.holes.reach, memory_order_relaxed);

    fl_assert(fl_region_is_locked(r));
    for (int i = 0; i < MENDS_A_LOCK; i++) {
        struct fl_range rest = {fl_max(p->cursor, r->space.base), 0};
        rest.len = end - fl_min(rest.base, end);
        uintptr_t huge = fl_holes_first_split(&r->pages.holes, rest);
        if (huge == fl_range_end(rest)) {
            p->cursor = 0;
            return 0;
        }
        p->cursor = huge + fl_page.huge;
        bool full = is_full(r, fl_huge_of(huge));
        bool was = fl_holes_mark(&r->pages.holes, huge, full);
        p->found |= full && !was;
        if (full && was) {
            return huge;
        }
    }
    return 0;
}

/* Blocks may be in use that were touched in part: they would grow. It becomes huge only where all
 * of it is there. */
static void mend(struct fl_region *r, uintptr_t huge)
{
    fl_assert(fl_region_is_locked(r));
    r->pieces.mending = huge; /* no piece of it goes meanwhile */
    fl_unsettled_begin();
    fl_region_unlock(r);
    bool worth = fl_collapse_is_worth_it(fl_huge_of(huge));
    bool whole = worth && fl_collapse_one(fl_huge_of(huge));
    fl_region_lock(r);
    fl_unsettled_end();
    r->pieces.mending = 0;
    if (!fl_holes_is_split(&r->pages.holes, huge)) { /* freed as a whole, and given back */
        return;
    }
    if (!worth || !is_full(r, fl_huge_of(huge))) { /* what is free of it counts as split */
        (void)fl_holes_mark(&r->pages.holes, huge, false);
        return;
    }
    fl_holes_join(&r->pages.holes, huge);
    if (!whole) { /* the worker tries it again, with what fork has split */
        atomic_store_explicit(&r->pages.pace.left_base, true, memory_order_relaxed);
    }
    __atomic_fetch_add(&r->stats.repair_bytes, whole ? fl_page.huge : 0, __ATOMIC_RELAXED);
}

/* After a look at all of them. Without a request since the last one nothing new can be full. */
static uint64_t end_of_looks(struct fl_region *r, uint64_t now)
{
    struct fl_pieces *p = &r->pieces;
    bool again = p->found || p->seen != r->stats.takes;

    fl_assert(fl_region_is_locked(r));
    p->due_ns = now + mend_every;
    p->seen = r->stats.takes;
    p->found = false;
    if (!again) { /* the next free calls */
        atomic_store(&r->wants_worker, true);
    }
    return again ? mend_every : UINT64_MAX;
}

uint64_t fl_pieces_mend(struct fl_region *r)
{
    uint64_t wait = 0, now = fl_sys.now_ns();

    fl_region_lock(r);
    bool tight = fl_region_is_tight(r) || fl_region_is_scarce(r);
    if (!r->pages.huge || r->pages.holes.split == 0) {
        wait = UINT64_MAX;
    } else if (tight || r->pieces.mending != 0) {
        wait = mend_every;
    } else if (r->pieces.cursor == 0 && now < r->pieces.due_ns) {
        wait = r->pieces.due_ns - now;
    } else {
        uintptr_t huge = find_full(r);
        if (huge != 0) {
            mend(r, huge);
        }
        wait = huge == 0 && r->pieces.cursor == 0 ? end_of_looks(r, now) : 0;
    }
    fl_region_unlock(r);
    return wait;
}
