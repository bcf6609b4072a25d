/* Pieces: what is free below a huge page goes back by base pages.
 *
 * A purge takes whole huge pages; a free extent that has none is a piece of one or two that others
 * use. Once it is old enough, and an eighth of such a huge page is free and old (a thirty-second,
 * where memory goes back at once), the huge page is split and what is free of it dropped. The
 * kernel does not make it huge again by itself, for it is told not to (MADV_NOHUGEPAGE): it would
 * fill the holes. It is huge again once it was free as a whole.
 * A piece is looked at once: then it is `seen` until it is freed anew, until others of its huge
 * page make up the share, or until memory goes back at once. What was looked at then, and left, is
 * in no queue.
 * Pages of the kernel: MADV_DONTNEED of a part of a huge page gives nothing back before the kernel
 * splits it, which it does when memory is short; MADV_FREE of one base page of it splits it at
 * once.
 * State: r->pages.holes, r->pieces, the lists `pieces`, `seen` and `rough` of the zones; under the
 * region lock. */
#include "region/back/piece.h"
#include "region/free/isolated.h"
#include "region/state/budget.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

enum { LOOKS_A_LOCK = 16 };
enum { LATER_MOST = 32, CALM_TICKS = 36 };
enum { REFUSALS_MOST = 4 }; /* in a row; then the worker does not wait for the next try */

static struct fl_extent *oldest(struct fl_region *r, uint32_t age)
{
    struct fl_extent *best = NULL;

    fl_assert(fl_region_is_locked(r));
    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *head = TAILQ_FIRST(&z->pieces);
        best = head != NULL && (best == NULL || fl_extent_is_older(head, best)) ? head : best;
    }
    return best != NULL && fl_extent_is_aged(r, best, age) ? best : NULL;
}

/* The age at which pieces go that are to go by `age`. */
static uint32_t own_age(const struct fl_region *r, uint32_t age)
{
    bool tight = fl_region_is_tight(r);

    return age == 0 || tight ? age : age + r->pieces.later;
}

/* Steps that are longer than the age would dig holes in each, and fill them in the next, by base
 * pages. */
void fl_pieces_note_tick(struct fl_region *r)
{
    struct fl_pieces *p = &r->pieces;
    uint32_t now = fl_region_epoch(r);

    fl_assert(fl_region_is_locked(r));
    if (p->dug != 0 && p->refilled > p->dug / 2) {
        p->later = (uint32_t)fl_min(fl_max(1, (size_t)2 * p->later), LATER_MOST);
        p->dug = p->refilled = 0;
        p->judged = now;
    } else if (now - p->judged >= CALM_TICKS + 4 * p->later) {
        p->later /= 2;
        p->dug = p->refilled = 0;
        p->judged = now;
    }
}

/* Pages may be on their way to what is free beside a new block: a hole dug there would be filled
 * behind our back. */
static bool are_due(struct fl_region *r, uint32_t own)
{
    return !fl_supply_is_coming(r) && oldest(r, own) != NULL;
}

bool fl_pieces_are_due(struct fl_region *r, uint32_t age)
{
    return are_due(r, own_age(r, age));
}

/* One look at `e`, the oldest piece. False: no more of them now. */
static bool look_at(struct fl_region *r, struct fl_extent *e, uint32_t age, size_t *given)
{
    const struct fl_piece_terms terms = {age, false};
    struct fl_range all = fl_extent_range(e), part = fl_range_common(all, fl_huge_of(all.base));

    fl_assert(fl_region_is_locked(r));
    for (int i = 0; i < 2; i++) { /* it may reach into a second one */
        enum fl_piece_verdict v = fl_piece_judge(r, e, part, terms);
        if (v == FL_PIECE_NO_TABLE) {
            fl_region_unlock(r);
            bool reached = fl_holes_reach(&r->pages.holes, fl_range_end(part));
            fl_region_lock(r);
            if (!reached && !atomic_load(&r->pages.holes.making)) {
                fl_piece_note_refusal(r);
            }
            return reached; /* the next look is at whatever is the oldest by now */
        }
        if (v != FL_PIECE_LEAVE && (fl_huge_of(part.base).base == r->pieces.joining ||
                                    fl_extent_reserve(&r->space, 2) != 0)) {
            return false;
        }
        if (v == FL_PIECE_TAKE || (v == FL_PIECE_TAKE_AND_SPLIT &&
                                   fl_holes_split(&r->pages.holes, fl_huge_of(part.base).base))) {
            struct fl_extent *claimed =
                fl_isolated_claim_part(r, e, fl_piece_worthy(r, e, part, false));
            enum fl_piece_outcome o = fl_piece_give_unlocking(r, claimed, v, terms, given);
            if (o != FL_PIECE_NOT_THERE || e->base != all.base || e->len != all.len) {
                return o != FL_PIECE_REFUSED;
            }
        }
        part = (struct fl_range){fl_range_end(part), fl_range_end(all) - fl_range_end(part)};
    }
    fl_fit_note_seen(r, e, age != 0);
    return true;
}

bool fl_pieces_may_go(const struct fl_region *r)
{
    uint32_t now = fl_region_epoch(r);

    return (int32_t)(now - r->pieces.resume) >= 0;
}

bool fl_pieces_may_go_one_day(const struct fl_region *r)
{
    return r->pieces.refusals < REFUSALS_MOST || fl_pieces_may_go(r);
}

/* Of what is free now, not of what others free meanwhile: that might never end. */
size_t fl_pieces_give_back_unlocking(struct fl_region *r, uint32_t age, size_t want, unsigned most)
{
    struct fl_free free = fl_region_free(r);
    size_t given = 0, there = free.bytes - free.huge + fl_isolated_bytes(r);
    unsigned looks = (unsigned)fl_min(most, there >> fl_page.shift);
    uint32_t own = own_age(r, age);
    bool more = !fl_sys_is_confined() && (age == 0 || fl_pieces_may_go(r));

    fl_assert(fl_region_is_locked(r));
    want = fl_min(want, there);
    if (age == 0) {
        fl_fit_look_again(r);
    }
    for (unsigned i = 0; more && given < want && i < looks && are_due(r, own); i++) {
        more = look_at(r, oldest(r, own), own, &given);
        if (i % LOOKS_A_LOCK == LOOKS_A_LOCK - 1) { /* others wait */
            fl_region_unlock(r);
            fl_region_lock(r);
        }
    }
    r->pieces.dug += age != 0 ? given : 0;
    return given;
}
