/* A LIVE extent divided into blocks that the region knows by address. Taking and giving a block is
 * no business of the region's: no lock, no list. All it costs is a descriptor a granule. They are
 * made as the memory comes, so that to open an extent costs the same whatever its length. */
#include "region/state/counts.h"
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"
#include "region/special/part.h"
#include "region/back/purge.h"
#include "region/supply/supply.h"
#include "region/serve/take.h"

#include <errno.h>

/* Side by side, so that a block's place in it is its granule. Mapped, and not brought into memory:
 * see fl_inner_warm. What there was before goes to the spare ones. */
static int make_room(struct fl_region *r, struct fl_inner *in, size_t granules)
{
    size_t index = r->space.descriptors.used + 1;

    fl_assert(fl_region_is_locked(r));
    if (index + granules > UINT32_MAX || !fl_extent_map(&r->space, index + granules - 1)) {
        return -ENOMEM;
    }
    r->space.descriptors.plain += in->room;
    if (in->room != 0) {
        fl_extent_drop_row(&r->space, in->block, in->room);
    }
    fl_extent_skip(&r->space, granules);
    in->block = (struct fl_extent *)r->space.descriptors.span.all.base +
                index; /* NOLINT(performance-no-int-to-ptr) */
    in->room = granules;
    return 0;
}

static void make_block(struct fl_region *r, struct fl_inner *in, uintptr_t base, size_t i)
{
    struct fl_extent *e = &in->block[i];

    fl_assert(fl_region_is_locked(r));
    e->base = base;
    e->len = fl_page.base;
    e->content = FL_CONTENT_INNER;
    e->inner = in;
    e->left = 0;
    e->noted = 0;
    atomic_store_explicit(&e->user_remapped, false, memory_order_relaxed);
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    fl_extent_publish(&r->space, e);
}

/* Those of `part`, whole huge pages without a block. No lock held: it is had for one huge page at a
 * time. */
static void make_blocks(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    uintptr_t base = in->outer->base;
    size_t granule = (size_t)1 << in->shift;

    for (uintptr_t huge = part.base; huge < fl_range_end(part); huge += fl_page.huge) {
        fl_region_lock(r);
        for (uintptr_t at = huge; at < huge + fl_page.huge; at += granule) {
            make_block(r, in, at, (at - base) >> in->shift);
        }
        fl_region_unlock(r);
    }
}

/* Lock: region. NULL: no addresses. `sparse`: as fl_take_lazy. */
static struct fl_extent *take_unfilled(struct fl_region *r, size_t len, unsigned zone, bool sparse)
{
    struct fl_extent *e = fl_take_lazy(r, len, fl_page.huge, zone, sparse);

    fl_assert(fl_region_is_locked(r));
    if (e != NULL) { /* it is no request's */
        r->stats.lazy--;
        r->stats.lazy_bytes -= len;
        r->stats.takes++;
        e->filled = 0;
    }
    return e;
}

struct fl_extent *fl_part_take(struct fl_region *r, size_t len, unsigned zone)
{
    struct fl_extent *e = fl_region_is_absurd(r, len) || fl_take_seed(r, len) != 0
                              ? NULL
                              : take_unfilled(r, len, zone, true);

    fl_assert(fl_region_is_locked(r));
    if (e != NULL) {
        e->content = FL_CONTENT_PART;
    }
    return e;
}

/* Lock: region. */
static void enlist(struct fl_region *r, struct fl_inner *in)
{
    fl_assert(fl_region_is_locked(r));
    if (!in->listed) {
        in->listed = true;
        in->next = r->space.inners;
        r->space.inners = in;
    }
}

int fl_inner_open(struct fl_region *r, struct fl_inner *in, size_t len)
{
    size_t granules = len >> in->shift;
    unsigned zone = fl_zone_first(r, fl_page.huge);
    int rc = 0;

    fl_assert(in->shift >= fl_page.shift && granules != 0 && in->outer == NULL);
    fl_region_lock(r);
    if (granules > in->room) {
        rc = make_room(r, in, granules);
    }
    struct fl_extent *outer = rc == 0 ? fl_part_take(r, len, zone) : NULL;
    if (outer != NULL) {
        fl_assert(granules <= in->room);
        in->granules = granules;
        make_block(r, in, outer->base, 0); /* by which it is known as divided */
        in->outer = outer;
        enlist(r, in);
    }
    fl_region_unlock(r);
    return outer != NULL ? 0 : -ENOMEM;
}

/* Lock: region; it is released meanwhile. Where pages do not move, what is free elsewhere is given
 * back for what comes here. */
