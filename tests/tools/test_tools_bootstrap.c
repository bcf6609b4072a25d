/* The statistics of compare on synthetic samples with fixed seeds: never a time. */
#include "cases.h"
#include "faultstat/bootstrap.h"
#include "faultstat/noise.h"
#include "faultstat/rank_sum.h"
#include "faultstat/ratio.h"
#include "faultstat/signed_rank.h"
#include "faultstat/steps.h"

#include <math.h>

enum { FL_TRIALS = 1000, FL_N = 10 };

/* Numerical Recipes' 64-bit LCG and Box and Muller: another generator than the code's own. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(2 * 3.14159265358979 * uniform(state));
}

/* What disturbs the runs of a comparison. NORMAL to BIMODAL fall on each run by itself, the others
 * on the machine, so that neighbours in time share them. All in units of the noise. */
enum noise {
    NORMAL,
    SKEWED,    /* slower only */
    OUTLIERS,  /* one run in seven is much slower */
    BIMODAL,   /* two runs in five are 4 slower, as with another layout of the memory */
    DRIFT,     /* up to 10 faster or slower from the first run to the last */
    CHANGE,    /* likewise, at once */
    CLINGING,  /* each run is half like the one before */
    WANDERING, /* a slow change of 3 that nothing draws back */
    COLD,      /* the first round is slow, and its first run more so */
    NOISES
};

/* What the whole comparison has in common. */
struct weather {
    enum noise noise;
    double slope;
    double when;
    double state;
};

/* The error of run `at` of `runs`, in the order of time. */
static double error_of(struct weather *w, size_t at, size_t runs, uint64_t *state)
{
    double passed = (double)at / (double)runs;
    double error = normal(state);
    switch (w->noise) {
    case SKEWED:
        return -log(uniform(state));
    case OUTLIERS:
        return uniform(state) < 1.0 / 7 ? error - 30 * log(uniform(state)) : error;
    case BIMODAL:
        return error * 0.3 + (uniform(state) < 0.4 ? 4 : 0);
    case DRIFT:
        return error + w->slope * passed;
    case CHANGE:
        return error + (passed > w->when ? w->slope : 0);
    case CLINGING:
        return w->state = 0.5 * w->state + sqrt(0.75) * error;
    case WANDERING:
        w->state = 0.95 * w->state + sqrt(1 - 0.95 * 0.95) * error;
        return 3 * w->state + 0.5 * normal(state);
    case COLD:
        return error + (at == 0 ? 20 : at == 1 ? 5 : 0);
    default:
        return error;
    }
}

/* Fill `rows` samples of n as faultstat compare would: each round begins with another row. Row 0
 * has the mean 1, the others `mean`. */
static void draw(double value[][FL_SAMPLES_MOST], size_t rows, size_t n, double mean, double sd,
                 enum noise noise, uint64_t *state)
{
    struct weather weather = {noise, 20 * uniform(state) - 10, uniform(state), normal(state)};
    for (size_t at = 0; at < rows * n; at++) {
        size_t round = at / rows;
        size_t row = (round + at % rows) % rows;
        double error = error_of(&weather, at, rows * n, state);
        value[row][round] = (row == 0 ? 1 : mean) * (1 + sd * error);
    }
}

/* What a comparison with `pairs` rows beside the first says of one of them. */
static enum fl_verdict judge(const double *own, const double *reference, size_t n, size_t pairs)
{
    struct fl_samples samples = {own, n, reference, n, own, reference, n};
    struct fl_interval interval;
    assert_true(fl_ratio_interval(&samples, fl_level_of(pairs), &interval));
    assert_true(interval.low <= interval.high);
    return fl_verdict_of(&interval);
}

static size_t count(enum fl_verdict wanted, size_t n, double mean, double sd, enum noise noise,
                    size_t pairs, uint64_t seed)
{
    static double value[2][FL_SAMPLES_MOST];
    size_t found = 0;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        draw(value, 2, n, mean, sd, noise, &seed);
        found += judge(value[1], value[0], n, pairs) == wanted;
    }
    return found;
}

