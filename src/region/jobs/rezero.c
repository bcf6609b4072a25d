/* Clears free memory while the program does something else, so that calloc finds zeros.
 *
 * Only when no request has come for a while, a piece at a time, with stores that leave the caches
 * alone. It may be in vain: so it lives on a credit, which requests for zeroed memory renew.
 * State: r->rezero, under the region lock. */
#include "region/free/fit.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

static const size_t piece_most = (size_t)16 << 20;                    /* bytes: some 0.2 ms */
static const uint64_t rest_least = 100000000, rest_most = 1600000000; /* ns */
static const size_t credit_first = (size_t)8 << 30;                   /* bytes */

void fl_rezero_start(struct fl_region *r)
{
    r->rezero = (struct fl_rezero){.credit = credit_first, .rest_ns = rest_least};
}

/* What of the whole huge pages of the FREE extent `e` is not known to be zero: a piece beside what
 * is, so that they become one; len 0: less than a huge page. Whole huge pages: in a child of fork
 * the piece is EMPTY, and fl_fork_undo sees no others. */
static struct fl_range dirty_piece(const struct fl_extent *e)
{
    struct fl_range inner = fl_extent_inner(e);
    struct fl_range zeroed = fl_range_inner(fl_range_common(inner, e->zeroed), fl_page.huge);
    uintptr_t end = fl_range_end(inner), zeroed_end = fl_range_end(zeroed);

    if (zeroed.len == 0) {
        return (struct fl_range){inner.base, fl_min(inner.len, piece_most)};
    }
    if (end > zeroed_end) {
        return (struct fl_range){zeroed_end, fl_min(end - zeroed_end, piece_most)};
    }
    size_t len = fl_min(zeroed.base - inner.base, piece_most);
    return (struct fl_range){zeroed.base - len, len};
}

/* What of it may never have been touched is looked at before it is cleared. */
static bool may_know(const struct fl_extent *e)
{
    return e->left == 0 || fl_clear_may_look();
}

/* The lowest first, as requests have them. What else an extent has is there at the next call. */
static struct fl_extent *claim_dirty(struct fl_region *r, struct fl_walk *w)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e; (e = fl_fit_walk(r, w)) != NULL;) {
        bool may = e->queue == FL_QUEUE_AGE && may_know(e);
        struct fl_range piece = may ? dirty_piece(e) : (struct fl_range){e->base, 0};
        w->at = piece.len != 0 ? e->base : e->base + e->len;
        if (piece.len != 0) {
            return fl_extent_reserve(&r->space, 2) == 0 ? fl_isolated_claim_part(r, e, piece)
                                                        : NULL;
        }
    }
    return NULL;
}

static bool may_clear(const struct fl_region *r)
{
    return r->rezero.credit >= piece_most && !fl_region_is_scarce(r) && !fl_region_is_tight(r);
}

/* What was never touched is zero, and stays away. Returns bytes. */
static size_t clear(struct fl_region *r, const struct fl_extent *e)
{
    if (e->left != 0) {
        return fl_clear_touched(&r->pages, fl_extent_range(e), fl_supply_is_coming(r),
                                fl_zero_streaming);
    }
    fl_zero_streaming((void *)e->base, e->len); /* NOLINT(performance-no-int-to-ptr) */
    return e->len;
}

uint64_t fl_region_rezero(struct fl_region *r)
{
    struct fl_rezero *z = &r->rezero;
    struct fl_walk w = {0};
    struct fl_extent *e = NULL;
    bool pause = false; /* first touches wait for this thread: a piece a run */

    fl_region_lock(r);
    uint64_t seen = r->stats.takes;
    bool quiet = seen == z->seen;
    z->seen = seen;
    z->rest_ns = quiet ? rest_least : z->rest_ns < rest_most ? 2 * z->rest_ns : rest_most;
    while (!pause && quiet && seen == r->stats.takes && may_clear(r) &&
           (e = claim_dirty(r, &w)) != NULL) {
        fl_region_unlock(r);
        size_t cleared = clear(r, e);
        fl_region_lock(r);
        fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
        z->credit -= fl_min(z->credit, cleared);
        r->stats.rezero_bytes += cleared;
        e->zeroed = fl_extent_range(e);
        e->unreclaimable = e->len; /* written anew: the kernel may not take it any more */
        fl_isolated_return(r, e, false);
        pause = r->config.first_touch;
    }
    bool more = may_clear(r) && fl_region_free(r).huge != 0 && !(quiet && e == NULL);
    if (!more) { /* the next free calls: it may be worth a look then */
        atomic_store(&r->wants_worker, true);
    }
    fl_region_unlock(r);
    return !more ? UINT64_MAX : pause ? 0 : z->rest_ns;
}
