/* The percentile bootstrap. A sample is sorted once; a draw of n from it is then a count for each
 * value, and its median is found by walking the counts. */
#include "faultstat/bootstrap.h"

#include "faultstat/steps.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FL_DRAWS = 4000, FL_DRAWS_LEAST = 400, FL_WORK = 400000 /* draws by values, at most */ };

const char *const fl_verdict_word[FL_VERDICT_COUNT] = {
    "reference", "faster", "slower", "no difference", "too few runs", "not compared",
};

/* splitmix64. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators". */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The median of n values drawn with replacement from the n of `sorted`. */
static double drawn_median(const double *sorted, size_t n, uint64_t *state)
{
    uint16_t count[FL_SAMPLES_MOST] = {0};
    for (size_t i = 0; i < n; i++) {
        count[(next_random(state) >> 32) * n >> 32]++;
    }
    size_t below = 0;
    size_t i = 0;
    while ((below += count[i]) <= (n - 1) / 2) {
        i++;
    }
    double lower = sorted[i];
    while (below <= n / 2) {
        below += count[++i];
    }
    return (lower + sorted[i]) / 2;
}

static bool copy_sorted(const double *value, size_t n, double out[FL_SAMPLES_MOST])
{
    if (n < FL_SAMPLES_LEAST || n > FL_SAMPLES_MOST) {
        return false;
    }
    memcpy(out, value, n * sizeof(*out));
    (void)fl_median(out, n); /* sorts */
    return true;
}

bool fl_bootstrap_ratio(const double *own, size_t own_count, const double *reference,
                        size_t reference_count, double level, struct fl_interval *out)
{
    double a[FL_SAMPLES_MOST];
    double b[FL_SAMPLES_MOST];
    double ratio[FL_DRAWS];
    uint64_t state = 1;
    if (!copy_sorted(own, own_count, a) || !copy_sorted(reference, reference_count, b) ||
        b[0] <= 0) {
        return false;
    }
    size_t most = own_count > reference_count ? own_count : reference_count;
    size_t draws = FL_WORK / most;
    draws = draws > FL_DRAWS ? FL_DRAWS : draws < FL_DRAWS_LEAST ? FL_DRAWS_LEAST : draws;
    for (size_t i = 0; i < draws; i++) {
        double above = drawn_median(a, own_count, &state);
        ratio[i] = above / drawn_median(b, reference_count, &state);
    }
    (void)fl_median(ratio, draws);
    size_t cut = (size_t)((1 - level) / 2 * (double)draws);
    *out = (struct fl_interval){ratio[cut], ratio[draws - 1 - cut]};
    return true;
}

/* 0.04 and not 0.05: rounds are not quite independent of each other. */
double fl_level_of(size_t pairs)
{
    return 1 - 0.04 / (double)(pairs > 0 ? pairs : 1);
}

enum fl_verdict fl_verdict_of(const struct fl_interval *interval)
{
    return interval->high < 1  ? FL_VERDICT_FASTER
           : interval->low > 1 ? FL_VERDICT_SLOWER
                               : FL_VERDICT_NO_DIFFERENCE;
}
