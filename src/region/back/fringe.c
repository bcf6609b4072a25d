/* Fringes: what is free before and behind the whole huge pages of free extents, whatever its
 * age. */
#include "region/back/piece.h"
#include "region/free/fit.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

enum { FRINGES_A_LOCK = 64 };

/* How far a walk over the fringes has come: they are taken one by one, with no lock held. bare:
 * with their addresses, and pieces, too. */
struct fringes {
    struct fl_walk walk;
    bool bare;
};

/* What of `e` lies before or behind its whole huge pages, behind what was walked over, and may go;
 * len 0: nothing. */
static struct fl_range fringe(struct fl_region *r, struct fl_extent *e, const struct fringes *f,
                              enum fl_piece_verdict *out)
{
    struct fl_range all = fl_extent_range(e), inner = fl_range_inner(all, fl_page.huge);
    uintptr_t cut = fl_min(inner.base, fl_range_end(all));
    uintptr_t last = inner.len != 0 ? fl_range_end(inner) : cut;
    struct fl_range end[2] = {{all.base, cut - all.base}, {last, fl_range_end(all) - last}};

    for (int i = 0; i < 2 && (inner.len != 0 || f->bare); i++) {
        struct fl_range rest = {fl_max(end[i].base, f->walk.at), 0};
        rest.len = fl_range_end(end[i]) - fl_min(rest.base, fl_range_end(end[i]));
        *out = fl_piece_judge(r, e, rest, (struct fl_piece_terms){0, f->bare});
        if (*out == FL_PIECE_TAKE || *out == FL_PIECE_TAKE_AND_SPLIT) {
            return fl_piece_worthy(r, e, rest, f->bare);
        }
    }
    return (struct fl_range){all.base, 0};
}

static struct fl_extent *next_fringe(struct fl_region *r, struct fringes *f, struct fl_range *part,
                                     enum fl_piece_verdict *out)
{
    struct fl_extent *e;

    fl_assert(fl_region_is_locked(r));
    for (unsigned n = 1; (e = fl_fit_walk(r, &f->walk)) != NULL; n++) {
        *part = fringe(r, e, f, out);
        f->walk.at = part->len != 0 ? fl_range_end(*part) : e->base + e->len;
        if (part->len != 0) {
            return e;
        }
        if (n % FRINGES_A_LOCK == 0) { /* others wait */
            fl_region_unlock(r);
            fl_region_lock(r);
            if (fl_supply_is_coming(r)) {
                return NULL;
            }
        }
    }
    return NULL;
}

/* The table tells of all that was ever in use. The lock is released meanwhile. */
static void reach_all(struct fl_region *r)
{
    size_t used = atomic_load_explicit(&r->space.mapped, memory_order_relaxed) << fl_page.shift;
    uintptr_t end = r->space.base + fl_min(used, r->space.window.all.len);

    fl_assert(fl_region_is_locked(r));
    if (used == 0) {
        return;
    }
    fl_region_unlock(r);
    (void)fl_holes_reach(&r->pages.holes, end);
    fl_region_lock(r);
}

size_t fl_pieces_give_fringes_unlocking(struct fl_region *r, bool bare)
{
    size_t given = 0;
    enum fl_piece_outcome o = FL_PIECE_GONE;
    enum fl_piece_verdict v = FL_PIECE_LEAVE;
    struct fringes f = {.bare = bare};
    struct fl_range part;

    fl_assert(fl_region_is_locked(r));
    if (bare || fl_region_free(r).huge != 0) {
        reach_all(r);
    }
    for (struct fl_extent *e; o != FL_PIECE_REFUSED && !fl_supply_is_coming(r) &&
                              !fl_sys_is_confined() &&
                              (e = next_fringe(r, &f, &part, &v)) != NULL;) {
        uintptr_t huge = fl_huge_of(part.base).base;
        if (huge == r->pieces.joining || fl_extent_reserve(&r->space, 2) != 0 ||
            (v == FL_PIECE_TAKE_AND_SPLIT && !fl_holes_split(&r->pages.holes, huge))) {
            continue;
        }
        o = fl_piece_give_unlocking(r, fl_isolated_claim_part(r, e, part), v,
                                    (struct fl_piece_terms){0, bare}, &given);
    }
    return given;
}
