/* Pieces: what is free below a huge page goes back by base pages.
 *
 * A purge takes whole huge pages; a free extent that has none is a piece of one or two that others use. Once it is old enough, and an
 * eighth of such a huge page is free and old (a thirty-second, where memory goes back at once), the huge page is split and what is free
 * of it dropped. The kernel does not make it huge again by itself, for it is told not to (MADV_NOHUGEPAGE): it would fill the holes. The worker
 * does, when no hole is left and all of it has been in use at two looks.
 * A piece is looked at once: then it is in no queue until it is freed anew, or until others of its huge page make up the share.
 * Pages of the kernel: MADV_DONTNEED of a part of a huge page gives nothing back before the kernel splits it, which it does when memory is
 * short; MADV_FREE of one base page of it splits it at once.
 * State: r->holes, r->pieces, the lists `pieces` and `rough` of the zones; under the region lock. */
#include "region/internal.h"

/* The share of a huge page that has to be free: by age; at once. */
enum { SHARE_OLD = 8, SHARE_NOW = 32 };
enum { LOOKS_A_LOCK = 16, MENDS_A_LOCK = 16 };
static const uint64_t mend_every = (uint64_t)5 * 1000000000; /* ns */

static struct fl_range huge_of(uintptr_t addr)
{
    return (struct fl_range){fl_align_down(addr, fl_page.huge), fl_page.huge};
}

static struct fl_extent *oldest(struct fl_region *r, uint32_t age)
{
    struct fl_extent *best = NULL;

    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *head = TAILQ_FIRST(&z->pieces);
        best = head != NULL && (best == NULL || fl_extent_is_older(head, best)) ? head : best;
    }
    return best != NULL && fl_extent_is_aged(r, best, age) ? best : NULL;
}

