/* Blocks on hugetlb pages; see hugetlb.c. Included by region.h. */
#ifndef FL_REGION_HUGETLB_H
#define FL_REGION_HUGETLB_H

#include "space/space.h"

struct fl_region;

enum fl_hugetlb_kind { FL_HUGETLB_2M = 1, FL_HUGETLB_1G = 2 };

/* Lock: region. */
struct fl_hugetlb {
    struct fl_extent_list live; /* blocks on hugetlb pages, and those freed while copies are made */
    struct fl_extent *copied;   /* the first that the fork under way copies; NULL: there is none */
    struct fl_extent *freed;    /* meanwhile; a chain by `next` */
    _Atomic uint32_t forking;   /* 1: a thread copies. Without the lock; others wait on it */
};

/* Whole hugetlb pages, all of them there and zero, LIVE. NULL: none is to be had, and ordinary
 * pages serve. Threads: any; no lock of ours held. */
struct fl_extent *fl_hugetlb_take(struct fl_region *r, size_t len, size_t align);
/* The CACHED `e`, whatever it is, is about to be mapped anew. False: later, when copies of it have
 * been made. Lock: region. */
bool fl_hugetlb_leave(struct fl_region *r, struct fl_extent *e);

/* Around fork(2), outside of fl_region_fork_lock: children get copies of blocks on hugetlb pages.
 * child: `whole` is what fl_region_fork_child said.  Cost: nothing where there are none; else a
 * copy of each, some 0.3 s a GiB. */
void fl_hugetlb_fork_prepare(struct fl_region *r);
void fl_hugetlb_fork_parent(struct fl_region *r);
void fl_hugetlb_fork_child(struct fl_region *r, bool whole);

/* The program gives the pages of `range`, anything, back to the kernel, which does that of hugetlb
 * pages by the whole page or not at all. True: it lies in a block on such pages, and the call is
 * done: cleared, where `clear`.  Threads: any.  Signals: safe. */
bool fl_region_drop_hugetlb(struct fl_region *r, struct fl_range range, bool clear);

#endif
