#include "faultstat/signed_rank.h"

#include "faultstat/steps.h"

#include <math.h>
#include <string.h>

enum { FL_SUM_MOST = FL_PAIRS_MOST * (FL_PAIRS_MOST + 1) / 2 };

/* How many of the ordered Walsh averages to cut at each end: the most whose rank sum has a
 * probability of at most `tail`. Counts the subsets of 1 ... n by their sum. */
static size_t cut_of(size_t n, double tail)
{
    double ways[FL_SUM_MOST + 1] = {1};
    size_t top = 0;
    for (size_t rank = 1; rank <= n; rank++) {
        top += rank;
        for (size_t sum = top; sum >= rank; sum--) {
            ways[sum] += ways[sum - rank];
        }
    }
    size_t cut = 0;
    double below = ways[0];
    while (cut < top / 2 && below / exp2((double)n) <= tail) {
        below += ways[++cut];
    }
    return cut;
}

bool fl_signed_rank_ratio(const double *own, const double *reference, size_t count, double level,
                          struct fl_interval *out)
{
    double ratio[FL_PAIRS_MOST];
    double walsh[FL_SUM_MOST];
    size_t averages = 0;
    if (count == 0 || count > FL_PAIRS_MOST) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (own[i] <= 0 || reference[i] <= 0) {
            return false;
        }
        ratio[i] = log(own[i] / reference[i]);
        for (size_t k = 0; k <= i; k++) {
            walsh[averages++] = (ratio[i] + ratio[k]) / 2;
        }
    }
    size_t cut = cut_of(count, (1 - level) / 2);
    if (cut == 0) {
        return false;
    }
    (void)fl_median(walsh, averages); /* sorts */
    *out = (struct fl_interval){exp(walsh[cut - 1]), exp(walsh[averages - cut])};
    return true;
}
