/* Which free extent serves a request: best fit, lowest address first, over two trees by length. */
#include "region/internal.h"

static int compare(const struct fl_extent *a, const struct fl_extent *b)
{
    if (a->len != b->len) {
        return a->len < b->len ? -1 : 1;
    }
    return (a->base > b->base) - (a->base < b->base);
}

#define UNUSED_TOO __attribute__((unused)) static /* the macro makes more functions than we call */
RB_GENERATE_INTERNAL(fl_extent_tree, fl_extent, by_len, compare, UNUSED_TOO)

static struct fl_extent_tree *tree_of(struct fl_region *r, const struct fl_extent *e)
{
    return e->content == FL_CONTENT_EMPTY ? &r->empty : &r->populated;
}

void fl_fit_remove(struct fl_region *r, struct fl_extent *e)
{
    RB_REMOVE(fl_extent_tree, tree_of(r, e), e);
    if (e->aged) {
        TAILQ_REMOVE(&r->by_age, e, by_age);
        e->aged = false;
    }
    if (e->content != FL_CONTENT_EMPTY) {
        r->free_bytes -= e->len;
    }
}

/* `into` takes over its neighbour `gone`, which is FREE and in its tree. */
static void absorb(struct fl_region *r, struct fl_extent *into, struct fl_extent *gone)
{
    uint32_t newer = atomic_load_explicit(&gone->epoch, memory_order_relaxed);

    fl_fit_remove(r, gone);
    if ((int32_t)(newer - atomic_load_explicit(&into->epoch, memory_order_relaxed)) > 0) {
        atomic_store_explicit(&into->epoch, newer, memory_order_relaxed);
    }
    into->base = into->base < gone->base ? into->base : gone->base;
    into->len += gone->len;
    if (gone->content == FL_CONTENT_DIRTY) {
        into->content = FL_CONTENT_DIRTY;
    }
    fl_extent_drop(r, gone);
}

struct fl_extent *fl_fit_insert(struct fl_region *r, struct fl_extent *e)
{
    bool empty = e->content == FL_CONTENT_EMPTY;
    struct fl_extent *before = fl_extent_free_before(r, e->base);
    struct fl_extent *after = fl_extent_free_at(r, e->base + e->len);

    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED,
                          memory_order_relaxed); /* not yet a neighbour to anybody */
    if (before != NULL && (before->content == FL_CONTENT_EMPTY) == empty) {
        absorb(r, e, before);
    }
    if (after != NULL && (after->content == FL_CONTENT_EMPTY) == empty) {
        absorb(r, e, after);
    }
    atomic_store_explicit(&e->state, FL_EXTENT_FREE, memory_order_relaxed);
    fl_extent_publish(r, e);
    RB_INSERT(fl_extent_tree, tree_of(r, e), e);
    if (!empty) {
        r->free_bytes += e->len;
        if (fl_range_inner(fl_extent_range(e), fl_page.huge).len != 0) {
            TAILQ_INSERT_TAIL(&r->by_age, e, by_age);
            e->aged = true;
        }
    }
    return e;
}

struct fl_extent *fl_fit_best(struct fl_extent_tree *tree, size_t len, size_t align)
{
    struct fl_extent key = {.base = 0, .len = len};
    struct fl_extent *e = RB_NFIND(fl_extent_tree, tree, &key);

    while (e != NULL && fl_align_up(e->base, align) + len > e->base + e->len) {
        e = RB_NEXT(fl_extent_tree, tree, e);
    }
    return e;
}

struct fl_extent *fl_fit_last(struct fl_extent_tree *tree)
{
    return RB_MAX(fl_extent_tree, tree);
}

struct fl_extent *fl_fit_previous(struct fl_extent *e)
{
    return RB_PREV(fl_extent_tree, NULL, e);
}
