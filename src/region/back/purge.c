/* Gives memory back to the kernel, oldest first, in whole huge pages, then in pieces, with no lock
 * held during the system calls. */
#include "region/free/fit.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/supply/supply.h"
#include "region/state/tick.h"

#include <limits.h>

enum { IDLE_TICKS = 1 };
/* Without a worker: extents that one tick hides at most. */
enum { HIDDEN_ALONE = 16 };
enum { PIECES_ALONE = 256 };                         /* looks at pieces that it makes at most */
static const size_t purge_chunk = (size_t)256 << 20; /* bytes a munmap: some 0.7 ms */
static const size_t alone_most = (size_t)64 << 20;   /* bytes that one request gives back */

/* Of which zones memory goes back. */
struct whose {
    const struct fl_zone *but; /* not of this one; NULL: of all */
    bool of_node;              /* only what may lie on the node of `but` */
};
static const struct whose of_all = {NULL, false};

static bool is_of(const struct fl_region *r, const struct fl_zone *z, struct whose w)
{
    unsigned i = (unsigned)(z - r->zones.of), nodes = r->zones.placing.nodes;

    return z != w.but &&
           (!w.of_node || i >= 2 * nodes || i == (unsigned)(w.but - r->zones.of) + nodes);
}

/* The oldest extent of those zones, claimed, when it is due; NULL: nothing is. */
static struct fl_extent *claim_oldest(struct fl_region *r, uint32_t age, size_t most,
                                      struct whose w)
{
    struct fl_extent *e = NULL;

    fl_assert(fl_region_is_locked(r));
    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *head = is_of(r, z, w) ? TAILQ_FIRST(&z->by_age) : NULL;
        e = head != NULL && (e == NULL || fl_extent_is_older(head, e)) ? head : e;
    }
    return e != NULL && fl_extent_is_aged(r, e, age) && fl_extent_reserve(&r->space, 2) == 0
               ? fl_isolated_claim(r, e, most)
               : NULL;
}

static void purged(struct fl_region *r, struct fl_extent *e, bool gone)
{
    fl_assert(fl_region_is_locked(r));
    if (gone) {
        r->stats.purge_bytes += e->len;
        r->pressure.surplus -= fl_min(r->pressure.surplus, e->len);
    } else { /* too many maps, say: the kernel keeps the pages, so do we, and ask again later */
        atomic_store_explicit(&e->epoch, fl_region_epoch(r), memory_order_relaxed);
    }
    fl_isolated_return(r, e, gone);
}

/* `want` bytes, `piece` at a time. Lock: region; it is released meanwhile.
 *   piece   0: just as much as is wanted, in whole huge pages; else the last may be more */
static size_t purge_extents(struct fl_region *r, uint32_t age, size_t want, size_t piece,
                            struct whose w)
{
    uint64_t from_ns = fl_timeline_now();
    size_t given = 0;
    bool gone = true;

    fl_assert(fl_region_is_locked(r));
    while (gone && given < want) {
        size_t left = fl_align_up(fl_min(want - given, purge_chunk), fl_page.huge);
        struct fl_extent *e = claim_oldest(r, age, piece != 0 ? piece : left, w);
        if (e == NULL) {
            break;
        }
        fl_region_unlock(r);
        gone = fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
        fl_region_lock(r);
        given += gone ? e->len : 0;
        purged(r, e, gone);
    }
    fl_timeline_span(FL_TIMELINE_PURGE, from_ns, given);
    return given;
}

static size_t rest(size_t want, size_t given)
{
    return given < want ? want - given : 0;
}

/* Of what is free now, not of what others free meanwhile: that might never end. */
static size_t whole_there(struct fl_region *r)
{
    return fl_region_free(r).huge + fl_isolated_bytes(r);
}

void fl_region_note_kept(struct fl_region *r, size_t bytes)
{
    atomic_store_explicit(&r->kept, bytes, memory_order_relaxed);
}

void fl_region_note_locked(struct fl_region *r, bool locked)
{
    atomic_store_explicit(&r->locked, locked, memory_order_relaxed);
    atomic_store_explicit(&r->wants_worker, true,
                          memory_order_relaxed); /* what is old may go now */
}

