/* What of a fill plan no move has brought: the kernel's. No lock held. */
#include "region/supply/supply.h"

FL_APART void fl_fill_populate(struct fl_region *r, const struct fl_fill_plan *g)
{
    /* When tight the kernel may have taken what moved; what is to stay waits for no touch. */
    bool all = fl_region_is_tight(r) || (g->asked.to_stay && g->todo.hollow);
    unsigned helpers = g->asked.threads != 0 ? g->asked.threads - 1u : FL_POPULATE_HELPERS;
    uint64_t from_ns = fl_timeline_now(), brought = 0;

    fl_assert(g->todo.nfresh <= FL_FILL_FRESH && !fl_lock_is_held(FL_RANK_REGION, FL_SHARDS));
    for (unsigned i = 0; i < g->todo.nfresh; i++) {
        size_t done = all ? 0 : g->done.done[i];
        fl_assert(done <= g->todo.fresh[i].len);
        struct fl_range rest = {g->todo.fresh[i].base + done, g->todo.fresh[i].len - done};
        if (rest.len != 0) {
            int rc = fl_populate_by(&r->pages, rest, g->todo.live, fl_populate_piece, helpers);
            __atomic_fetch_add(&r->stats.populate_bytes, rest.len, __ATOMIC_RELAXED);
            __atomic_fetch_add(&r->stats.populate_errors, rc != 0, __ATOMIC_RELAXED);
            brought += rest.len;
        }
    }
    fl_timeline_brought(from_ns, brought);
}

/* The first huge pages of `range` that are split, as far as it goes; len 0: there are none. No lock
 * held. */
static struct fl_range next_split(const struct fl_region *r, struct fl_range range)
{
    uintptr_t at = range.base, end = fl_range_end(range), from = end;

    for (bool split = false; at < end; at = fl_align_down(at, fl_page.huge) + fl_page.huge) {
        bool is = fl_holes_is_split(&r->pages.holes, at);
        if (split && !is) {
            break;
        }
        from = is && !split ? at : from;
        split = is;
    }
    return (struct fl_range){from, fl_min(at, end) - from};
}

/* Holes in what was free, of the request's own part. Of huge pages that are not split nothing is
 * brought in. */
FL_APART void fl_fill_holes(struct fl_region *r, const struct fl_fill_plan *g)
{
    bool fills =
        g->todo.holes != 0 && !g->supply.leave_holes && !g->asked.on_touch && !fl_sys_is_confined();
    struct fl_range rest = g->todo.back, split;

    fl_assert(!fl_lock_is_held(FL_RANK_REGION, FL_SHARDS));
    while (FL_UNLIKELY(fills) && (split = next_split(r, rest)).len != 0) {
        int rc = fl_populate_pieces(&r->pages, split, g->todo.live, fl_populate_piece);
        __atomic_fetch_add(&r->stats.populate_errors, rc != 0, __ATOMIC_RELAXED);
        rest = (struct fl_range){fl_range_end(split), fl_range_end(rest) - fl_range_end(split)};
    }
    if (FL_UNLIKELY(fills)) {
        __atomic_fetch_add(&r->stats.populate_bytes, g->todo.holes, __ATOMIC_RELAXED);
    }
}
