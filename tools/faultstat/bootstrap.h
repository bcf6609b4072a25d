/* The interval of a ratio of two medians, and what it says. Pure: the generator starts from a
 * constant, so equal samples give equal answers. */
#ifndef FAULTLESS_FAULTSTAT_BOOTSTRAP_H
#define FAULTLESS_FAULTSTAT_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>

/* Below five two samples of equal things lie apart too often for 95 %: C(8, 4) is 70, C(10, 5) is
 * 252, of which two are complete separations. */
enum { FL_SAMPLES_LEAST = 5, FL_SAMPLES_MOST = 1000 };

struct fl_interval {
    double low;
    double high;
};

enum fl_verdict {
    FL_VERDICT_REFERENCE,
    FL_VERDICT_FASTER, /* the ratio of times is below 1 */
    FL_VERDICT_SLOWER,
    FL_VERDICT_NO_DIFFERENCE, /* none could be shown */
    FL_VERDICT_TOO_FEW,
    FL_VERDICT_NOT_COMPARED, /* it was not what was measured */
    FL_VERDICT_COUNT
};

/* As JSON and tables say it. */
extern const char *const fl_verdict_word[FL_VERDICT_COUNT];

/* The interval of median(own) / median(reference), by the percentile bootstrap.
 *   level   between 0 and 1; see fl_level_of.
 * False, and `out` untouched: a sample is smaller than FL_SAMPLES_LEAST or larger than
 * FL_SAMPLES_MOST, or the reference has a value that is not above 0. */
bool fl_bootstrap_ratio(const double *own, size_t own_count, const double *reference,
                        size_t reference_count, double level, struct fl_interval *out);

/* The level of each of `pairs` intervals, so that all of them hold in 95 of 100 cases. */
double fl_level_of(size_t pairs);

/* What an interval says of a time. */
enum fl_verdict fl_verdict_of(const struct fl_interval *interval);

#endif
