/* Free huge pages that were split for pieces go as a whole, and what they lie in is as any other
 * free memory then. See pieces.h. */
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

static const size_t smooth_most = (size_t)64 << 20; /* bytes a munmap, of base pages: some ms */

/* Free whole huge pages that are split, with their neighbours of that kind; NULL: there are
 * none. */
static struct fl_extent *claim_rough(struct fl_region *r, size_t most)
{
    fl_assert(fl_region_is_locked(r));
    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *e = TAILQ_FIRST(&z->rough);
        if (e != NULL) {
            struct fl_range inner = fl_extent_inner(e);
            struct fl_range run = fl_holes_next_split(&r->pages.holes, inner);
            run.len = fl_min(run.len, fl_max(fl_align_down(most, fl_page.huge), fl_page.huge));
            run.len = fl_min(run.len, smooth_most);
            return fl_extent_reserve(&r->space, 2) == 0 ? fl_isolated_claim_part(r, e, run) : NULL;
        }
    }
    return NULL;
}

/* Returns how far it went: to the end, or nowhere, where nothing of it is bare. */
static uintptr_t give(struct fl_region *r, struct fl_range range, bool bare)
{
    if (bare) {
        return fl_purge_whole(&r->pages, range);
    }
    bool gone = fl_vspace_decommit(&r->space.window, range) == 0;

    return gone ? fl_range_end(range) : range.base;
}

/* What lies below `upto` went alone. Returns bytes. */
static size_t note_part(struct fl_region *r, struct fl_extent *e, uintptr_t upto)
{
    struct fl_range part = {e->base, upto - e->base};
    size_t n = fl_holes_dig(&r->pages.holes, part);

    fl_assert(fl_region_is_locked(r));
    (void)fl_holes_strip(&r->pages.holes, part);
    e->holes += n;
    e->left |= FL_LEFT_HOLLOW;
    r->held.populated -= n;
    return n;
}

size_t fl_pieces_smooth_unlocking(struct fl_region *r, size_t most)
{
    size_t given = 0, done = 0;
    bool gone = true;

    fl_assert(fl_region_is_locked(r));
    most = fl_min(most, r->pages.holes.split * fl_page.huge);

    for (struct fl_extent *e; gone && done < most && (e = claim_rough(r, most - done)) != NULL;) {
        bool bare = fl_holes_bare_in(&r->pages.holes, fl_extent_range(e)) != 0;
        done += e->len;
        fl_region_unlock(r);
        uintptr_t upto = give(r, fl_extent_range(e), bare);
        fl_region_lock(r);
        gone = upto == e->base + e->len;
        size_t n = gone ? fl_extent_there(e) : note_part(r, e, upto);
        r->stats.purge_bytes += n;
        r->pressure.surplus -= fl_min(r->pressure.surplus, n);
        given += n;
        fl_isolated_return(r, e, gone);
    }
    return given;
}
