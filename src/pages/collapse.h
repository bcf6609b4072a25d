/* Huge pages that were split become whole again: MADV_COLLAPSE, which copies. For the worker, with
 * no lock held. Included by pages.h. */
#ifndef FL_PAGES_COLLAPSE_H
#define FL_PAGES_COLLAPSE_H

#include "core/core.h"

struct fl_pages;

/* What a look has come to. */
struct fl_collapsed {
    bool forked;    /* pages may be shared with a child: that is looked for, too */
    size_t bytes;   /* that became huge */
    size_t refused; /* collapses that the kernel refuses for good */
    size_t left;    /* huge pages seen that are shared or split still */
};

/* Collapses what of `range`, whole huge pages, is split and worth it, but for what holes.h has as
 * split. */
void fl_collapse_range(struct fl_pages *p, struct fl_range range, struct fl_collapsed *sum);
/* With p->collapse, else nothing: huge pages into `fresh`, where nothing is yet. A collapse clears
 * what is not there of one, as a fault does. What it refuses is left as it is, but for a base
 * page. */
void fl_collapse_bring(const struct fl_pages *p, struct fl_range fresh);

#endif
