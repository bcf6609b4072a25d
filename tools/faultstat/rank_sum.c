#include "faultstat/rank_sum.h"

#include "faultstat/steps.h"

#include <string.h>

enum { FL_RATIOS_MOST = FL_RANKED_MOST * FL_RANKED_MOST };

/* How many of the ordered ratios to cut at each end: the most whose count of pairs has a
 * probability of at most `tail`. Counts the ways to choose the places of `m` values among m + n, by
 * how many of the n lie below them. */
static size_t cut_of(size_t m, size_t n, double tail)
{
    static double ways[FL_RANKED_MOST + 1][FL_RATIOS_MOST / 2 + 1]; /* static for its size */
    size_t most = m * n / 2;
    double all = 1;
    memset(ways, 0, sizeof(ways));
    ways[0][0] = 1;
    for (size_t place = 1; place <= m + n; place++) {
        for (size_t k = place < m ? place : m; k >= 1 && place - k <= n; k--) {
            for (size_t below = most + 1; below-- > place - k;) {
                ways[k][below] += ways[k - 1][below - (place - k)];
            }
        }
    }
    for (size_t i = 1; i <= m; i++) {
        all = all * (double)(n + i) / (double)i;
    }
    size_t cut = 0;
    double below = ways[m][0];
    while (cut < most && below / all <= tail) {
        below += ways[m][++cut];
    }
    return cut;
}

static bool is_enough(size_t count)
{
    return count >= FL_SAMPLES_LEAST && count <= FL_RANKED_MOST;
}

bool fl_rank_sum_ratio(const double *own, size_t own_count, const double *reference,
                       size_t reference_count, double level, struct fl_interval *out)
{
    double ratio[FL_RATIOS_MOST];
    size_t count = 0;
    if (!is_enough(own_count) || !is_enough(reference_count)) {
        return false;
    }
    for (size_t i = 0; i < own_count; i++) {
        for (size_t k = 0; k < reference_count; k++) {
            if (reference[k] <= 0) {
                return false;
            }
            ratio[count++] = own[i] / reference[k];
        }
    }
    size_t cut = cut_of(own_count, reference_count, (1 - level) / 2);
    if (cut == 0) {
        return false;
    }
    (void)fl_median(ratio, count); /* sorts */
    *out = (struct fl_interval){ratio[cut - 1], ratio[count - cut]};
    return true;
}
