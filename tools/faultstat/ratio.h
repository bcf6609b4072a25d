/* The interval of the ratio of two allocators' figures. Pure. */
#ifndef FAULTLESS_FAULTSTAT_RATIO_H
#define FAULTLESS_FAULTSTAT_RATIO_H

#include "faultstat/bootstrap.h"

/* The values of two allocators; the arrays may be the same. */
struct fl_samples {
    const double *own;
    size_t own_count;
    const double *reference;
    size_t reference_count;
    const double *paired_own; /* of the rounds that both have, in their order */
    const double *paired_reference;
    size_t pairs;
};

/* The interval that verdicts go by: the narrower of the rank sum's, which bears outliers, and the
 * signed rank's, which bears drift. With more than FL_RANKED_MOST values, and where so few are too
 * few for the level, the bootstrap's stands for the rank sum's. It always holds the ratio of the
 * medians.
 * False, and `out` untouched: as fl_bootstrap_ratio. */
bool fl_ratio_interval(const struct fl_samples *samples, double level, struct fl_interval *out);

#endif
