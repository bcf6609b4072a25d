/* The arithmetic over marks, against figures worked out by hand. */
#include "cases.h"
#include "faultstat/steps.h"

static const uint64_t ms = 1000000;

/* A mark that arrives at `at` ms, is answered 5 ms later, and has seen `minor` faults. */
static void add(struct fl_steps *steps, uint64_t at, uint64_t minor)
{
    struct fl_mark mark = {.arrive_ns = at * ms, .leave_ns = (at + 5) * ms};
    mark.look.app.minor = minor;
    mark.look.helper.minor = minor / 10;
    mark.look.memory.rss = 100 + steps->count;
    mark.look.memory.rss_peak = 500 + steps->count;
    assert_int_equal(fl_steps_add(steps, &mark), 0);
}

CASE(a_step_leaves_out_the_reading)
{
    struct fl_steps steps = {0};
    add(&steps, 100, 10);
    add(&steps, 125, 30);
    struct fl_step step = fl_steps_get(&steps, 0);
    assert_true(step.wall_ms > 19.99 && step.wall_ms < 20.01);
    assert_int_equal(step.minor, 20);
    assert_int_equal(step.helper_minor, 2);
    fl_steps_clear(&steps);
}

CASE(no_step_is_no_data)
{
    struct fl_steps steps = {0};
    struct fl_steps_summary s;
    assert_int_equal(fl_steps_summarise(&steps, FL_WARMUP_DEFAULT, &s), -ENODATA);
    add(&steps, 1, 1);
    assert_int_equal(fl_steps_summarise(&steps, FL_WARMUP_DEFAULT, &s), -ENODATA);
    fl_steps_clear(&steps);
}

CASE(warmup_is_a_third_at_least_three_and_never_all)
{
    static const size_t wanted[][2] = {{1, 1}, {3, 1}, {4, 1}, {5, 2}, {9, 6}, {30, 20}};
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        struct fl_steps steps = {0};
        struct fl_steps_summary s;
        for (size_t mark = 0; mark <= wanted[i][0]; mark++) {
            add(&steps, mark * 10, mark);
        }
        assert_int_equal(fl_steps_summarise(&steps, FL_WARMUP_DEFAULT, &s), 0);
        assert_int_equal(s.steps, wanted[i][0]);
        assert_int_equal(s.steady, wanted[i][1]);
        assert_int_equal(fl_steps_summarise(&steps, 0, &s), 0);
        assert_int_equal(s.steady, wanted[i][0]);
        assert_int_equal(fl_steps_summarise(&steps, 1000, &s), 0);
        assert_int_equal(s.steady, 1);
        fl_steps_clear(&steps);
    }
}

CASE(summary_figures_are_those_of_steady_steps)
{
    struct fl_steps steps = {0};
    struct fl_steps_summary s;
    static const uint64_t at[] = {0, 1005, 1030, 1065, 1080, 1125}; /* steps 1000 20 30 10 40 ms */
    static const uint64_t minor[] = {0, 900, 900, 904, 904, 910};   /* 900 0 4 0 6 */
    for (size_t i = 0; i < 6; i++) {
        add(&steps, at[i], minor[i]);
    }
    assert_int_equal(fl_steps_summarise(&steps, 1, &s), 0);
    assert_int_equal(s.steady, 4);
    assert_true(s.wall_ms_median > 24.99 && s.wall_ms_median < 25.01);
    assert_true(s.wall_ms_mean > 24.99 && s.wall_ms_mean < 25.01);
    assert_true(s.wall_ms_min > 9.99 && s.wall_ms_min < 10.01);
    assert_true(s.minor_median > 1.99 && s.minor_median < 2.01);
    assert_true(s.minor_mean > 2.49 && s.minor_mean < 2.51);
    assert_int_equal(s.minor_max, 6);
    assert_int_equal(s.first.minor, 900);
    assert_int_equal(s.base_rss, 100);
    assert_int_equal(s.peak_above, 505 - 100);
    fl_steps_clear(&steps);
}

CASE(a_counter_that_seems_to_run_backward_counts_as_zero)
{
    struct fl_steps steps = {0};
    add(&steps, 0, 50);
    add(&steps, 10, 40);
    assert_int_equal(fl_steps_get(&steps, 0).minor, 0);
    fl_steps_clear(&steps);
}

CASE(median_of_even_and_odd_counts)
{
    double odd[] = {9, 1, 5};
    double even[] = {4, 1, 3, 2};
    assert_true(fl_median(odd, 3) > 4.99 && fl_median(odd, 3) < 5.01);
    assert_true(fl_median(even, 4) > 2.49 && fl_median(even, 4) < 2.51);
}

CASES_MAIN()