/* Of `want` bytes of that age, those that may go. Lock: region. */
static size_t beyond_kept(const struct fl_region *r, uint32_t age, size_t want)
{
    size_t kept = age != 0 ? fl_region_kept(r) : 0, free = fl_region_free(r).bytes;

    return kept == 0 ? want : fl_min(want, rest(free, kept));
}

size_t fl_region_purge_some(struct fl_region *r, uint32_t age, size_t want)
{
    fl_region_lock(r);
    want = beyond_kept(r, age, want);
    if (want == 0) {
        fl_region_unlock(r);
        return 0;
    }
    (void)fl_cache_drain_all(r, age);
    size_t given = fl_refill_release_unlocking(r, age) + fl_pieces_smooth_unlocking(r, SIZE_MAX);
    size_t most = fl_min(rest(want, given), whole_there(r));
    given += purge_extents(r, age, most, purge_chunk, of_all);
    given += fl_pieces_give_back_unlocking(r, age, rest(want, given), UINT_MAX);
    fl_region_unlock(r);
    return given;
}

void fl_region_make_way_unlocking(struct fl_region *r, size_t len, unsigned zone)
{
    const struct fl_zone *z = &r->zones.of[zone];
    size_t own = fl_placing_moves(&r->zones.placing, zone)
                     ? z->free.huge + r->pages.reserve.ready_of[z - r->zones.of]
                     : 0;
    size_t held = fl_region_counted(r) + len, may = fl_supply_allowed(r, len);

    fl_assert(fl_region_is_locked(r));
    if (r->zones.placing.nodes != 0 && held > may && len > own) {
        (void)fl_pieces_smooth_unlocking(r, FL_SMOOTHED_MOST);
        (void)purge_extents(r, IDLE_TICKS, fl_min(held - may, len - own), purge_chunk,
                            (struct whose){.but = z});
    }
}

bool fl_region_clear_node_unlocking(struct fl_region *r, size_t len, unsigned zone)
{
    struct whose beside = {&r->zones.of[zone], true};

    fl_assert(fl_region_is_locked(r));
    if (zone >= r->zones.placing.nodes) {
        return false;
    }
    bool smoothed = fl_pieces_smooth_unlocking(r, FL_SMOOTHED_MOST) != 0;
    len = fl_align_up(len, fl_page.huge) *
          r->zones.placing.nodes; /* of pages in turns one node has a part */
    return purge_extents(r, 0, len, purge_chunk, beside) != 0 || smoothed;
}

/* The next extent with a page's worth of bytes that the kernel may not take yet, claimed; NULL:
 * there is none. Its edges never are the kernel's to take.
 *   page  a huge one, or, in a small cgroup, a base page */
static struct fl_extent *claim_hard(struct fl_region *r, struct fl_walk *w, size_t page)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e; (e = fl_fit_walk(r, w)) != NULL;) {
        struct fl_range inner = fl_range_inner(fl_extent_range(e), page);
        w->at = e->base + e->len;
        if (e->unreclaimable >= e->len - inner.len + page &&
            fl_holes_bare_in(&r->pages.holes, inner) == 0) {
            return fl_extent_reserve(&r->space, 2) == 0 ? fl_isolated_claim_part(r, e, inner)
                                                        : NULL;
        }
    }
    return NULL;
}

/* Marked pages stay until the kernel wants them: but in a tiny cgroup those that wait to be marked
 * are too many already. And what a child shares is passed over, and would be ours alone when the
 * child has ended. */
static bool is_dropped(const struct fl_region *r)
{
    return fl_region_is_scarce(r) &&
           (!r->pages.huge || atomic_load_explicit(&r->fork.shares, memory_order_relaxed));
}

bool fl_region_soften_part(struct fl_region *r, struct fl_range part)
{
    bool drops = is_dropped(r);
    /* Parts of huge pages are dropped for good once these are split, which the mark does. */
    bool taken = (drops && !r->pages.huge) || fl_sys.lazy_free(part) == 0;

    return drops ? fl_sys.advise(part, FL_ADVICE_DROP) == 0 : taken;
}

