/* What the program would take under faultless. Pure: figures in, figures out.
 *
 * A step's processor time is user time and system time. Under faultless a steady step takes no
 * fault for blocks at and above the threshold, so of the system time only the rest stays: other
 * faults, other calls. User time stays, less what each fault costs in it (trail), less what base
 * pages cost in address translation, and with what clearing costs where the program reads zeros.
 * What base pages cost a program lies between nothing and what they cost a streaming loop (walk):
 * the middle is taken, and the interval holds both. Never less is left than writing and reading the
 * pages takes that the faults brought, from memory; in the recording the kernel had just put them
 * into the caches. So the prediction starts from the user time that was measured, and not from a
 * difference of two large figures: an error of 10 % in what a fault costs would be as large as the
 * step itself where faults are nine tenths of it.
 *
 * What other calls take is seen by the clock where the kernel may be looked at. Elsewhere system
 * time beyond what the faults cost by calibration is theirs while it is little: memory is not
 * always in the caches. Where it is much, it may be theirs, as the host of a virtual machine takes
 * memory back, or other calls': the prediction is then an interval.
 *
 * A program that marks no steps touches its peak once all the same, and only what it touches again
 * is saved. Not reckoned with: memory of another node, waiting. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_PREDICT_H
#define FAULTLESS_FAULTSTAT_RECORD_PREDICT_H

#include <stdbool.h>

struct fl_prediction_input {
    bool has_steps;
    double wall_ms;       /* of a steady step, or of the run, as recorded; the next four likewise */
    double cpu_ms;        /* user and system */
    double user_ms;       /* user */
    double user_error_ms; /* the standard error of user_ms */
    double recording_ms;  /* the part of the system time that the recording took */
    double avoidable;     /* faults that faultless does not take; the next four are of them */
    double kernel_ms;     /* their system time, as calibrated */
    double trail_ms;      /* their part of the user time, may be below 0 */
    double reach_ms;      /* how far that may lie off, either way */
    double walk_ms;       /* user time that huge pages save a streaming loop, beside the faults */
    double clear_ms;      /* what clearing costs where they read zeros */
    double kept_ms;       /* system time of other faults, as calibrated */
    double io_ms;         /* of reading and writing, by its amount */
    bool knows_calls;     /* the clock has seen which calls were made ... */
    double call_ms;       /* ... and those that do not map or unmap took this */
    double floor_ms;      /* user time of writing and reading once what the faults brought */
    double pages;         /* 4 KiB pages that the avoidable faults brought */
    double base_pages;    /* those among them that are no part of huge ones */
    double peak_pages;    /* of the run: pages that have to be touched once; 0 with steps */
};

/* Why a prediction is an interval and no figure. */
enum fl_doubt {
    FL_DOUBT_NONE,
    FL_DOUBT_SYSTEM, /* system time that neither faults nor reads and writes explain */
    FL_DOUBT_SHORT,  /* too little of the clock */
    FL_DOUBT_COSTS,  /* what hangs on the calibration is too much */
    FL_DOUBT_COUNT
};

/* As the output says it; "" for none. */
extern const char *const fl_doubt_text[FL_DOUBT_COUNT];

struct fl_prediction {
    double bare_wall_ms; /* as it is, without the recording */
    double bare_cpu_ms;
    double cpu_ms; /* under faultless: the middle of the next two */
    double low_ms;
    double high_ms;
    double faults; /* avoided */
    double dearer; /* times the calibrated cost that the faults took: at least that */
    enum fl_doubt doubt;
};

struct fl_prediction fl_predict(const struct fl_prediction_input *in);

#endif
