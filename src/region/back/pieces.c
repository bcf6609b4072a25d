/* Pieces: what is free below a huge page goes back by base pages.
 *
 * A purge takes whole huge pages; a free extent that has none is a piece of one or two that others
 * use. Once it is old enough, and an eighth of such a huge page is free and old (a thirty-second,
 * where memory goes back at once), the huge page is split and what is free of it dropped. The
 * kernel does not make it huge again by itself, for it is told not to (MADV_NOHUGEPAGE): it would
 * fill the holes. See mend.c for who does.
 * A piece is looked at once: then it is `seen` until it is freed anew, until others of its huge
 * page make up the share, or until memory goes back at once. What was looked at then, and left, is
 * in no queue.
 * Pages of the kernel: MADV_DONTNEED of a part of a huge page gives nothing back before the kernel
 * splits it, which it does when memory is short; MADV_FREE of one base page of it splits it at
 * once.
 * State: r->holes, r->pieces, the lists `pieces`, `seen` and `rough` of the zones; under the region
 * lock. */
#include "region/free/isolated.h"
#include "region/state/budget.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"
#include "region/supply/supply.h"

/* The share of a huge page that has to be free: by age; at once. */
enum { SHARE_OLD = 8, SHARE_NOW = 32 };
enum { LOOKS_A_LOCK = 16 };
enum { LATER_MOST = 32, CALM_TICKS = 36 };
enum { REFUSED_TICKS = 16 }; /* after the kernel's refusal, without a try */
enum { REFUSALS_MOST = 4 };  /* in a row; then the worker does not wait for the next try */
enum { FRINGES_A_LOCK = 64 };

/* What goes: what was freed `age` ticks ago. bare: with its addresses. */
struct terms {
    uint32_t age;
    bool bare;
};

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
    bool tight = atomic_load_explicit(&r->tight, memory_order_relaxed);

    return age == 0 || tight ? age : age + r->pieces.later;
}

/* Steps that are longer than the age would dig holes in each, and fill them in the next, by base
 * pages. */
void fl_pieces_note_tick(struct fl_region *r)
{
    struct fl_pieces *p = &r->pieces;
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);

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

