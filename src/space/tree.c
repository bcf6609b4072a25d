/* The tree of free extents. See tree.h. */
#include "space/tree.h"

static size_t longest(const struct fl_extent *e)
{
    return e != NULL ? e->longest : 0;
}

static void augment(struct fl_extent *e)
{
    size_t below = fl_max(longest(RB_LEFT(e, by_address)), longest(RB_RIGHT(e, by_address)));

    e->longest = fl_max(e->len, below);
}

static int compare(const struct fl_extent *a, const struct fl_extent *b)
{
    return (a->base > b->base) - (a->base < b->base);
}

#undef RB_AUGMENT
#define RB_AUGMENT(e) augment(e)
#define UNUSED_TOO __attribute__((unused)) static /* the macro makes more functions than we call */
RB_GENERATE_INTERNAL(fl_extent_tree, fl_extent, by_address, compare, UNUSED_TOO)

void fl_tree_note_shorter(struct fl_extent *e)
{
    bool changed = true;

    for (; changed && e != NULL; e = RB_PARENT(e, by_address)) {
        size_t was = e->longest;
        augment(e);
        changed = e->longest != was;
    }
}

/* And here it has become longer. */
static void raise_to(struct fl_extent *e, size_t len)
{
    for (; e != NULL && e->longest < len; e = RB_PARENT(e, by_address)) {
        e->longest = len;
    }
}

/* All on the way down come to know of it; rotations keep what they know. */
void fl_tree_insert(struct fl_extent_tree *tree, struct fl_extent *e)
{
    struct fl_extent *parent = NULL, **link = &RB_ROOT(tree);

    fl_assert(e->len != 0);
    while (*link != NULL) {
        parent = *link;
        fl_assert(e->base + e->len <= parent->base || parent->base + parent->len <= e->base);
        parent->longest = fl_max(parent->longest, e->len);
        link =
            e->base < parent->base ? &RB_LEFT(parent, by_address) : &RB_RIGHT(parent, by_address);
    }
    RB_SET(e, parent, by_address);
    e->longest = e->len;
    *link = e;
    fl_extent_tree_RB_INSERT_COLOR(tree, e);
    fl_assert(RB_ROOT(tree)->longest >= e->len);
}

void fl_tree_remove(struct fl_extent_tree *tree, struct fl_extent *e)
{
    size_t len = e->len;

    fl_assert(RB_ROOT(tree) != NULL && len != 0 && e->longest >= len);
    e->len = 0; /* so that no node above counts on it while the tree changes */
    fl_tree_note_shorter(e);
    RB_REMOVE(fl_extent_tree, tree, e);
    e->len = len;
}

void fl_tree_replace(struct fl_extent_tree *tree, struct fl_extent *was, struct fl_extent *e)
{
    struct fl_extent *parent = RB_PARENT(was, by_address), *left = RB_LEFT(was, by_address),
                     *right = RB_RIGHT(was, by_address);
    size_t longest_was = was->longest;

    fl_assert(parent != NULL ? RB_ROOT(tree) != was : RB_ROOT(tree) == was);
    fl_assert(left == NULL || left->base + left->len <= e->base);
    fl_assert(right == NULL || e->base + e->len <= right->base);
    e->by_address = was->by_address;
    if (parent == NULL) {
        RB_ROOT(tree) = e;
    } else if (RB_LEFT(parent, by_address) == was) {
        RB_LEFT(parent, by_address) = e;
    } else {
        RB_RIGHT(parent, by_address) = e;
    }
    if (left != NULL) {
        RB_PARENT(left, by_address) = e;
    }
    if (right != NULL) {
        RB_PARENT(right, by_address) = e;
    }
    augment(e);
    if (e->longest < longest_was) {
        fl_tree_note_shorter(parent);
    } else {
        raise_to(parent, e->longest);
    }
    fl_assert(RB_ROOT(tree)->longest >= e->longest);
}

struct fl_extent *fl_tree_first(struct fl_extent_tree *tree, size_t want)
{
    struct fl_extent *e = RB_ROOT(tree);

    if (e == NULL || e->longest < want) {
        return NULL;
    }
    for (;;) {
        fl_assert(e != NULL && e->longest >= want);
        if (longest(RB_LEFT(e, by_address)) >= want) {
            e = RB_LEFT(e, by_address);
        } else if (e->len >= want) {
            return e;
        } else {
            e = RB_RIGHT(e, by_address);
        }
    }
}

struct fl_extent *fl_fit_first(struct fl_extent_tree *tree, size_t len, size_t align)
{
    size_t want = len + (align - fl_page.base); /* holds an aligned piece wherever it begins */

    fl_assert(fl_is_pow2(align) && align >= fl_page.base);
    return want < len ? NULL : fl_tree_first(tree, want);
}

struct fl_extent *fl_tree_around(struct fl_extent_tree *tree, uintptr_t addr)
{
    struct fl_extent *e = RB_ROOT(tree);

    while (e != NULL && addr - e->base >= e->len) {
        e = addr < e->base ? RB_LEFT(e, by_address) : RB_RIGHT(e, by_address);
    }
    return e;
}

struct fl_extent *fl_tree_from(struct fl_extent_tree *tree, uintptr_t addr)
{
    struct fl_extent key = {.base = addr};
    struct fl_extent *e = RB_NFIND(fl_extent_tree, tree, &key);
    struct fl_extent *before =
        e != NULL ? RB_PREV(fl_extent_tree, tree, e) : RB_MAX(fl_extent_tree, tree);

    fl_assert(before == NULL || e == NULL || before->base + before->len <= e->base);
    return before != NULL && addr - before->base < before->len ? before : e;
}

struct fl_extent *fl_tree_lowest(struct fl_extent_tree *tree)
{
    return RB_MIN(fl_extent_tree, tree);
}

struct fl_extent *fl_tree_higher(struct fl_extent *e)
{
    return RB_NEXT(fl_extent_tree, NULL, e);
}
