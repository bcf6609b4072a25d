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

static double median_of(const double *value, size_t count)
{
    double sorted[FL_SAMPLES_MOST];
    memcpy(sorted, value, count * sizeof(*value));
    return fl_median(sorted, count);
}

bool fl_ratio_interval(const struct fl_samples *s, double level, struct fl_interval *out)
{
    struct fl_interval paired;
    double half = 1 - (1 - level) / 2;
    if (!fl_bootstrap_ratio(s->own, s->own_count, s->reference, s->reference_count, half, out)) {
        return false;
    }
    double reference = median_of(s->reference, s->reference_count);
    double ratio = reference > 0 ? median_of(s->own, s->own_count) / reference : out->low;
    if (fl_signed_rank_ratio(s->paired_own, s->paired_reference, s->pairs, half, &paired)) {
        paired.low = fmin(paired.low, ratio);
        paired.high = fmax(paired.high, ratio);
        *out = paired.high - paired.low < out->high - out->low ? paired : *out;
    }
    return true;
}