static void make_way(struct fl_region *r, size_t len, unsigned zone)
{
    fl_assert(fl_region_is_locked(r));
    if (!fl_region_moves_pages(r) && fl_supply_is_full(r, len, len)) {
        fl_region_unlock(r);
        (void)fl_region_purge_some(r, 0, len);
        fl_region_lock(r);
    }
    fl_region_make_way_unlocking(r, len, zone);
}

/* What may be had unasked is no matter of what was asked for; nor is it that another thread forks,
 * and so no look was made. */
static bool is_moderation(enum fl_refusal why)
{
    return why == FL_REFUSED_LENGTH || why == FL_REFUSED_HALF || fl_refusal_puts_off(why);
}

bool fl_part_fill(struct fl_region *r, struct fl_extent *outer, struct fl_range part,
                  const struct fl_part_how *how)
{
    struct fl_fill_plan *g = FL_FILL_PLAN();

    fl_assert(part.len % fl_page.huge == 0);
    fl_assert(fl_range_common(part, fl_extent_range(outer)).len == part.len);
    fl_fill_begin(g);
    g->asked.to_stay = g->asked.any_room = true;
    g->loan.tries = FL_LOANS;
    g->asked.zone = outer->zone;
    g->asked.threads = how->threads;
    g->todo.live = g->todo.fresh[0] = part;
    g->todo.nfresh = 1;
    fl_region_lock(r);
    (void)fl_cache_drain_all(r, 0);
    make_way(r, part.len, g->asked.zone);
    enum fl_refusal why;
    for (;;) {
        why = fl_supply_plan(r, g, part.len, part.len, 0);
        if (g->supply.wanted != 0) {
            fl_region_take_loan_unlocking(r, g);
        } else if (why == FL_REFUSED_LOOK && g->asked.seen == NULL && fl_look_unlocking(r)) {
            g->asked.seen = &r->look.noted;
        } else {
            break;
        }
    }
    g->asked.seen = NULL;
    bool may = why == FL_REFUSED_NOT || (how->asked_for && is_moderation(why));
    if (why != FL_REFUSED_NOT) {
        g->supply.from_reserve = g->supply.from_free = 0;
    }
    if (may) {
        fl_supply_claim(r, g);
        r->held.populated += part.len;
        fl_region_count_use(r, (int64_t)part.len);
        outer->filled += part.len;
        fl_assert(outer->filled <= outer->len);
        outer->content = outer->filled == outer->len ? FL_CONTENT_POPULATED : FL_CONTENT_PART;
    }
    fl_region_unlock(r);
    if (may) {
        fl_fill_carry_out(r, g);
    }
    fl_fill_return(g);
    return may;
}

bool fl_inner_fill(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    static const struct fl_part_how unasked = {.asked_for = false};

    make_blocks(r, in, part);
    return fl_part_fill(r, in->outer, part, &unasked);
}

void fl_inner_warm(struct fl_region *r, struct fl_range blocks, struct fl_range part)
{
    struct fl_range whole = fl_range_inner(blocks, fl_page.base);

    if (whole.len != 0) {
        (void)fl_sys.populate(whole);
    }
    fl_pagemap_populate(&r->space, part);
}

int fl_inner_empty(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    if (fl_extent_is_pinned(in->outer) || fl_vspace_decommit(&r->space.window, part) != 0) {
        return -EBUSY;
    }
    int rc = fl_pages_commit(&r->pages, part, r->pages.huge, in->outer->zone);
    fl_region_lock(r);
    fl_assert(in->outer->filled >= part.len && r->held.populated >= part.len);
    r->held.populated -= part.len;
    r->stats.purge_bytes += part.len;
    fl_region_count_use(r, -(int64_t)part.len);
    in->outer->filled -= part.len;
    in->outer->content = FL_CONTENT_PART;
    fl_region_unlock(r);
    return rc == 0 ? 0 : -EEXIST;
}

/* Addresses for what moves out. NULL: nothing can be moved, or there are none. */
static struct fl_extent *take_refuge(struct fl_region *r, size_t len, unsigned zone)
{
    fl_region_lock(r);
    bool can_move = fl_region_moves_pages(r);
    struct fl_extent *e = can_move ? take_unfilled(r, len, zone, false) : NULL;
    fl_region_unlock(r);
    return e;
}

/* One batch of one range. Returns bytes, from its start. */
static FL_APART size_t move_part(struct fl_region *r, struct fl_range from, uintptr_t to,
                                 unsigned zone)
{
    struct fl_move m;
    size_t moved = 0;

    if (fl_move_begin(&r->pages, &m, (struct fl_range){to, from.len}, zone)) {
        moved = fl_move_pages(&r->pages, &m, from, to);
        fl_move_end(&r->pages, &m);
    }
    return moved;
}

