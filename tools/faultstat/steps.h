/* Keeps the marks of one run and sums up its steps.
 * P1: mark[i].arrive_ns <= mark[i].leave_ns <= mark[i + 1].arrive_ns. Step i lies between mark i's
 * leaving and mark i + 1's arrival: what the reading cost is in neither. */
#ifndef FAULTLESS_FAULTSTAT_STEPS_H
#define FAULTLESS_FAULTSTAT_STEPS_H

#include "faultstat/sampler.h"

#include <stddef.h>

struct fl_mark {
    uint64_t arrive_ns; /* the program's byte was received */
    uint64_t leave_ns;  /* the answer was sent */
    struct fl_look look;
};

struct fl_steps {
    struct fl_mark *mark;
    size_t count;
    size_t capacity;
    pid_t pid;        /* the process that marks; 0 = none so far */
    uint64_t foreign; /* marks of other processes: answered, not counted */
};

/* Figures of one step. */
struct fl_step {
    double wall_ms;
    double user_ms; /* resolution 10 ms: good as a mean over steps, not for one */
    double sys_ms;
    uint64_t minor; /* application threads */
    uint64_t major;
    uint64_t helper_minor; /* threads named fl-* */
};

struct fl_steps_summary {
    size_t steps; /* all */
    size_t
        steady; /* those after the warm-up; the figures below are theirs unless named otherwise */
    struct fl_step first;
    double wall_ms_median, wall_ms_mean, wall_ms_min;
    double minor_median, minor_mean, minor_max;
    double major_mean, helper_minor_mean;
    double user_ms_mean, sys_ms_mean;
    uint64_t base_rss;   /* VmRSS at the first mark: what the imports left */
    uint64_t peak_above; /* VmHWM at the last mark, above base_rss */
};

enum { FL_WARMUP_DEFAULT = -1 };

/* Add a mark at the end. Returns 0; -ENOMEM.  Threads: one. */
int fl_steps_add(struct fl_steps *steps, const struct fl_mark *mark);

/* Number of whole steps: one less than marks. */
size_t fl_steps_count(const struct fl_steps *steps);

/* Figures of step `i` < fl_steps_count(). */
struct fl_step fl_steps_get(const struct fl_steps *steps, size_t i);

/* Sum up.
 *   warmup   steps left out; FL_WARMUP_DEFAULT: a third, at least 3. One step is always kept.
 * Returns 0; -ENODATA when there is no whole step; -ENOMEM.  Threads: any. */
int fl_steps_summarise(const struct fl_steps *steps, int warmup, struct fl_steps_summary *out);

/* Release the marks. */
void fl_steps_clear(struct fl_steps *steps);

/* Median of `n` >= 1 values, which it sorts; the mean of the middle two when n is even. */
double fl_median(double *value, size_t n);

#endif
