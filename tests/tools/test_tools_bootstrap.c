/* The statistics of compare on synthetic samples with fixed seeds: never a time. */
#include "faultstat/bootstrap.h"
#include "faultstat/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

enum { FL_TRIALS = 400, FL_N = 10 };

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

/* SKEWED: what disturbs a run makes it slower only. */
enum noise { NORMAL, SKEWED };

static void draw(double *value, size_t n, double mean, double sd, enum noise noise, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        double error = noise == NORMAL ? normal(state) : -log(uniform(state));
        value[i] = mean * (1 + sd * error);
    }
}

static size_t count(enum fl_verdict wanted, size_t n, double mean, double sd, enum noise noise,
                    size_t pairs, uint64_t seed)
{
    size_t found = 0;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        double own[FL_SAMPLES_MOST];
        double reference[FL_SAMPLES_MOST];
        struct fl_interval interval;
        draw(own, n, mean, sd, noise, &seed);
        draw(reference, n, 1, sd, noise, &seed);
        assert_true(fl_bootstrap_ratio(own, n, reference, n, fl_level_of(pairs), &interval));
        assert_true(interval.low <= interval.high);
        found += fl_verdict_of(&interval) == wanted;
    }
    return found;
}

static void equal_things_show_no_difference(void **state)
{
    (void)state;
    static const size_t n[] = {5, 6, 8, 10, 20};
    for (size_t k = 0; k < 5; k++) {
        for (int noise = NORMAL; noise <= SKEWED; noise++) {
            size_t same = count(FL_VERDICT_NO_DIFFERENCE, n[k], 1, 0.05, (enum noise)noise, 1, k);
            if (same < FL_TRIALS * 95 / 100) {
                fail_msg("n %zu, noise %d: %zu of %d", n[k], noise, same, FL_TRIALS);
            }
        }
    }
}

/* Six rows beside the first: in 95 of 100 tables no row shows a difference. */
static void a_whole_table_of_equal_things_shows_none(void **state)
{
    (void)state;
    uint64_t seed = 3;
    size_t clean = 0;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        double reference[FL_N];
        size_t shown = 0;
        draw(reference, FL_N, 1, 0.02, NORMAL, &seed);
        for (int row = 0; row < 6; row++) {
            double own[FL_N];
            struct fl_interval interval;
            draw(own, FL_N, 1, 0.02, NORMAL, &seed);
            assert_true(fl_bootstrap_ratio(own, FL_N, reference, FL_N, fl_level_of(6), &interval));
            shown += fl_verdict_of(&interval) != FL_VERDICT_NO_DIFFERENCE;
        }
        clean += shown == 0;
    }
    assert_true(clean >= FL_TRIALS * 95 / 100);
}

static void three_percent_are_found_with_ten_rounds(void **state)
{
    (void)state;
    assert_int_equal(count(FL_VERDICT_FASTER, FL_N, 0.97, 0.005, NORMAL, 1, 7), FL_TRIALS);
    assert_int_equal(count(FL_VERDICT_SLOWER, FL_N, 1.03, 0.005, NORMAL, 1, 8), FL_TRIALS);
    assert_int_equal(count(FL_VERDICT_FASTER, FL_N, 0.97, 0.005, NORMAL, 6, 9), FL_TRIALS);
    assert_int_equal(count(FL_VERDICT_FASTER, FL_N, 0.97, 0.005, SKEWED, 6, 10), FL_TRIALS);
}

static void the_interval_holds_the_true_ratio(void **state)
{
    (void)state;
    uint64_t seed = 5;
    size_t held = 0;
    for (size_t trial = 0; trial < FL_TRIALS; trial++) {
        double own[FL_N];
        double reference[FL_N];
        struct fl_interval interval;
        draw(own, FL_N, 0.5, 0.1, NORMAL, &seed);
        draw(reference, FL_N, 1, 0.1, NORMAL, &seed);
        assert_true(fl_bootstrap_ratio(own, FL_N, reference, FL_N, 0.95, &interval));
        held += interval.low <= 0.5 && interval.high >= 0.5;
    }
    assert_true(held >= FL_TRIALS * 95 / 100);
}

static void too_few_values_have_no_interval(void **state)
{
    (void)state;
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

static void equal_values_have_an_interval_of_one_point(void **state)
{
    (void)state;
    static const double four[] = {4, 4, 4, 4, 4};
    static const double two[] = {2, 2, 2, 2, 2};
    struct fl_interval interval;
    assert_true(fl_bootstrap_ratio(four, 5, two, 5, 0.95, &interval));
    assert_true(interval.low == 2 && interval.high == 2);
    assert_int_equal(fl_verdict_of(&interval), FL_VERDICT_SLOWER);
    assert_true(fl_bootstrap_ratio(two, 5, two, 5, 0.95, &interval));
    assert_int_equal(fl_verdict_of(&interval), FL_VERDICT_NO_DIFFERENCE);
}

static void the_same_samples_give_the_same_interval(void **state)
{
    (void)state;
    double own[FL_N];
    double reference[FL_N];
    uint64_t seed = 11;
    struct fl_interval a;
    struct fl_interval b;
    draw(own, FL_N, 1, 0.1, NORMAL, &seed);
    draw(reference, FL_N, 1, 0.1, NORMAL, &seed);
    assert_true(fl_bootstrap_ratio(own, FL_N, reference, FL_N, 0.95, &a));
    assert_true(fl_bootstrap_ratio(own, FL_N, reference, FL_N, 0.95, &b));
    assert_true(a.low == b.low && a.high == b.high);
}

static void outliers_and_a_slow_first_run_are_found(void **state)
{
    (void)state;
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

static void spread_is_the_interquartile_range(void **state)
{
    (void)state;
    static const double value[] = {50, 10, 30, 20, 40}; /* quartiles 20 and 40 */
    double spread = fl_noise_of(value, 5).spread;
    assert_true(spread > 0.666 && spread < 0.667);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_things_show_no_difference),
        cmocka_unit_test(a_whole_table_of_equal_things_shows_none),
        cmocka_unit_test(three_percent_are_found_with_ten_rounds),
        cmocka_unit_test(the_interval_holds_the_true_ratio),
        cmocka_unit_test(too_few_values_have_no_interval),
        cmocka_unit_test(equal_values_have_an_interval_of_one_point),
        cmocka_unit_test(the_same_samples_give_the_same_interval),
        cmocka_unit_test(outliers_and_a_slow_first_run_are_found),
        cmocka_unit_test(spread_is_the_interquartile_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
