/* Requests that are carved by plan. Lock: region. */
#ifndef FL_REGION_RUN_H
#define FL_REGION_RUN_H

#include "region/fill_plan.h"

/* What a request is carved from, and what that costs. */
struct fl_run {
    struct fl_extent *start; /* first of the adjacent FREE extents; NULL: none found */
    struct fl_range part;    /* that is taken of them */
    size_t want;             /* bytes that the program asks for with it */
    size_t fresh;            /* bytes to fill: EMPTY, in whole huge pages */
    size_t own;              /* of whole huge pages that the run loses: not to be given away */
};
/* Carves by plan, see run.c. NULL: g->refusal says why, as fl_supply_plan and fl_carve have it, and
 * nothing is planned or claimed.
 *   out_holes  why what is absent of it may not be brought in; 0: it may */
struct fl_extent *fl_run_carve(struct fl_region *r, struct fl_fill_plan *g,
                               const struct fl_run *run, int *out_holes);

#endif
