/* One piece: may it go, and how it does. See pieces.c. */
#include "region/back/piece.h"
#include "region/free/fit.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

/* The share of a huge page that has to be free: by age; at once. */
enum { SHARE_OLD = 8, SHARE_NOW = 32 };
enum { REFUSED_TICKS = 16 }; /* after the kernel's refusal, without a try */

static bool is_free(const struct fl_extent *e)
{
    return fl_extent_state(e) == FL_EXTENT_FREE && fl_extent_is_populated(e);
}

/* The extent that ends where `e` begins, by its last page; NULL: none that is known so. */
static struct fl_extent *before(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_extent *left = NULL;

    fl_assert(fl_region_is_locked(r));
    if (e->base == r->space.first || !fl_region_look(r, e->base - fl_page.base, &left)) {
        return NULL;
    }
    left = left->content == FL_CONTENT_INNER ? left->inner->outer : left;
    return left != NULL && left->base + left->len == e->base ? left : NULL;
}

/* The lowest extent that reaches into `huge`, as `e` does. */
static struct fl_extent *lowest_in(struct fl_region *r, struct fl_extent *e, struct fl_range huge)
{
    struct fl_extent *left;

    while (e->base > huge.base && (left = before(r, e)) != NULL) {
        e = left;
    }
    return e;
}

static struct fl_extent *after(struct fl_region *r, const struct fl_extent *e, struct fl_range huge)
{
    uintptr_t end = e->base + e->len;

    return end < fl_range_end(huge) ? fl_extent_around(&r->space, end) : NULL;
}

/* Bytes of the huge page that are free, old enough and there. */
static size_t due_in(struct fl_region *r, struct fl_extent *e, struct fl_range huge, uint32_t age)
{
    size_t sum = 0;

    fl_assert(fl_region_is_locked(r));
    for (e = lowest_in(r, e, huge); e != NULL; e = after(r, e, huge)) {
        if (is_free(e) && fl_extent_is_aged(r, e, age)) {
            sum += fl_range_common(fl_extent_range(e), huge).len;
        }
    }
    return sum;
}

/* Those that were not worth it by themselves. */
static void requeue(struct fl_region *r, struct fl_extent *e, struct fl_range huge)
{
    fl_assert(fl_region_is_locked(r));
    for (e = lowest_in(r, e, huge); e != NULL; e = after(r, e, huge)) {
        if (is_free(e) && (e->queue == FL_QUEUE_NONE || e->queue == FL_QUEUE_SEEN)) {
            fl_fit_unqueue(r, e);
            fl_fit_enqueue(r, e);
        }
    }
}

static size_t share(uint32_t age)
{
    return age == 0 ? SHARE_NOW : SHARE_OLD;
}

/* Is there nothing of it to give back? */
static bool is_gone(struct fl_region *r, const struct fl_extent *e, struct fl_range part, bool bare)
{
    struct fl_holes *h = &r->pages.holes;

    if (bare) {
        return fl_holes_is_too_short(h, part.len) || fl_holes_bare_in(h, part) == part.len;
    }
    return e->holes != 0 && fl_holes_in(h, part) == part.len;
}

enum fl_piece_verdict fl_piece_judge(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                                     struct fl_piece_terms terms)
{
    struct fl_range huge = fl_huge_of(part.base);

    if (part.len == 0 || is_gone(r, e, part, terms.bare)) {
        return FL_PIECE_LEAVE;
    }
    if (fl_holes_is_split(&r->pages.holes, huge.base)) {
        return FL_PIECE_TAKE;
    }
    if (due_in(r, e, huge, terms.age) < huge.len / share(terms.age)) {
        return FL_PIECE_LEAVE;
    }
    return huge.base - r->space.base <
                   atomic_load_explicit(&r->pages.holes.reach, memory_order_relaxed)
               ? FL_PIECE_TAKE_AND_SPLIT
               : FL_PIECE_NO_TABLE;
}

/* The first of it that is mapped, since the kernel refuses what it is told of more, and that is not
 * gone by itself. */