static bool is_free(const struct fl_extent *e)
{
    return atomic_load_explicit(&e->state, memory_order_relaxed) == FL_EXTENT_FREE &&
           fl_extent_is_populated(e);
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

enum verdict { LEAVE, TAKE, TAKE_AND_SPLIT, NO_TABLE };

/* Is there nothing of it to give back? */
static bool is_gone(struct fl_region *r, const struct fl_extent *e, struct fl_range part, bool bare)
{
    struct fl_holes *h = &r->pages.holes;

    if (bare) {
        return fl_holes_is_too_short(h, part.len) || fl_holes_bare_in(h, part) == part.len;
    }
    return e->holes != 0 && fl_holes_in(h, part) == part.len;
}

static FL_APART enum verdict judge(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                                   struct terms terms)
{
    struct fl_range huge = fl_huge_of(part.base);

    if (part.len == 0 || is_gone(r, e, part, terms.bare)) {
        return LEAVE;
    }
    if (fl_holes_is_split(&r->pages.holes, huge.base)) {
        return TAKE;
    }
    if (due_in(r, e, huge, terms.age) < huge.len / share(terms.age)) {
        return LEAVE;
    }
    return huge.base - r->space.base <
                   atomic_load_explicit(&r->pages.holes.reach, memory_order_relaxed)
               ? TAKE_AND_SPLIT
               : NO_TABLE;
}

/* The first of it that is mapped, since the kernel refuses what it is told of more, and that is not
 * gone by itself. */
static struct fl_range worthy(struct fl_region *r, const struct fl_extent *e, struct fl_range part,
                              bool bare)
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
 * has begun since `tries`. Then it stays split, until it is mended. The lock is released where the
 * kernel was `told`. */
static void undo_split(struct fl_region *r, struct fl_range huge, uint64_t tries, bool told)
{
    fl_assert(fl_region_is_locked(r));
    told = told && r->pages.huge;
    if (r->pieces.tries != tries || (told && r->pieces.mending != 0)) {
        return;
    }
    fl_holes_join(&r->pages.holes, huge.base);
    if (told) {
        r->pieces.mending = huge.base; /* it is not split meanwhile */
        fl_region_unlock(r);
        fl_purge_undo(huge);
        fl_region_lock(r);
        r->pieces.mending = 0;
    }
}

enum outcome { GONE, NOT_THERE, REFUSED };

static void note_refusal(struct fl_region *r)
{
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    fl_assert(fl_region_is_locked(r));
    r->pieces.resume = now + REFUSED_TICKS;
    r->pieces.refusals++;
}

/* `e` is claimed, and FREE again afterwards. */
static enum outcome give_apart(struct fl_region *r, struct fl_extent *e, enum verdict v,
                               struct terms terms, size_t *given)
{
    struct fl_range huge = fl_huge_of(e->base);
    uint64_t tries = ++r->pieces.tries;

    fl_assert(fl_region_is_locked(r));
    fl_region_unlock(r);
    bool there = v == TAKE || terms.bare || is_there(e, terms.age);
    bool gone = there && fl_purge_piece(&r->pages, fl_extent_range(e));
    bool bare = gone && terms.bare && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
    fl_region_lock(r);
    if (gone) {
        note_gone(r, e, bare, given);
    } else if (v == TAKE_AND_SPLIT) {
        undo_split(r, huge, tries, there);
    }
    if (there && !gone) { /* locked in memory, say: no second try soon */
        atomic_store_explicit(&e->epoch, atomic_load_explicit(&r->epoch, memory_order_relaxed),
                              memory_order_relaxed);
        note_refusal(r);
    }
    fl_isolated_return(r, e, false);
    if (gone && v == TAKE_AND_SPLIT) {
        requeue(r, e, huge);
        atomic_store(&r->wants_worker, true); /* to make it whole again one day */
    }
    if (gone && bare == terms.bare) {
        return GONE;
    }
    return there ? REFUSED : NOT_THERE;
}

/* One look at `e`, the oldest piece. False: no more of them now. */
static bool look_at(struct fl_region *r, struct fl_extent *e, uint32_t age, size_t *given)
{
    const struct terms terms = {age, false};
    struct fl_range all = fl_extent_range(e), part = fl_range_common(all, fl_huge_of(all.base));

    fl_assert(fl_region_is_locked(r));
    for (int i = 0; i < 2; i++) { /* it may reach into a second one */
        enum verdict v = judge(r, e, part, terms);
        if (v == NO_TABLE) {
            fl_region_unlock(r);
            bool reached = fl_holes_reach(&r->pages.holes, fl_range_end(part));
            fl_region_lock(r);
            if (!reached && !atomic_load(&r->pages.holes.making)) {
                note_refusal(r);
            }
            return reached; /* the next look is at whatever is the oldest by now */
        }
        if (v != LEAVE && (fl_huge_of(part.base).base == r->pieces.mending ||
                           fl_extent_reserve(&r->space, 2) != 0)) {
            return false;
        }
        if (v == TAKE ||
            (v == TAKE_AND_SPLIT && fl_holes_split(&r->pages.holes, fl_huge_of(part.base).base))) {
            struct fl_extent *claimed = fl_isolated_claim_part(r, e, worthy(r, e, part, false));
            enum outcome o = give_apart(r, claimed, v, terms, given);
            if (o != NOT_THERE || e->base != all.base || e->len != all.len) {
                return o != REFUSED;
            }
        }
        part = (struct fl_range){fl_range_end(part), fl_range_end(all) - fl_range_end(part)};
    }
    fl_fit_note_seen(r, e, age != 0);
    return true;
}

bool fl_pieces_may_go(const struct fl_region *r)
{
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    return (int32_t)(now - r->pieces.resume) >= 0;
}

bool fl_pieces_may_go_one_day(const struct fl_region *r)
{
    return r->pieces.refusals < REFUSALS_MOST || fl_pieces_may_go(r);
}

/* Of what is free now, not of what others free meanwhile: that might never end. */
size_t fl_pieces_give_back(struct fl_region *r, uint32_t age, size_t want, unsigned most)
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

/* How far a walk over the fringes has come: they are taken one by one, with no lock held. bare:
 * with their addresses, and pieces, too. */
struct fringes {
    struct fl_walk walk;
    bool bare;
};

/* What of `e` lies before or behind its whole huge pages, behind what was walked over, and may go;
 * len 0: nothing. */
static struct fl_range fringe(struct fl_region *r, struct fl_extent *e, const struct fringes *f,
                              enum verdict *out)
{
    struct fl_range all = fl_extent_range(e), inner = fl_range_inner(all, fl_page.huge);
    uintptr_t cut = fl_min(inner.base, fl_range_end(all));
    uintptr_t last = inner.len != 0 ? fl_range_end(inner) : cut;
    struct fl_range end[2] = {{all.base, cut - all.base}, {last, fl_range_end(all) - last}};

    for (int i = 0; i < 2 && (inner.len != 0 || f->bare); i++) {
        struct fl_range rest = {fl_max(end[i].base, f->walk.at), 0};
        rest.len = fl_range_end(end[i]) - fl_min(rest.base, fl_range_end(end[i]));
        *out = judge(r, e, rest, (struct terms){0, f->bare});
        if (*out == TAKE || *out == TAKE_AND_SPLIT) {
            return worthy(r, e, rest, f->bare);
        }
    }
    return (struct fl_range){all.base, 0};
}

static struct fl_extent *next_fringe(struct fl_region *r, struct fringes *f, struct fl_range *part,
                                     enum verdict *out)
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
    fl_region_unlock(r);
    (void)fl_holes_reach(&r->pages.holes, end);
    fl_region_lock(r);
}

size_t fl_pieces_give_fringes(struct fl_region *r, bool bare)
{
    size_t given = 0;
    enum outcome o = GONE;
    enum verdict v = LEAVE;
    struct fringes f = {.bare = bare};
    struct fl_range part;

    fl_assert(fl_region_is_locked(r));
    if (bare || fl_region_free(r).huge != 0) {
        reach_all(r);
    }
    for (struct fl_extent *e; o != REFUSED && !fl_supply_is_coming(r) && !fl_sys_is_confined() &&
                              (e = next_fringe(r, &f, &part, &v)) != NULL;) {
        uintptr_t huge = fl_huge_of(part.base).base;
        if (huge == r->pieces.mending || fl_extent_reserve(&r->space, 2) != 0 ||
            (v == TAKE_AND_SPLIT && !fl_holes_split(&r->pages.holes, huge))) {
            continue;
        }
        o = give_apart(r, fl_isolated_claim_part(r, e, part), v, (struct terms){0, bare}, &given);
    }
    return given;
}