size_t fl_inner_shift(struct fl_region *r, struct fl_inner *in, struct fl_range from, uintptr_t to)
{
    bool can_move = fl_region_moves_pages(r) && !fl_extent_is_pinned(in->outer);
    size_t moved = can_move ? move_part(r, from, to, in->outer->zone) : 0;
    size_t whole = fl_align_down(moved, fl_page.huge);

    make_blocks(r, in, (struct fl_range){to, whole});
    if (whole != moved) { /* a part of the next one went: it is made whole */
        (void)fl_populate(&r->pages, (struct fl_range){from.base + whole, fl_page.huge},
                          fl_page.huge);
    }
    return whole;
}

/* Apart: the way to `e` has a short stack. */
static FL_APART int yield_to(struct fl_region *r, struct fl_inner *in, struct fl_range part,
                             struct fl_extent *e)
{
    /* All of it, or as if nothing had been there: what moved and what did not goes to the
     * kernel. */
    bool moved = e != NULL && move_part(r, part, e->base, e->zone) == part.len;

    if (e != NULL) {
        bool gone = !moved && fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;
        (void)fl_extent_claim(e, fl_region_epoch(r));
        fl_region_lock(r);
        e->content = gone ? FL_CONTENT_EMPTY : FL_CONTENT_LAZY;
        e->unreclaimable = e->len;
        r->held.populated -= moved ? part.len : 0; /* it is the other's by now */
        r->held.in_use += moved ? 0 : e->len;
        fl_region_give_locked(r, e);
        r->stats.takes--; /* not asked for */
        r->stats.gives--;
        if (moved) {
            fl_assert(in->outer->filled >= part.len);
            in->outer->filled -= part.len;
            in->outer->content = FL_CONTENT_PART;
        }
        fl_region_unlock(r);
    }
    return moved ? 0 : fl_inner_empty(r, in, part);
}

int fl_inner_yield(struct fl_region *r, struct fl_inner *in, struct fl_range part)
{
    bool pinned = fl_extent_is_pinned(in->outer);

    return yield_to(r, in, part, pinned ? NULL : take_refuge(r, part.len, in->outer->zone));
}

void fl_part_give(struct fl_region *r, struct fl_extent *outer, struct fl_inner *in)
{
    size_t filled = outer->filled;
    bool part = filled != outer->len;
    bool gone = part && fl_vspace_decommit(&r->space.window, fl_extent_range(outer)) == 0;

    fl_assert(filled <= outer->len);
    (void)fl_extent_claim(outer, fl_region_epoch(r));
    fl_region_lock(r);
    if (in != NULL) {
        in->outer = NULL;
    }
    outer->filled = 0;
    fl_extent_publish(&r->space, outer); /* it is found by its address again */
    if (part) {
        r->held.in_use += outer->len - filled; /* until it is given, which is no peak */
        r->held.populated += gone ? -filled : outer->len - filled;
        outer->content = gone ? FL_CONTENT_EMPTY : FL_CONTENT_POPULATED;
        r->stats.purge_bytes += gone ? filled : 0;
    }
    fl_region_unlock(r);
    fl_region_give(r, outer);
}

void fl_inner_close(struct fl_region *r, struct fl_inner *in)
{
    fl_part_give(r, in->outer, in);
}

static bool is_used(const struct fl_extent *e)
{
    return fl_extent_state(e) != FL_EXTENT_UNUSED;
}

uintptr_t fl_inner_note_remapped(const struct fl_inner *in, const struct fl_extent *outer,
                                 struct fl_range range)
{
    uintptr_t outer_end = outer->base + outer->len, end = fl_min(fl_range_end(range), outer_end);
    struct fl_extent *e = fl_inner_block(in, outer, range.base);

    if (e != NULL) {
        fl_extent_note_remapped(e);
    }
    for (size_t i = ((range.base - outer->base) >> in->shift) + 1;
         i < in->granules && outer->base + (i << in->shift) < end; i++) {
        e = &in->block[i];
        if (is_used(e)) {
            fl_extent_note_remapped(e);
        }
    }
    return outer_end;
}

bool fl_inner_renew(struct fl_region *r, struct fl_extent *e)
{
    struct fl_range all = {e->base, fl_align_up(e->len, (size_t)1 << e->inner->shift)};

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    if (fl_extent_is_pinned(e->inner->outer)) {
        return false;
    }
    atomic_store_explicit(&e->user_remapped, false, memory_order_relaxed);
    if (fl_vspace_decommit(&r->space.window, all) != 0) {
        return false;
    }
    return fl_pages_commit(&r->pages, all, r->pages.huge, e->inner->outer->zone) == 0 &&
           fl_sys.populate(all) != -EFAULT;
}