CASE(equal_things_show_no_difference)
{
    static const size_t n[] = {5, 7, 10, 20};
    for (size_t k = 0; k < sizeof(n) / sizeof(n[0]); k++) {
        for (int noise = NORMAL; noise < NOISES; noise++) {
            size_t same = count(FL_VERDICT_NO_DIFFERENCE, n[k], 1, 0.01, (enum noise)noise, 1, k);
            if (same < FL_TRIALS * 95 / 100) {
                fail_msg("n %zu, noise %d: %zu of %d", n[k], noise, same, FL_TRIALS);
            }
        }
    }
}

/* Six rows beside the first: in 95 of 100 tables no row shows a difference. */
CASE(a_whole_table_of_equal_things_shows_none)
{
    static double value[7][FL_SAMPLES_MOST];
    uint64_t seed = 3;
    size_t clean = 0;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        size_t shown = 0;
        draw(value, 7, FL_N, 1, 0.02, NORMAL, &seed);
        for (size_t row = 1; row < 7; row++) {
            shown += judge(value[row], value[0], FL_N, 6) != FL_VERDICT_NO_DIFFERENCE;
        }
        clean += shown == 0;
    }
    assert_true(clean >= FL_TRIALS * 95 / 100);
}

/* Noise of 1 %, and what else a machine does that is not loaded. */
CASE(three_percent_are_found_with_ten_rounds)
{
    static const struct {
        enum noise noise;
        size_t least; /* of 100 */
    } usual[] = {{NORMAL, 99},   {SKEWED, 95},    {DRIFT, 95},
                 {CLINGING, 99}, {WANDERING, 95}, {CHANGE, 88}};
    for (size_t k = 0; k < sizeof(usual) / sizeof(usual[0]); k++) {
        size_t faster = count(FL_VERDICT_FASTER, FL_N, 0.97, 0.01, usual[k].noise, 1, 7);
        size_t slower = count(FL_VERDICT_SLOWER, FL_N, 1.03, 0.01, usual[k].noise, 1, 8);
        size_t least = FL_TRIALS * usual[k].least / 100;
        if (faster < least || slower < least) {
            fail_msg("noise %d: %zu and %zu of %d", usual[k].noise, faster, slower, FL_TRIALS);
        }
    }
    assert_int_equal(count(FL_VERDICT_FASTER, FL_N, 0.97, 0.005, NORMAL, 6, 9), FL_TRIALS);
}

/* Noise of 2 %, as of programs of a tenth of a second. The medians by themselves find much less. */
CASE(more_is_found_than_by_the_medians)
{
    static const struct {
        enum noise noise;
        size_t least; /* of 100; by the bootstrap of the medians 73, 80, 36, 18, 63 */
    } noisy[] = {{NORMAL, 79}, {SKEWED, 88}, {OUTLIERS, 44}, {BIMODAL, 34}, {DRIFT, 69}};
    for (size_t k = 0; k < sizeof(noisy) / sizeof(noisy[0]); k++) {
        size_t found = count(FL_VERDICT_SLOWER, FL_N, 1.03, 0.02, noisy[k].noise, 1, 21);
        if (found < FL_TRIALS * noisy[k].least / 100) {
            fail_msg("noise %d: %zu of %d", noisy[k].noise, found, FL_TRIALS);
        }
    }
}

CASE(the_interval_holds_the_true_ratio)
{
    enum { FL_MANY = 2000 }; /* a standard error of half a percent */
    static double value[2][FL_SAMPLES_MOST];
    uint64_t seed = 5;
    size_t held[2] = {0};
    for (size_t trial = 0; trial < FL_MANY; trial++) {
        struct fl_interval interval;
        struct fl_samples s = {value[1], FL_N, value[0], FL_N, value[1], value[0], FL_N};
        draw(value, 2, FL_N, 0.5, 0.1, NORMAL, &seed);
        assert_true(fl_signed_rank_ratio(value[1], value[0], FL_N, 0.95, &interval));
        held[0] += interval.low <= 0.5 && interval.high >= 0.5;
        if (trial < FL_TRIALS) {
            assert_true(fl_ratio_interval(&s, fl_level_of(1), &interval));
            held[1] += interval.low <= 0.5 && interval.high >= 0.5;
        }
    }
    assert_true(held[0] >= FL_MANY * 94 / 100 && held[0] <= FL_MANY * 97 / 100);
    assert_true(held[1] >= FL_TRIALS * 95 / 100);
}

