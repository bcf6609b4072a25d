/* Free extents by address, each with the longest extent of the subtree below it, so that first fit
 * is one way down. Included by space.h.
 *
 * It knows `base` and `len` alone: what they are bytes of is the owner's. Lock: the owner's.
 * Cost: O(log n) each. */
#ifndef FL_SPACE_TREE_H
#define FL_SPACE_TREE_H

#include "space/extent.h"

/* `e` overlaps none that is in it. */
void fl_tree_insert(struct fl_extent_tree *tree, struct fl_extent *e);
void fl_tree_remove(struct fl_extent_tree *tree, struct fl_extent *e);
/* `e` takes the place of `was`, between the same neighbours. */
void fl_tree_replace(struct fl_extent_tree *tree, struct fl_extent *was, struct fl_extent *e);
/* `e`, which is in a tree, has been made shorter: so may be what those above it know. */
void fl_tree_note_shorter(struct fl_extent *e);
/* Bytes of the longest in it; 0: there is none. */
static inline size_t fl_tree_longest(const struct fl_extent_tree *tree)
{
    return RB_EMPTY(tree) ? 0 : RB_ROOT(tree)->longest;
}
/* The one at the lowest address that has `want` bytes; NULL: none has. */
struct fl_extent *fl_tree_first(struct fl_extent_tree *tree, size_t want);
/* First fit: the one at the lowest address that holds `len` bytes at a multiple of `align`; NULL:
 * none does. Above the base page a fit is only seen with room for any start. */
struct fl_extent *fl_fit_first(struct fl_extent_tree *tree, size_t len, size_t align);
/* The one that `addr` lies in; NULL: none. */
struct fl_extent *fl_tree_around(struct fl_extent_tree *tree, uintptr_t addr);
/* All of them by address: the lowest, then the next higher one. NULL at the end. */
struct fl_extent *fl_tree_lowest(struct fl_extent_tree *tree);
struct fl_extent *fl_tree_higher(struct fl_extent *e);
/* The one that `addr` lies in, else the next higher one. */
struct fl_extent *fl_tree_from(struct fl_extent_tree *tree, uintptr_t addr);

#endif
