#include "faultstat/ratio.h"

#include "faultstat/rank_sum.h"
#include "faultstat/signed_rank.h"
#include "faultstat/steps.h"

#include <math.h>
#include <string.h>

/* How much of the error each way has. Both look at the same runs, so they mostly err together: with
 * three quarters each, both together keep the level. */
#define FL_SHARE 0.75
/* The bootstrap of few values is a little too narrow. */
#define FL_BOOTSTRAP_SHARE 0.5

static double median_of(const double *value, size_t count)
{
    double sorted[FL_SAMPLES_MOST];
    memcpy(sorted, value, count * sizeof(*value));
    return fl_median(sorted, count);
}

static struct fl_interval with(struct fl_interval interval, double value)
{
    return (struct fl_interval){fmin(interval.low, value), fmax(interval.high, value)};
}

bool fl_ratio_interval(const struct fl_samples *s, double level, struct fl_interval *out)
{
    struct fl_interval paired;
    double part = 1 - (1 - level) * FL_SHARE;
    if (!fl_rank_sum_ratio(s->own, s->own_count, s->reference, s->reference_count, part, out) &&
        !fl_bootstrap_ratio(s->own, s->own_count, s->reference, s->reference_count,
                            1 - (1 - level) * FL_BOOTSTRAP_SHARE, out)) {
        return false;
    }
    double ratio = median_of(s->own, s->own_count) / median_of(s->reference, s->reference_count);
    *out = with(*out, ratio);
    if (fl_signed_rank_ratio(s->paired_own, s->paired_reference, s->pairs, part, &paired)) {
        paired = with(paired, ratio);
        *out = paired.high - paired.low < out->high - out->low ? paired : *out;
    }
    return true;
}