CASE(too_few_values_have_no_interval)
{
    static const double value[] = {1, 2, 3, 4, 5};
    static const double zero[] = {0, 2, 3, 4, 5};
    struct fl_interval interval = {-1, -1};
    assert_false(fl_bootstrap_ratio(value, 4, value, 5, 0.95, &interval));
    assert_false(fl_bootstrap_ratio(value, 5, value, 4, 0.95, &interval));
    assert_false(fl_bootstrap_ratio(value, 5, zero, 5, 0.95, &interval));
    assert_true(interval.low == -1 && interval.high == -1);
    assert_true(fl_bootstrap_ratio(zero, 5, value, 5, 0.95, &interval));
    assert_true(interval.low >= 0 && interval.high <= 5);
}

CASE(equal_values_have_an_interval_of_one_point)
{
    static const double four[] = {4, 4, 4, 4, 4};
    static const double two[] = {2, 2, 2, 2, 2};
    struct fl_interval interval;
    assert_true(fl_bootstrap_ratio(four, 5, two, 5, 0.95, &interval));
    assert_true(interval.low == 2 && interval.high == 2);
    assert_int_equal(fl_verdict_of(&interval), FL_VERDICT_SLOWER);
    assert_true(fl_bootstrap_ratio(two, 5, two, 5, 0.95, &interval));
    assert_int_equal(fl_verdict_of(&interval), FL_VERDICT_NO_DIFFERENCE);
}

CASE(the_same_samples_give_the_same_interval)
{
    static double value[2][FL_SAMPLES_MOST];
    uint64_t seed = 11;
    struct fl_interval a;
    struct fl_interval b;
    draw(value, 2, FL_N, 1, 0.1, NORMAL, &seed);
    assert_true(fl_bootstrap_ratio(value[1], FL_N, value[0], FL_N, 0.95, &a));
    assert_true(fl_bootstrap_ratio(value[1], FL_N, value[0], FL_N, 0.95, &b));
    assert_true(a.low == b.low && a.high == b.high);
}

/* The textbook's critical values: at 95 % two-sided 6 pairs cut 1, 8 cut 4, 10 cut 9. */
CASE(pairs_are_ranked_exactly)
{
    double one[FL_PAIRS_MOST + 1];
    double own[FL_PAIRS_MOST + 1];
    struct fl_interval interval = {-1, -1};
    for (size_t i = 0; i <= FL_PAIRS_MOST; i++) {
        one[i] = 1;
        own[i] = exp2((double)i); /* averages of two are i / 2, and k of them lie below k / 2 ... */
    }
    assert_false(fl_signed_rank_ratio(own, one, 5, 0.95, &interval));
    assert_false(fl_signed_rank_ratio(own, one, 0, 0.95, &interval));
    assert_false(fl_signed_rank_ratio(own, one, FL_PAIRS_MOST + 1, 0.95, &interval));
    assert_true(interval.low == -1);
    assert_true(fl_signed_rank_ratio(own, one, 6, 0.95, &interval));
    assert_true(fabs(interval.low - 1) < 1e-9 && fabs(interval.high / 32 - 1) < 1e-9);
    /* ... so the fourth of 0, 0.5, 1, 1, 1.5 is 1, and the ninth of 0, .5, 1, 1, 1.5, 1.5, 2, 2,
     * 2. */
    assert_true(fl_signed_rank_ratio(own, one, 8, 0.95, &interval));
    assert_true(fabs(interval.low - 2) < 1e-9);
    assert_true(fl_signed_rank_ratio(own, one, 10, 0.95, &interval));
    assert_true(fabs(interval.low - 4) < 1e-9);
    one[3] = 0;
    assert_false(fl_signed_rank_ratio(own, one, 10, 0.95, &interval));
}

/* The textbook's critical values: at 95 % two-sided, 5 and 5 values refuse 2 pairs and less, 8 and
 * 8 refuse 13, 10 and 10 refuse 23, 5 and 7 refuse 5, 20 and 20 refuse 127. */
