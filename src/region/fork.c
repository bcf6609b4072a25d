/* fork(2): the child gets a region that nobody is in the middle of changing. */
#include "region/internal.h"

bool fl_region_fork_prepare(struct fl_region *r)
{
    if (fl_region_busy()) {
        return false;
    }
    fl_region_lock(r);
    fl_lock_acquire(&r->moving); /* no descriptor of ours is open */
    return true;
}

void fl_region_fork_parent(struct fl_region *r)
{
    fl_lock_release(&r->moving);
    fl_region_unlock(r);
}

void fl_region_fork_child(struct fl_region *r, struct fl_cache *survivor)
{
    struct fl_extent *e;

    fl_lock_release(&r->moving);
    r->leaving = 0;
    fl_stock_fork_child(r);
    /* The threads that were at it are not here: these extents may or may not be mapped. */
    while ((e = TAILQ_FIRST(&r->apart)) != NULL) {
        if (fl_vspace_decommit(&r->window, fl_extent_range(e)) == 0) {
            fl_apart_return(r, e, true);
        } else { /* neither is sure: nobody gets these addresses any more */
            TAILQ_REMOVE(&r->apart, e, by_age);
        }
    }
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
