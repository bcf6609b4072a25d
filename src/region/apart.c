/* Extents in nobody's hands: out of the trees while their pages are given back, moved or cleared with no lock held.
 * In a child of fork(2) whoever was at it is missing: fork.c gives such extents up. */
#include "region/internal.h"

static void put_edge(struct fl_region *r, struct fl_range edge, const struct fl_extent *of,
                     struct fl_range zeroed, size_t hard)
{
    if (edge.len == 0) {
        return;
    }
    struct fl_extent *e = fl_extent_new(r, edge, of->content, of->zone);
    atomic_store_explicit(&e->epoch, atomic_load_explicit(&of->epoch, memory_order_relaxed),
                          memory_order_relaxed);
    e->hard = fl_min(edge.len, hard);
    e->zeroed = fl_range_common(edge, zeroed);
    e->advised = fl_advice_of_part(of->advised, edge);
    e->left = of->left;
    (void)fl_fit_insert(r, e);
}

struct fl_extent *fl_apart_claim(struct fl_region *r, struct fl_extent *e, size_t most)
{
    struct fl_range whole = fl_extent_range(e);
    struct fl_range inner = fl_range_inner(whole, fl_page.huge);
    size_t len = fl_min(inner.len, fl_align_down(most, fl_page.huge));

    return fl_apart_claim_part(r, e, (struct fl_range){fl_range_end(inner) - len, len});
}

struct fl_extent *fl_apart_claim_part(struct fl_region *r, struct fl_extent *e,
                                      struct fl_range part)
{
    struct fl_range whole = fl_extent_range(e), zeroed = e->zeroed;
    struct fl_range head = {whole.base, part.base - whole.base};
    struct fl_range tail = {fl_range_end(part), fl_range_end(whole) - fl_range_end(part)};

    size_t hard = e->hard;

    fl_fit_remove(r, e);
    e->base = part.base;
    e->len = part.len;
    e->hard = fl_min(hard, e->len);
    e->zeroed = fl_range_common(part, zeroed);
    e->spent = false;
    atomic_store_explicit(&e->state, FL_EXTENT_APART, memory_order_relaxed);
    fl_extent_publish(r, e);
    TAILQ_INSERT_TAIL(&r->apart, e, by_age);
    fl_unsettled_begin();
    put_edge(r, head, e, zeroed, hard);
    put_edge(r, tail, e, zeroed, hard);
    e->advised = fl_advice_of_part(e->advised, part);
    return e;
}

void fl_apart_take(struct fl_region *r, struct fl_extent *e)
{
    TAILQ_REMOVE(&r->apart, e, by_age);
    fl_unsettled_end();
}

void fl_apart_return(struct fl_region *r, struct fl_extent *e, bool gone)
{
    fl_apart_take(r, e);
    if (gone) {
        r->populated_bytes -= fl_extent_there(r, e);
        e->content = FL_CONTENT_EMPTY;
        e->zeroed.len = 0;
        e->advised = 0;
    }
    (void)fl_fit_insert(r, e);
}
