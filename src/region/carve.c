/* Cuts a LIVE extent out of a run of adjacent FREE ones.
 *
 * Two phases: what can fail (growing the window, spare descriptors) comes first, the rest cannot. */
#include "region/internal.h"

#include <errno.h>

static void note_dirty(struct fl_grant *g, uintptr_t base, uintptr_t end)
{
    if (end > base) {
        g->dirty[g->ndirty++] = (struct fl_range){base, end - base};
    }
}

/* What taking `part` of the FREE extent `e` costs: population or, for calloc, clearing. */
static void note_part(struct fl_grant *g, const struct fl_extent *e, struct fl_range part)
{
    struct fl_range zeroed = fl_range_common(part, e->zeroed);

    if (e->content == FL_CONTENT_EMPTY) {
        g->fresh[g->nfresh++] = part;
    } else if (zeroed.len == 0) {
        note_dirty(g, part.base, fl_range_end(part));
    } else {
        note_dirty(g, part.base, zeroed.base);
        note_dirty(g, fl_range_end(zeroed), fl_range_end(part));
    }
}

/* `part` of a FREE extent that was cut out: what is absent of it comes back, when it is filled or
 * touched. */
static void note_holes(struct fl_region *r, struct fl_grant *g, struct fl_range part)
{
    size_t holes = fl_holes_fill(r, part);

    if (holes != 0) {
        r->populated_bytes += holes;
        r->pieces.refilled += holes;
        g->back = g->holes == 0
                      ? part
                      : (struct fl_range){g->back.base, fl_range_end(part) - g->back.base};
        g->holes += holes;
    }
}

/* What a free extent was before it was cut: its pieces inherit it. */
struct origin {
    uint32_t epoch;
    size_t hard;
    struct fl_range zeroed;
    unsigned zone;
    uint8_t advised, left;
};

static struct origin origin_of(const struct fl_region *r, const struct fl_extent *e)
{
    return (struct origin){atomic_load_explicit(&e->epoch, memory_order_relaxed),
                           e->hard,
                           e->zeroed,
                           e->zone,
                           fl_advice_kept(r, e),
                           e->left};
}

static void put_back(struct fl_region *r, uintptr_t base, uintptr_t end, enum fl_content content,
                     struct origin from)
{
    if (end > base) {
        struct fl_extent *rest =
            fl_extent_new(r, (struct fl_range){base, end - base}, content, from.zone);
        atomic_store_explicit(&rest->epoch, from.epoch, memory_order_relaxed);
        rest->hard = fl_min(rest->len, from.hard);
        rest->zeroed = fl_range_common(fl_extent_range(rest), from.zeroed);
        rest->advised = fl_advice_of_part(from.advised, fl_extent_range(rest));
        rest->left = from.left;
        (void)fl_fit_insert(r, rest);
    }
}

/* What the request takes of `e`: of an EMPTY extent whole huge pages. */
static struct fl_range part_of(const struct fl_extent *e, uintptr_t start, uintptr_t end)
{
    uintptr_t from = fl_max(e->base, start), to = fl_min(e->base + e->len, end);

    if (e->content == FL_CONTENT_EMPTY) {
        from = fl_align_down(from, fl_page.huge);
        to = fl_align_up(to, fl_page.huge);
    }
    return (struct fl_range){from, to - from};
}

/* The FREE neighbour behind `e` that the request reaches into; NULL behind the last. */
static struct fl_extent *next_of(struct fl_region *r, const struct fl_extent *e, uintptr_t end)
{
    return e->base + e->len < end ? fl_extent_free_at(r, e->base + e->len, e->zone) : NULL;
}

