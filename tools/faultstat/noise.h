/* How far a sample can be relied on: outliers, a slow first run, spread. Pure. */
#ifndef FAULTLESS_FAULTSTAT_NOISE_H
#define FAULTLESS_FAULTSTAT_NOISE_H

#include <stdbool.h>
#include <stddef.h>

struct fl_noise {
    size_t outliers;    /* values that something disturbed */
    bool is_first_slow; /* the first value is one of them, and the largest */
    double spread;      /* interquartile range as a part of the median */
};

#define FL_NOISE_SPREAD 0.1 /* a spread above this is worth a warning */

/* Judge `n` values in the order in which they were measured. Fewer than four say nothing: all 0.
 * An outlier is as in hyperfine: its modified z-score, 0.6745 |x - median| / MAD, is above 14.826.
 * Source: Iglewicz and Hoaglin, "How to detect and handle outliers", 1993. */
struct fl_noise fl_noise_of(const double *value, size_t n);

#endif
