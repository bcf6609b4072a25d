/* See row.h. What waits is counted as in use: it is a 32nd of what was asked for in the row, four
 * blocks at most. */
#include "region/row.h"
#include "region/carve.h"
#include "region/counts.h"

enum {
    EACH = 32,  /* requests in a row, for one block more */
    MOST = 1024 /* that are counted */
};
static const size_t bytes_most = (size_t)512 << 10; /* that wait */

unsigned fl_row_of(struct fl_region *r, struct fl_cache *own, const struct fl_extent *e, size_t len)
{
    if (own == NULL || fl_region_is_scarce(r) || len > bytes_most / FL_CACHE_SLOTS ||
        (fl_cache_has_nodes(own) && e->zone != own->zone)) {
        return 1;
    }
    if (own->row_len != len) {
        own->row_len = len;
        own->row = 0;
    }
    own->row += own->row < MOST;
    size_t n = fl_min(fl_min(own->row / EACH, FL_CACHE_SLOTS) + 1, e->len / len);
    return (unsigned)fl_min(n, fl_extent_spare(&r->space, e->zone));
}

_Static_assert(FL_ROW_LONG == EACH * FL_CACHE_SLOTS, "as many are taken along as may be");

void fl_row_note_back(struct fl_cache *own, size_t blocks)
{
    uint32_t row = own->row; /* once: a handler may change it */

    own->row = row - (uint32_t)fl_min(row, 4 * blocks);
}

void fl_row_put_back(struct fl_region *r, struct fl_cache *own)
{
    if (own != NULL && !own->uses_shelves) {
        fl_row_note_back(own, fl_cache_drain(r, own, 0));
        if (FL_UNLIKELY(fl_magazine_of(own) != NULL)) {
            fl_magazine_emptied(own);
        }
    }
}

void fl_row_keep(struct fl_region *r, struct fl_cache *own, struct fl_extent *e)
{
    atomic_store_explicit(&e->state, FL_EXTENT_CACHED, memory_order_relaxed);
    struct fl_extent *old = fl_cache_put(r, own, e);
    if (old != NULL) {
        fl_region_defer(r, old);
    }
}

struct fl_extent *fl_row_take(struct fl_region *r, struct fl_cache *own, struct fl_extent *e,
                              size_t len, unsigned n)
{
    struct fl_extent *first = fl_carve_front(r, e, len);

    for (unsigned i = 1; i < n; i++) {
        fl_row_keep(r, own, fl_carve_front(r, e, len));
    }
    return first;
}
