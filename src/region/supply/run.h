/* Requests that are carved by plan. Lock: region. */
#ifndef FL_REGION_RUN_H
#define FL_REGION_RUN_H

#include "region/supply/fill_plan.h"

/* What it takes to serve the request from the run of adjacent FREE extents that begins with `e`;
 * fresh SIZE_MAX: it does not fit, or an aligned start lies behind `e`. */
struct fl_run fl_run_from(struct fl_region *r, struct fl_extent *e, size_t len, size_t align);
/* The run that serves the request with the least population, the lowest such: an EMPTY extent, with
 * the populated one before it where there is one. Where pages have to move anyway it is the lowest
 * run: the window stays short. */
void fl_run_find(struct fl_region *r, size_t len, size_t align, unsigned zone, struct fl_run *best);
/* Carves g->run by plan, see run.c. NULL: g->supply.refusal says why, as fl_supply_plan and
 * fl_carve have it, and nothing is planned or claimed.
 *   out_holes  why what is absent of it may not be brought in */
struct fl_extent *fl_run_carve(struct fl_region *r, struct fl_fill_plan *g,
                               enum fl_refusal *out_holes);

#endif
