/* Blocks that are handed out with nothing behind them: the kernel fills them as they are
 * touched. */
#include "region/free/fit.h"
#include "region/serve/take.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/supply/carve.h"

/* Unpopulated, in whole huge pages, so that the kernel's fault does as much as it can. For large
 * requests only: a small one would take a huge page on its first touch. */
static struct fl_extent *take_lazy(struct fl_region *r, size_t len, size_t align, unsigned zone,
                                   bool leaves, bool on_touch)
{
    struct fl_extent *live = NULL;
    struct fl_fill_plan *g = FL_FILL_PLAN();

    fl_assert(fl_region_is_locked(r));
    fl_fill_begin(g);
    g->asked.len = fl_align_up(len, fl_page.huge);
    g->asked.align = fl_max(align, fl_page.huge);
    g->asked.zone = (uint8_t)zone;
    g->supply.leaves = leaves;
    g->asked.on_touch = on_touch;
    g->supply.refusal = FL_REFUSED_PLACE;
    g->account.exempt = g->asked.len;
    for (int i = 0; i < FL_FOREIGN_TRIES && g->supply.refusal == FL_REFUSED_PLACE; i++) {
        fl_zone_extend(r, g->asked.zone, g->asked.len, g->asked.align);
        struct fl_extent *e =
            fl_fit_first(&r->zones.of[g->asked.zone].empty, g->asked.len, g->asked.align);
        if (e == NULL || fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS) != 0) {
            break;
        }
        live = fl_carve(r, e, fl_align_up(e->base, g->asked.align), g->asked.len, g);
    }
    fl_fill_return(g);
    if (live != NULL) {
        r->held.populated -= live->len;
        live->content = FL_CONTENT_LAZY;
        live->left = 0; /* it is looked at as a whole */
        fl_region_count_lazy(r, len);
    }
    return live;
}

struct fl_extent *fl_take_lazy(struct fl_region *r, size_t len, size_t align, unsigned zone,
                               bool sparse)
{
    return take_lazy(r, len, align, zone, sparse, false);
}

struct fl_extent *fl_take_sparse(struct fl_region *r, size_t len, size_t align, unsigned zone)
{
    struct fl_extent *e = take_lazy(r, len, align, zone, true, true);

    fl_assert(fl_region_is_locked(r));
    if (e != NULL) {
        e->left = FL_LEFT_SPARSE | FL_LEFT_UNSEEN;
        r->history.sparse_live++;
    }
    return e;
}
