/* Heaps: what a program takes by <faultless/heap.h>. A tie of what is there: addresses with a name
 * (core's vspace), a node and pages ahead of use (region's pin.h), first fit (space/tree.h).
 *
 * A heap is two spans: `data`, which its blocks fill, and `records`, which begins with the heap
 * itself and goes on with descriptors. Only free extents have one: who frees a block says how long
 * it is.
 *
 * Invariants, checked by fl_heap_check:
 * H1  free extents lie in `data`, at multiples of FL_HEAP_UNIT; no two of them touch.
 * H2  used_bytes and the free extents' bytes together are `data`.
 * H3  made >= blocks + 1, or half of the units and one: so many free extents there can be, and a
 *     free never wants memory. */
#ifndef FL_HEAP_HEAP_H
#define FL_HEAP_HEAP_H

#include "faultless/heap.h"
#include "region/region.h"

enum { FL_HEAP_UNIT = 64, FL_HEAP_NAME = 80 /* bytes of a map's name, the kernel's bound */ };

/* Lock: fl_heaps. */
struct fl_heap {
    struct fl_vspace data, records;
    struct fl_extent_tree free;
    struct fl_extent_stack spare;
    size_t made; /* descriptors, in the tree or spare */
    struct fl_heap_stats s;
    char name[FL_HEAP_NAME]; /* of `data`. Constant */
};

/* fl_heap_create after boot. */
int fl_heap_make(const struct fl_heap_options *o, struct fl_heap **out);

/* Around fork(2), by runtime/fork.c. child: `held`: the lock was taken before. */
void fl_heap_fork_lock(void);
void fl_heap_fork_parent(void);
void fl_heap_fork_child(bool held);
struct fl_lock *fl_heap_fork_word(void); /* the lock, for forks that need no more */

/* H1 to H3; NULL, or the name of the first that does not hold. For tests. */
const char *fl_heap_check(const struct fl_heap *heap);

#endif
