/* What the program would take under faultless. Pure: figures in, figures out.
 *
 * In a steady step faultless takes no fault for blocks at and above its threshold: their pages
 * stay. So a step is shorter by what those faults cost, counted in processor time; elapsed time
 * shrinks in the same proportion. A program that marks no steps touches its peak once all the same,
 * and only what it touches again is saved. Not reckoned with: fewer TLB misses, memory of another
 * node, waiting. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_PREDICT_H
#define FAULTLESS_FAULTSTAT_RECORD_PREDICT_H

#include <stdbool.h>

struct fl_prediction_input {
    bool has_steps;
    double wall_ms;      /* of a steady step, or of the run, as recorded */
    double cpu_ms;       /* user and system, likewise */
    double recording_ms; /* the part of cpu_ms that the recording took */
    double avoidable;    /* faults a steady step, or of the run, that faultless does not take */
    double avoidable_ms; /* what they cost */
    double pages;        /* 4 KiB pages that the avoidable faults brought */
    double peak_pages;   /* of the run: pages that have to be touched once; 0 with steps */
};

struct fl_prediction {
    double bare_wall_ms; /* as it is, without the recording */
    double bare_cpu_ms;
    double wall_ms; /* under faultless */
    double cpu_ms;
    double saved_ms; /* of processor time */
    double faults;   /* avoided */
};

struct fl_prediction fl_predict(const struct fl_prediction_input *in);

#endif
