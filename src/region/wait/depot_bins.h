/* The inside of one depot: its word, and its bins. */
#ifndef FL_REGION_DEPOT_BINS_H
#define FL_REGION_DEPOT_BINS_H

#include "region/region.h"

/* The bin of blocks of so many bytes, FL_DEPOT_BINS and more: there is none. */
static inline unsigned fl_depot_bin(size_t len)
{
    return (unsigned)(len >> fl_page.shift) - 1;
}

/* Does the bin hold something? A hint, where the depot is not held. */
static inline bool fl_depot_may_have(const struct fl_depot *d, unsigned bin)
{
    return (atomic_load_explicit(&d->some[bin / 64], memory_order_relaxed) >> bin % 64 & 1) != 0;
}
/* The first bin in [from, to] of which that is so; FL_DEPOT_BINS: there is none. */
unsigned fl_depot_first(const struct fl_depot *d, unsigned from, unsigned to);

/* The thread holds the depot from here to fl_depot_let_go, and a handler sees that it is at work in
 * the region: one that forks makes no whole child. False: another thread holds it. Signals:
 * safe. */
bool fl_depot_try_hold(struct fl_depot *d);
/* The same, waiting for a while. */
bool fl_depot_hold(struct fl_depot *d);
void fl_depot_let_go(struct fl_depot *d);

/* The rest wants the depot held.
 * The CACHED `e`, of at most FL_DEPOT_BINS base pages. */
void fl_depot_push(struct fl_depot *d, struct fl_extent *e);
/* The block that came last to the bin, which has one. */
struct fl_extent *fl_depot_pop(struct fl_depot *d, unsigned bin);
/* Up to `n` blocks, while there are more bytes than `most`; a chain by `next`. */
struct fl_extent *fl_depot_take_some(struct fl_depot *d, size_t n, size_t most);
/* Those that were freed `age` ticks ago; a chain by `next`. */
struct fl_extent *fl_depot_take_aged(const struct fl_region *r, struct fl_depot *d, uint32_t age);

#endif