void fl_region_soften(struct fl_region *r)
{
    size_t page = fl_region_is_scarce(r) ? fl_page.base : fl_page.huge;
    bool taken = true;
    struct fl_walk w = {0};

    fl_region_lock(r);
    (void)fl_pieces_smooth_unlocking(r, SIZE_MAX);
    for (struct fl_extent *e; taken && (e = claim_hard(r, &w, page)) != NULL;) {
        fl_region_unlock(r);
        taken = fl_region_soften_part(r, fl_extent_range(e));
        fl_region_lock(r);
        fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
        e->unreclaimable = taken ? 0 : e->unreclaimable;
        fl_isolated_return(r, e, false);
    }
    fl_region_unlock(r);
}

size_t fl_region_purge(struct fl_region *r, uint32_t age)
{
    return fl_region_purge_some(r, age, SIZE_MAX);
}

size_t fl_region_trim(struct fl_region *r, size_t pad)
{
    if (pad == 0) {
        return fl_region_purge(r, 0);
    }
    fl_region_lock(r);
    (void)fl_cache_drain_all(r, 0);
    size_t free = fl_region_free(r).bytes, held = r->pages.reserve.held;
    size_t want = rest(free + held, pad), given = 0;
    if (held <= want) { /* else it is a part of what stays */
        given = fl_refill_release_unlocking(r, 0);
    }
    given += purge_extents(r, 0, fl_min(rest(want, given), whole_there(r)), 0, of_all);
    given += fl_pieces_give_back_unlocking(r, 0, rest(want, given), UINT_MAX);
    fl_region_unlock(r);
    return given;
}

void fl_region_take_loan_unlocking(struct fl_region *r, struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(g->loan.tries != 0 && g->supply.wanted != 0);
    g->loan.tries--;
    if (atomic_load_explicit(&r->fork.threads, memory_order_relaxed) != 0) {
        g->loan.tries = 0; /* the lock would not be had again before the fork is done */
        g->supply.wanted = 0;
        return;
    }
    fl_region_unlock(r);
    if (r->hooks.lend(fl_zone_class(r, g->asked.zone), g->supply.wanted) != 0) {
        g->loan.came = true;
    } else {
        g->loan.dry = (uint8_t)(g->asked.zone + 1);
    }
    g->supply.wanted = 0;
    fl_region_lock(r);
}

size_t fl_region_release_more(struct fl_region *r)
{
    return r->hooks.release_more != NULL ? r->hooks.release_more() : 0;
}

void fl_region_release(struct fl_region *r)
{
    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    r->stats.releases++;
    fl_region_unlock(r);
    fl_timeline_moment(FL_TIMELINE_RELEASE, 1);
    (void)fl_region_release_more(r);
    (void)fl_region_purge_some(r, 0, SIZE_MAX);
}

size_t fl_region_clear_out(struct fl_region *r)
{
    size_t given = fl_region_release_more(r) + fl_region_purge_some(r, 0, SIZE_MAX);

    fl_region_lock(r);
    given += fl_pieces_give_fringes_unlocking(r, true);
    fl_region_unlock(r);
    return given;
}

void fl_region_tick_alone(struct fl_region *r)
{
    bool tight = fl_region_is_tight(r);
    uint32_t age = tight ? 1 : FL_DECAY_TICKS;

    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    fl_pieces_note_tick(r);
    size_t most = beyond_kept(r, age, alone_most);
    if (most == 0) {
        r->clock.is_behind = false;
        fl_region_unlock(r);
        return;
    }
    (void)fl_cache_drain_all(r, age);
    size_t given = fl_refill_release_unlocking(r, age) + fl_pieces_smooth_unlocking(r, most);
    given += purge_extents(r, age, rest(most, given), most, of_all);
    size_t pieces = fl_pieces_give_back_unlocking(r, age, rest(most, given), PIECES_ALONE);
    r->clock.is_behind = given + pieces >= most || (pieces != 0 && fl_pieces_are_due(r, age));
    fl_advice_hide_unlocking(r, 1, HIDDEN_ALONE);
    fl_region_unlock(r);
}
