/* Blocks back among the free ones, merged with their neighbours. Lock: region. */
#include "region/state/lock.h"
#include "region/free/fit.h"
#include "region/state/counts.h"

void fl_region_count_given(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED || fl_extent_state(e) == FL_EXTENT_LIVE);
    fl_region_count_gone(r, e);
    if (e->content == FL_CONTENT_LAZY) { /* whatever of it is there: the purge will tell */
        e->content = FL_CONTENT_POPULATED;
        e->left = FL_LEFT_HOLLOW;
        r->held.populated += e->len;
    }
    r->stats.gives++;
    fl_region_count_use(r, -(int64_t)e->len);
}

void fl_region_give_locked(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_region_count_given(r, e);
    (void)fl_fit_insert(r, e);
}

size_t fl_region_give_chain(struct fl_region *r, struct fl_extent *e)
{
    struct fl_extent *run = NULL;
    size_t before = r->held.in_use, n = 0;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *next; e != NULL; e = next, n++) {
        next = e->next;
        e->unreclaimable = e->len;
        fl_region_count_given(r, e);
        run = fl_fit_join(r, run, e);
    }
    if (run != NULL) {
        (void)fl_fit_insert(r, run);
    }
    fl_region_count_back(r, before - r->held.in_use);
    return n;
}
