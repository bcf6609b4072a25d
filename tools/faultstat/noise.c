/* Median absolute deviation and quartiles. */
#include "faultstat/noise.h"

#include "faultstat/bootstrap.h"
#include "faultstat/steps.h"

#include <math.h>
#include <string.h>

#define FL_OUTLIER_SCORE 14.826
#define FL_MAD_TO_SD 0.6745

/* Of a sorted sample, by linear interpolation. */
static double quantile(const double *sorted, size_t n, double part)
{
    double at = part * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

struct fl_noise fl_noise_of(const double *value, size_t n)
{
    struct fl_noise noise = {0};
    double sorted[FL_SAMPLES_MOST];
    double deviation[FL_SAMPLES_MOST];
    if (n < 4 || n > FL_SAMPLES_MOST) {
        return noise;
    }
    memcpy(sorted, value, n * sizeof(*sorted));
    double median = fl_median(sorted, n);
    for (size_t i = 0; i < n; i++) {
        deviation[i] = fabs(value[i] - median);
    }
    double mad = fl_median(deviation, n);
    for (size_t i = 0; i < n && mad > 0; i++) {
        bool is_outlier = FL_MAD_TO_SD * fabs(value[i] - median) / mad > FL_OUTLIER_SCORE;
        noise.outliers += is_outlier;
        noise.is_first_slow |= is_outlier && i == 0 && value[0] >= sorted[n - 1];
    }
    noise.spread =
        median > 0 ? (quantile(sorted, n, 0.75) - quantile(sorted, n, 0.25)) / median : 0;
    return noise;
}
