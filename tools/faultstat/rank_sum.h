/* The interval of a ratio of two samples by the ranks of their values. Nothing is assumed of how
 * the values scatter, but that both scatter alike. Pure. */
#ifndef FAULTLESS_FAULTSTAT_RANK_SUM_H
#define FAULTLESS_FAULTSTAT_RANK_SUM_H

#include "faultstat/bootstrap.h"

enum { FL_RANKED_MOST = 32 }; /* values of a sample: with more the bootstrap is good */

/* The interval of own / reference: the ratios that the rank sum test of Mann, Whitney and Wilcoxon
 * does not refuse, with exact probabilities.
 * False, and `out` untouched: a sample is smaller than FL_SAMPLES_LEAST or larger than
 * FL_RANKED_MOST, the reference has a value that is not above 0, or no interval has the level; 0.97
 * takes 5 values each, 0.995 takes 6.
 * Source: Hollander and Wolfe, "Nonparametric Statistical Methods", 4.3. */
bool fl_rank_sum_ratio(const double *own, size_t own_count, const double *reference,
                       size_t reference_count, double level, struct fl_interval *out);

#endif