/* Pages may be on their way to what is free beside a new block: a hole dug there would be filled behind our back. */
bool fl_pieces_are_due(struct fl_region *r, uint32_t age)
{
    return r->leaving == 0 && oldest(r, age) != NULL;
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

    if (e->base == r->first || !fl_region_look(r, e->base - fl_page.base, &left)) {
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

    return end < fl_range_end(huge) ? fl_extent_around(r, end) : NULL;
}

/* Bytes of the huge page that are free, old enough and there. */
static size_t due_in(struct fl_region *r, struct fl_extent *e, struct fl_range huge, uint32_t age)
{
    size_t sum = 0;

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
    for (e = lowest_in(r, e, huge); e != NULL; e = after(r, e, huge)) {
        if (is_free(e) && e->queue == FL_QUEUE_NONE) {
            fl_fit_enqueue(r, e);
        }
    }
}

enum verdict { LEAVE, TAKE, TAKE_AND_SPLIT, NO_TABLE };

static enum verdict judge(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                          uint32_t age)
{
    struct fl_range huge = huge_of(part.base);

    if (part.len == 0 || fl_holes_in(r, part) == part.len) {
        return LEAVE;
    }
    if (fl_holes_is_split(r, huge.base)) {
        return TAKE;
    }
    if (due_in(r, e, huge, age) < huge.len / (age == 0 ? SHARE_NOW : SHARE_OLD)) {
        return LEAVE;
    }
    return huge.base - r->base < atomic_load_explicit(&r->holes.reach, memory_order_relaxed)
               ? TAKE_AND_SPLIT
               : NO_TABLE;
}

/* The kernel's part. No lock held. */
static bool drop(const struct fl_region *r, struct fl_range part, bool split)
{
    if (split) {
        if (r->config.huge) {
            (void)fl_sys.advise(huge_of(part.base), FL_ADVICE_NO_HUGE);
        }
        (void)fl_sys.lazy_free((struct fl_range){part.base, fl_page.base});
    }
    return fl_sys.advise(part, FL_ADVICE_DROP) == 0;
}

static void give_apart(struct fl_region *r, struct fl_extent *e, bool split, size_t *given)
{
    fl_region_unlock(r);
    bool gone = drop(r, fl_extent_range(e), split);
    fl_region_lock(r);
    if (gone) {
        size_t n = fl_holes_dig(r, fl_extent_range(e));
        r->populated_bytes -= n;
        r->stats.purge_bytes += n;
        r->surplus -= fl_min(r->surplus, n);
        *given += n;
    } else { /* locked in memory, say: no second try soon */
        atomic_store_explicit(&e->epoch, atomic_load_explicit(&r->epoch, memory_order_relaxed),
                              memory_order_relaxed);
    }
    fl_apart_return(r, e, false);
}

/* One look at `e`, the oldest piece. False: no more of them now. */
static bool look_at(struct fl_region *r, struct fl_extent *e, uint32_t age, size_t *given)
{
    struct fl_range all = fl_extent_range(e);
    struct fl_range part = fl_range_common(all, huge_of(all.base));
    enum verdict v = judge(r, e, part, age);

    if (v == LEAVE) { /* it may reach into a second one */
        part = (struct fl_range){fl_range_end(part), all.len - part.len};
        v = judge(r, e, part, age);
    }
    if (v == NO_TABLE) {
        fl_region_unlock(r);
        bool there = fl_holes_reach(r, fl_range_end(part));
        fl_region_lock(r);
        return there; /* the next look is at whatever is the oldest by now */
    }
    if (v != LEAVE &&
        (huge_of(part.base).base == r->pieces.mending || fl_extent_reserve(r, 2) != 0)) {
        return false;
    }
    if (v == LEAVE || (v == TAKE_AND_SPLIT && !fl_holes_split(r, huge_of(part.base).base))) {
        fl_fit_unqueue(r, e);
        return true;
    }
    if (v == TAKE_AND_SPLIT) {
        requeue(r, e, huge_of(part.base));
    }
    size_t had = *given;
    give_apart(r, fl_apart_claim_part(r, e, part), v == TAKE_AND_SPLIT, given);
    return *given != had;
}

size_t fl_pieces_give_back(struct fl_region *r, uint32_t age, size_t want, unsigned most)
{
    size_t given = 0;
    bool more = !fl_sys_is_confined();

    for (unsigned i = 0; more && given < want && i < most && fl_pieces_are_due(r, age); i++) {
        more = look_at(r, oldest(r, age), age, &given);
        if (i % LOOKS_A_LOCK == LOOKS_A_LOCK - 1) { /* others wait */
            fl_region_unlock(r);
            fl_region_lock(r);
        }
    }
    return given;
}

/* What of `e` lies before or behind its whole huge pages and may go; len 0: nothing. */
static struct fl_range fringe(struct fl_region *r, struct fl_extent *e, enum verdict *out)
{
    struct fl_range all = fl_extent_range(e), inner = fl_range_inner(all, fl_page.huge);
    struct fl_range end[2] = {
        {all.base, inner.base - all.base},
        {fl_range_end(inner), fl_range_end(all) - fl_range_end(inner)},
    };

    for (int i = 0; i < 2; i++) {
        *out = judge(r, e, end[i], 0);
        if (*out == TAKE || *out == TAKE_AND_SPLIT) {
            return end[i];
        }
    }
    return (struct fl_range){all.base, 0};
}

static struct fl_extent *claim_fringe(struct fl_region *r, enum verdict *out)
{
    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *e;
        TAILQ_FOREACH(e, &z->by_age, by_age)
        {
            struct fl_range part = fringe(r, e, out);
            if (part.len != 0 && huge_of(part.base).base != r->pieces.mending &&
                fl_extent_reserve(r, 2) == 0 &&
                (*out == TAKE || fl_holes_split(r, huge_of(part.base).base))) {
                return fl_apart_claim_part(r, e, part);
            }
        }
    }
    return NULL;
}

/* The table tells of all that was ever in use. The lock is released meanwhile. */
static void reach_all(struct fl_region *r)
{
    size_t used = atomic_load_explicit(&r->mapped, memory_order_relaxed) << fl_page.shift;
    uintptr_t end = r->base + fl_min(used, r->window.all.len);

    fl_region_unlock(r);
    (void)fl_holes_reach(r, end);
    fl_region_lock(r);
}

size_t fl_pieces_give_fringes(struct fl_region *r)
{
    size_t given = 0, had = SIZE_MAX;
    enum verdict v = LEAVE;

    if (r->free_huge != 0) {
        reach_all(r);
    }

    for (struct fl_extent *e; given != had && r->leaving == 0 && !fl_sys_is_confined() &&
                              (e = claim_fringe(r, &v)) != NULL;) {
        had = given;
        give_apart(r, e, v == TAKE_AND_SPLIT, &given);
    }
    return given;
}

/* Free whole huge pages that are split, with their neighbours of that kind; NULL: there are none. */
static struct fl_extent *claim_rough(struct fl_region *r)
{
    FL_EACH_ZONE(r, z)
    {
        struct fl_extent *e = TAILQ_FIRST(&z->rough);
        if (e != NULL) {
            struct fl_range inner = fl_range_inner(fl_extent_range(e), fl_page.huge);
            struct fl_range run = fl_holes_next_split(r, inner);
            return fl_extent_reserve(r, 2) == 0 ? fl_apart_claim_part(r, e, run) : NULL;
        }
    }
    return NULL;
}

