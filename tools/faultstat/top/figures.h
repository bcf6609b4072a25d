/* Figures that are made of those of a process, and the order of processes by them. */
#ifndef FAULTLESS_FAULTSTAT_TOP_FIGURES_H
#define FAULTLESS_FAULTSTAT_TOP_FIGURES_H

#include "faultstat/top/process.h"

enum { FL_TOP_REASON = 128 };

/* NAN: not known; likewise below. What comes out below 0 was read while it changed: 0. */
double fl_top_figure(const struct fl_top_process *p, enum fl_live_figure figure);
/* Of the requests of planned steps, those that were served where the plan says. */
double fl_top_hit_pct(const struct fl_top_process *p);
/* Of the anonymous memory that is resident, what is in huge pages, by the kernel's account. */
double fl_top_huge_pct(const struct fl_top_process *p);
/* How pages move: "uffd", "mremap", "none"; "?": that is not known yet; "off": the process is not
 * served; "-": not known. */
const char *fl_top_method(const struct fl_top_process *p);
/* What the context that is farthest does: "serve", "pack", "learn", "rest"; "-": there is
 * none. */
const char *fl_top_plan(const struct fl_top_process *p);
/* Why there are no counters, in words; of one with an error. */
void fl_top_reason(const struct fl_top_process *p, char text[FL_TOP_REASON]);

/* By which figure; processes with most of it first. */
enum fl_top_key {
    FL_TOP_LIVE,
    FL_TOP_RESIDENT,
    FL_TOP_RESERVE,
    FL_TOP_FAULTS,
    FL_TOP_REQUESTS,
    FL_TOP_HIT,
    FL_TOP_PID, /* smallest first */
    FL_TOP_KEYS,
};

/* "live", ... */
const char *fl_top_key_name(enum fl_top_key key);
/* FL_TOP_KEYS: there is none of that name. */
enum fl_top_key fl_top_key_of(const char *name);

void fl_top_sort(struct fl_top *top, enum fl_top_key key);

#endif