/* Somebody else has mapped something in `part` of the EMPTY extent `e`: nobody gets these addresses any more. */
static void retire(struct fl_region *r, struct fl_extent *e, struct fl_range part)
{
    struct fl_range whole = fl_extent_range(e);
    struct origin from = {.zone = e->zone};

    fl_fit_remove(r, e);
    fl_extent_drop(r, e);
    struct fl_extent *foreign = fl_extent_new(r, part, FL_CONTENT_EMPTY, from.zone);
    atomic_store_explicit(&foreign->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
    put_back(r, whole.base, part.base, FL_CONTENT_EMPTY, from);
    put_back(r, fl_range_end(part), fl_range_end(whole), FL_CONTENT_EMPTY, from);
}

/* Commits the EMPTY parts; all or none. */
static int commit_parts(struct fl_region *r, struct fl_extent *first, uintptr_t start,
                        uintptr_t end, bool huge)
{
    struct fl_extent *e = first;
    int rc = 0;

    for (; e != NULL; e = next_of(r, e, end)) {
        if (e->content == FL_CONTENT_EMPTY &&
            (rc = fl_zone_commit(r, part_of(e, start, end), huge, e->zone)) != 0) {
            break;
        }
    }
    if (rc == 0) {
        return 0;
    }
    for (struct fl_extent *done = first; done != e; done = next_of(r, done, end)) {
        if (done->content == FL_CONTENT_EMPTY) {
            (void)fl_vspace_decommit(&r->window, part_of(done, start, end));
        }
    }
    if (rc == -EEXIST) {
        retire(r, e, part_of(e, start, end));
    }
    return rc;
}

static struct fl_extent *new_live(struct fl_region *r, const struct fl_grant *g, unsigned zone)
{
    struct fl_extent *live = fl_extent_new(r, g->live, FL_CONTENT_POPULATED, zone);

    atomic_store_explicit(&live->state, FL_EXTENT_LIVE, memory_order_relaxed);
    live->left = fl_left_of(r, g);
    fl_extent_lay_waypoints(r, live);
    return live;
}

/* What is new beside `live`, both in `range`. */
static struct origin fringe_of(const struct fl_region *r, const struct fl_grant *g,
                               const struct fl_extent *live, struct fl_range range)
{
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);
    struct origin fringe = {now, SIZE_MAX, {live->base, 0}, live->zone, 0, 0};

    if (g->from_free == 0) { /* no page that anybody has written to comes here */
        fringe.zeroed = range;
    }
    fringe.left = live->left & FL_LEFT_HOLLOW;
    return fringe;
}

struct fl_extent *fl_carve(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                           struct fl_grant *g)
{
    uintptr_t end = start + len, cut = end, run_base = e->base, run_end = e->base;
    enum fl_content first_content = e->content, last_content = e->content;
    struct origin first = origin_of(r, e), last = first;

    g->refusal = 0;
    g->live = (struct fl_range){start, len};
    g->nfresh = g->ndirty = g->nhidden = 0;
    g->hollow = false;
    g->holes = 0;
    if (fl_pagemap_reach(r, fl_align_up(end, fl_page.huge), !g->leaves) != 0) {
        return NULL;
    }
    int rc = commit_parts(r, e, start, end, r->config.huge && !g->on_touch);
    if (rc != 0) {
        g->refusal = rc == -EEXIST ? rc : 0;
        return NULL;
    }
    for (struct fl_extent *next; e != NULL; e = next) {
        struct fl_range part = part_of(e, start, end);
        next = next_of(r, e, end);
        run_end = e->base + e->len;
        last_content = e->content;
        last = origin_of(r, e);
        cut = fl_max(end, fl_range_end(part));
        r->populated_bytes += e->content == FL_CONTENT_EMPTY ? part.len : 0;
        note_part(g, e, part);
        g->hollow |= e->left != 0;
        fl_advice_undo(r, e, part, g);
        fl_fit_remove(r, e);
        if ((e->left & FL_LEFT_HOLLOW) != 0) {
            note_holes(r, g, part);
        }
        fl_extent_drop(r, e);
    }
    if (g->on_touch) {
        g->nfresh = 0;
    }
    struct fl_extent *live = new_live(r, g, first.zone);
    /* An EMPTY extent is cut at huge pages (R3): what is committed beyond the request is populated and FREE. */
    uintptr_t front =
        first_content == FL_CONTENT_EMPTY ? fl_align_down(start, fl_page.huge) : start;
    struct origin fringe = fringe_of(r, g, live, (struct fl_range){front, cut - front});
    put_back(r, run_base, front, first_content, first);
    put_back(r, front, start, FL_CONTENT_POPULATED, fringe);
    put_back(r, end, cut, FL_CONTENT_POPULATED, fringe);
    put_back(r, cut, run_end, last_content, last);
    return live;
}
