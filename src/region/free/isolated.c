/* Extents out of the trees while their pages are given back or moved with no lock held.
 * In a child of fork(2) the thread that was at it is missing: fork.c gives such extents up. */
#include "region/state/lock.h"
#include "region/free/advised.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/free/fit.h"

/* NULL: there is none. */
static struct fl_extent *make_edge(struct fl_region *r, struct fl_range edge,
                                   const struct fl_extent *of, size_t holes)
{
    fl_assert(fl_region_is_locked(r));
    if (edge.len == 0) {
        return NULL;
    }
    struct fl_extent *e = fl_extent_make(r, edge, of->content, of->zone);
    atomic_store_explicit(&e->epoch, atomic_load_explicit(&of->epoch, memory_order_relaxed),
                          memory_order_relaxed);
    e->unreclaimable = fl_min(edge.len, of->unreclaimable);
    e->zeroed = fl_range_common(edge, of->zeroed);
    e->holes = holes;
    e->advised = fl_advice_of_part(of->advised, edge);
    e->left = of->left;
    return e;
}

/* Holes in what is left before and behind the part that is cut out of `e`. Not counted in the
 * longer one. */
static size_t holes_of_edges(struct fl_region *r, const struct fl_extent *e, struct fl_range head,
                             struct fl_range tail, size_t *out_tail)
{
    struct fl_range part = {fl_range_end(head), tail.base - fl_range_end(head)};
    bool head_is_longer = head.len > tail.len;

    *out_tail = 0;
    if (e->holes == 0) {
        return 0;
    }
    size_t in_part = fl_holes_in(&r->pages.holes, part),
           in_shorter = fl_holes_in(&r->pages.holes, head_is_longer ? tail : head);
    size_t in_longer = e->holes - in_part - in_shorter;
    *out_tail = head_is_longer ? in_shorter : in_longer;
    return head_is_longer ? in_longer : in_shorter;
}

void fl_isolated_put(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE && fl_extent_is_sound(e));
    atomic_store_explicit(&e->state, FL_EXTENT_ISOLATED, memory_order_relaxed);
    TAILQ_INSERT_TAIL(&r->isolated, e, by_age);
    fl_unsettled_begin();
}

struct fl_extent *fl_isolated_claim(struct fl_region *r, struct fl_extent *e, size_t most)
{
    struct fl_range whole = fl_extent_range(e);
    struct fl_range inner = fl_range_inner(whole, fl_page.huge);
    size_t len = fl_min(inner.len, fl_align_down(most, fl_page.huge));

    fl_assert(fl_region_is_locked(r));
    return fl_isolated_claim_part(r, e, (struct fl_range){fl_range_end(inner) - len, len});
}

/* Made anew for each use: what is kept from one to the next would be on the stack. */
static struct fl_range behind(const struct fl_extent *e, struct fl_range part)
{
    return (struct fl_range){fl_range_end(part),
                             fl_range_end(fl_extent_range(e)) - fl_range_end(part)};
}

struct fl_extent *fl_isolated_claim_part(struct fl_region *r, struct fl_extent *e,
                                         struct fl_range part)
{
    struct fl_range head = {e->base, part.base - e->base};

    fl_assert(fl_region_is_locked(r));
    fl_assert(part.len != 0 && fl_range_common(part, fl_extent_range(e)).len == part.len);
    size_t in_tail, in_head = holes_of_edges(r, e, head, behind(e, part), &in_tail);
    struct fl_extent *before = make_edge(r, head, e, in_head);

    fl_fit_cut(r, e, before, make_edge(r, behind(e, part), e, in_tail));
    e->base = part.base;
    e->len = part.len;
    e->unreclaimable = fl_min(e->unreclaimable, e->len);
    e->zeroed = fl_range_common(part, e->zeroed);
    e->holes -= in_head + in_tail;
    e->spent = false;
    fl_extent_publish(&r->space, e);
    fl_isolated_put(r, e);
    e->advised = fl_advice_of_part(e->advised, part);
    return e;
}

size_t fl_isolated_bytes(const struct fl_region *r)
{
    const struct fl_extent *e;
    size_t sum = 0;

    TAILQ_FOREACH(e, &r->isolated, by_age)
    {
        sum += e->content == FL_CONTENT_EMPTY ? 0 : fl_extent_there(e);
    }
    return sum;
}

void fl_isolated_take(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_ISOLATED);
    TAILQ_REMOVE(&r->isolated, e, by_age);
    fl_unsettled_end();
}

void fl_isolated_return(struct fl_region *r, struct fl_extent *e, bool gone)
{
    fl_assert(fl_region_is_locked(r));
    fl_isolated_take(r, e);
    if (gone) {
        fl_assert(r->held.populated >= fl_extent_there(e));
        r->held.populated -= fl_extent_there(e);
        e->content = FL_CONTENT_EMPTY;
        fl_extent_set_zone(e, fl_zone_class(r, e->zone)); /* merges with all that is EMPTY */
        e->zeroed.len = 0;
        e->advised = 0;
    }
    (void)fl_fit_insert(r, e);
}
