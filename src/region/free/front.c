/* The front of free memory that is there: most requests take that. Lock: that of its zone. */
#include "region/state/lock.h"
#include "region/free/fit.h"
#include "region/free/front.h"
#include "region/state/counts.h"

bool fl_carve_is_plain(const struct fl_extent *e, uintptr_t start, size_t len)
{
    return e->base == start && e->len >= len && e->content != FL_CONTENT_EMPTY && e->holes == 0 &&
           e->advised == 0;
}

struct fl_extent *fl_carve_front(struct fl_region *r, struct fl_extent *e, size_t len)
{
    struct fl_range part = {e->base, len};
    unsigned zone = e->zone;
    uint8_t left = e->left != 0 ? FL_LEFT_HOLLOW : 0;

    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_carve_is_plain(e, e->base, len));
    fl_fit_shorten(r, e, len);
    struct fl_extent *live = fl_extent_make(r, part, FL_CONTENT_POPULATED, zone);
    atomic_store_explicit(&live->state, FL_EXTENT_LIVE, memory_order_relaxed);
    live->left = left;
    fl_extent_lay_waypoints(&r->space, live);
    return live;
}