size_t fl_pieces_smooth(struct fl_region *r)
{
    size_t given = 0;
    bool gone = true;

    for (struct fl_extent *e; gone && (e = claim_rough(r)) != NULL;) {
        fl_region_unlock(r);
        gone = fl_vspace_decommit(&r->window, fl_extent_range(e)) == 0;
        fl_region_lock(r);
        size_t n = gone ? fl_extent_there(r, e) : 0;
        r->stats.purge_bytes += n;
        r->surplus -= fl_min(r->surplus, n);
        given += n;
        fl_apart_return(r, e, gone);
    }
    return given;
}

int fl_pieces_may_fill(struct fl_region *r, size_t len, struct fl_range range, size_t more)
{
    size_t holes = fl_holes_in(r, range);

    if (holes == 0 || fl_sys_is_confined()) {
        return 0;
    }
    return fl_region_may_populate(r, len, holes + more);
}

/* Is all of it in use, and as we gave it out? */
static bool is_full(struct fl_region *r, struct fl_range huge)
{
    const struct fl_extent *e = fl_extent_around(r, huge.base);
    bool full = e != NULL;

    while (full && e != NULL) {
        uint32_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
        uintptr_t end = e->base + e->len;
        full = (state == FL_EXTENT_LIVE || state == FL_EXTENT_CACHED) &&
               fl_extent_is_populated(e) && !fl_extent_is_handled(e);
        e = end < fl_range_end(huge) ? fl_extent_around(r, end) : NULL;
        full = full && (e != NULL || end >= fl_range_end(huge));
    }
    return full;
}

/* The next huge page that was full at the last look, too; 0: none among the next so many, or, with the cursor at 0, at all. */
static uintptr_t find_full(struct fl_region *r)
{
    struct fl_pieces *p = &r->pieces;
    uintptr_t end = r->base + atomic_load_explicit(&r->holes.reach, memory_order_relaxed);

    for (int i = 0; i < MENDS_A_LOCK; i++) {
        struct fl_range rest = {fl_max(p->cursor, r->base), 0};
        rest.len = end - fl_min(rest.base, end);
        struct fl_range run = fl_holes_next_split(r, rest);
        if (run.len == 0) {
            p->cursor = 0;
            return 0;
        }
        p->cursor = run.base + fl_page.huge;
        bool full = is_full(r, huge_of(run.base));
        bool was = fl_holes_mark(r, run.base, full);
        p->found |= full && !was;
        if (full && was) {
            return run.base;
        }
    }
    return 0;
}

static void mend(struct fl_region *r, uintptr_t huge)
{
    fl_holes_join(r, huge);
    r->pieces.mending = huge;
    fl_unsettled_begin();
    fl_region_unlock(r);
    (void)fl_sys.advise(huge_of(huge), FL_ADVICE_HUGE);
    bool whole = fl_sys.advise(huge_of(huge), FL_ADVICE_COLLAPSE) == 0;
    fl_region_lock(r);
    fl_unsettled_end();
    r->pieces.mending = 0;
    __atomic_fetch_add(&r->stats.repair_bytes, whole ? fl_page.huge : 0, __ATOMIC_RELAXED);
}

/* After a look at all of them. Without a request since the last one nothing new can be full. */
static uint64_t end_of_looks(struct fl_region *r, uint64_t now)
{
    struct fl_pieces *p = &r->pieces;
    bool again = p->found || p->seen != r->stats.takes;

    p->due_ns = now + mend_every;
    p->seen = r->stats.takes;
    p->found = false;
    if (!again) { /* the next free calls */
        atomic_store(&r->wants_worker, true);
    }
    return again ? mend_every : UINT64_MAX;
}

uint64_t fl_pieces_mend(struct fl_region *r)
{
    uint64_t wait = 0, now = fl_sys.now_ns();

    fl_region_lock(r);
    if (!r->config.huge || r->holes.split == 0) {
        wait = UINT64_MAX;
    } else if (r->pieces.cursor == 0 && now < r->pieces.due_ns) {
        wait = r->pieces.due_ns - now;
    } else {
        uintptr_t huge = find_full(r);
        if (huge != 0) {
            mend(r, huge);
        }
        wait = huge == 0 && r->pieces.cursor == 0 ? end_of_looks(r, now) : 0;
    }
    fl_region_unlock(r);
    return wait;
}
