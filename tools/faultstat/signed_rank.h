/* The interval of a ratio from runs that were made in pairs, a pair a round. What both runs of a
 * round share (drift, a neighbour that came) cancels out. Pure. */
#ifndef FAULTLESS_FAULTSTAT_SIGNED_RANK_H
#define FAULTLESS_FAULTSTAT_SIGNED_RANK_H

#include "faultstat/bootstrap.h"

enum { FL_PAIRS_MOST = 64 };

/* The interval of own[i] / reference[i] for i < `count`: that of Wilcoxon's signed-rank test on the
 * logarithms, with exact probabilities.
 * False, and `out` untouched: a value is not above 0, there are more than FL_PAIRS_MOST pairs, or
 * so few that no interval has the level; 0.96 takes 6 pairs, 0.98 takes 7.
 * Source: Hollander and Wolfe, "Nonparametric Statistical Methods", 3.3 (Walsh averages). */
bool fl_signed_rank_ratio(const double *own, const double *reference, size_t count, double level,
                          struct fl_interval *out);

#endif