CASE(samples_are_ranked_exactly)
{
    static const struct {
        size_t own, reference, critical;
    } table[] = {{5, 5, 2}, {8, 8, 13}, {10, 10, 23}, {5, 7, 5}, {7, 5, 5}, {20, 20, 127}};
    double own[FL_RANKED_MOST + 1];
    double reference[FL_RANKED_MOST + 1];
    struct fl_interval interval = {-1, -1};
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        size_t m = table[k].own;
        size_t n = table[k].reference;
        for (size_t i = 0; i < m || i < n; i++) { /* the ratios are 2^-(n - 1), ... 2^((m - 1) n) */
            own[i] = exp2((double)(i * n));
            reference[i] = exp2((double)i);
        }
        assert_true(fl_rank_sum_ratio(own, m, reference, n, 0.95, &interval));
        double cut = (double)table[k].critical;
        assert_true(interval.low == exp2(cut - (double)(n - 1)));
        assert_true(interval.high == exp2((double)((m - 1) * n) - cut));
    }
    interval.low = -1;
    assert_false(fl_rank_sum_ratio(own, 4, reference, 5, 0.95, &interval));
    assert_false(fl_rank_sum_ratio(own, 5, reference, FL_RANKED_MOST + 1, 0.95, &interval));
    assert_false(fl_rank_sum_ratio(own, 5, reference, 5, 0.995, &interval));
    assert_true(fl_rank_sum_ratio(own, 6, reference, 6, 0.995, &interval));
    interval.low = -1;
    reference[3] = 0;
    assert_false(fl_rank_sum_ratio(own, 5, reference, 5, 0.95, &interval));
    assert_true(interval.low == -1);
}

/* More values than are ranked, and fewer than have the level. */
CASE(the_bootstrap_stands_in)
{
    static double value[2][FL_SAMPLES_MOST];
    uint64_t seed = 17;
    draw(value, 2, 100, 1.03, 0.02, NORMAL, &seed);
    assert_int_equal(judge(value[1], value[0], 100, 1), FL_VERDICT_SLOWER);
    draw(value, 2, 5, 2, 0.02, NORMAL, &seed);
    assert_int_equal(judge(value[1], value[0], 5, 8), FL_VERDICT_SLOWER);
}

/* Pairs that say more are not heard where the medians say otherwise. */
CASE(the_interval_holds_the_ratio_of_the_medians)
{
    static double value[2][FL_SAMPLES_MOST];
    uint64_t seed = 13;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        struct fl_interval interval;
        struct fl_samples s = {value[1], FL_N, value[0], FL_N, value[1], value[0], FL_N};
        draw(value, 2, FL_N, 1, 0.02, BIMODAL, &seed);
        assert_true(fl_ratio_interval(&s, 0.95, &interval));
        double sorted[2][FL_N];
        memcpy(sorted[0], value[0], sizeof(sorted[0]));
        memcpy(sorted[1], value[1], sizeof(sorted[1]));
        double ratio = fl_median(sorted[1], FL_N) / fl_median(sorted[0], FL_N);
        assert_true(interval.low <= ratio && ratio <= interval.high);
    }
}

CASE(outliers_and_a_slow_first_run_are_found)
{
    static const double quiet[] = {10, 10.1, 9.9, 10.05, 9.95, 10.02};
    static const double slow_first[] = {30, 10.1, 9.9, 10.05, 9.95, 10.02};
    static const double slow_later[] = {10, 10.1, 9.9, 10.05, 30, 10.02};
    static const double fast_first[] = {1, 10.1, 9.9, 10.05, 9.95, 10.02};
    assert_int_equal(fl_noise_of(quiet, 6).outliers, 0);
    assert_int_equal(fl_noise_of(slow_first, 6).outliers, 1);
    assert_true(fl_noise_of(slow_first, 6).is_first_slow);
    assert_int_equal(fl_noise_of(slow_later, 6).outliers, 1);
    assert_false(fl_noise_of(slow_later, 6).is_first_slow);
    assert_int_equal(fl_noise_of(fast_first, 6).outliers, 1);
    assert_false(fl_noise_of(fast_first, 6).is_first_slow);
    assert_int_equal(fl_noise_of(slow_first, 3).outliers, 0);
}

CASE(spread_is_the_interquartile_range)
{
    static const double value[] = {50, 10, 30, 20, 40}; /* quartiles 20 and 40 */
    double spread = fl_noise_of(value, 5).spread;
    assert_true(spread > 0.666 && spread < 0.667);
}

CASES_MAIN()