struct fl_range fl_piece_worthy(struct fl_region *r, const struct fl_extent *e,
                                struct fl_range part, bool bare)
{
    struct fl_range rest = part, run = part;

    while (r->pages.holes.bare != 0) {
        run = fl_holes_next_bare(&r->pages.holes, rest, false);
        if (bare || run.len == 0 || !is_gone(r, e, run, false)) {
            break;
        }
        rest = (struct fl_range){fl_range_end(run), fl_range_end(part) - fl_range_end(run)};
    }
    return run;
}

/* What was never touched lies beside a block that was not either, mostly: were their huge page
 * split, base pages would come to the block, and nothing is gained. No lock held. */
static FL_APART bool is_there(const struct fl_extent *e, uint32_t age)
{
    size_t there = 0;

    return (e->left & FL_LEFT_HOLLOW) == 0 || fl_sys.resident(fl_extent_range(e), &there) != 0 ||
           there >= e->len / share(age);
}

static void note_gone(struct fl_region *r, struct fl_extent *e, bool bare, size_t *given)
{
    size_t n = fl_holes_dig(&r->pages.holes, fl_extent_range(e));
    size_t stripped = bare ? fl_holes_strip(&r->pages.holes, fl_extent_range(e)) : 0;

    fl_assert(fl_region_is_locked(r));
    fl_assert(r->held.populated >= n);
    e->holes += n;
    e->left |= FL_LEFT_HOLLOW;
    r->held.populated -= n;
    r->stats.purge_bytes += n;
    r->pressure.surplus -= fl_min(r->pressure.surplus, n);
    *given += fl_max(n, stripped);
    r->pieces.refusals = 0;
}

/* Nothing has come of it: the huge page is as it was, unless another try, which may be under way,
 * has begun since `tries`. Then it stays split. The lock is released where the kernel was
 * `told`. */
static void undo_split(struct fl_region *r, struct fl_range huge, uint64_t tries, bool told)
{
    fl_assert(fl_region_is_locked(r));
    told = told && r->pages.huge;
    if (r->pieces.tries != tries || (told && r->pieces.joining != 0)) {
        return;
    }
    fl_holes_join(&r->pages.holes, huge.base);
    if (told) {
        r->pieces.joining = huge.base; /* it is not split meanwhile */
        fl_region_unlock(r);
        fl_purge_undo(huge);
        fl_region_lock(r);
        r->pieces.joining = 0;
    }
}

void fl_piece_note_refusal(struct fl_region *r)
{
    uint32_t now = fl_region_epoch(r);

    fl_assert(fl_region_is_locked(r));
    r->pieces.resume = now + REFUSED_TICKS;
    r->pieces.refusals++;
}

/* `e` is claimed, and FREE again afterwards. */
enum fl_piece_outcome fl_piece_give_unlocking(struct fl_region *r, struct fl_extent *e,
                                              enum fl_piece_verdict v, struct fl_piece_terms terms,
                                              size_t *given)
{
    struct fl_range huge = fl_huge_of(e->base);
    uint64_t tries = ++r->pieces.tries;

    fl_assert(fl_region_is_locked(r));
    fl_region_unlock(r);
    bool there = v == FL_PIECE_TAKE || terms.bare || is_there(e, terms.age);
    bool gone = there && fl_purge_piece(&r->pages, fl_extent_range(e));
    bool bare = gone && terms.bare && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
    fl_region_lock(r);
    if (gone) {
        note_gone(r, e, bare, given);
    } else if (v == FL_PIECE_TAKE_AND_SPLIT) {
        undo_split(r, huge, tries, there);
    }
    if (there && !gone) { /* locked in memory, say: no second try soon */
        atomic_store_explicit(&e->epoch, fl_region_epoch(r), memory_order_relaxed);
        fl_piece_note_refusal(r);
    }
    fl_isolated_return(r, e, false);
    if (gone && v == FL_PIECE_TAKE_AND_SPLIT) {
        requeue(r, e, huge);
    }
    if (gone && bare == terms.bare) {
        return FL_PIECE_GONE;
    }
    return there ? FL_PIECE_REFUSED : FL_PIECE_NOT_THERE;
}
