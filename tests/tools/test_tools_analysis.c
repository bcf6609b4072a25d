/* From made-up runs to verdicts and warnings: never a time. */
#include "cases.h"
#include "faultstat/analysis.h"

#include <math.h>

enum { FL_N = 6 };

static struct fl_comparison c;
static struct fl_analysis a;

/* Runs of one allocator: times of `mean` s with a little spread, `faults` each. */
static void add(const char *name, double mean, double faults)
{
    static const double spread[FL_N] = {1.0, 1.004, 0.996, 1.002, 0.998, 1.001};
    size_t peer = c.peers.count++;
    c.peers.peer[peer].is_present = true;
    c.peers.peer[peer].start_s = 0.001;
    strcpy(c.peers.peer[peer].name, name);
    for (size_t i = 0; i < FL_N; i++) {
        struct fl_run *run = &c.run[peer * FL_N + i];
        for (int m = 0; m < FL_METRIC_COUNT; m++) {
            run->value[m] = NAN;
        }
        run->value[FL_METRIC_WALL_S] = mean * spread[i];
        run->value[FL_METRIC_FAULTS] = faults;
        run->served.state = FL_SERVED_OK;
        run->is_done = true;
    }
}

static void begin(void)
{
    memset(&c, 0, sizeof(c));
    c.plan.rounds = FL_N;
    c.run = calloc(FL_PEERS_MAX * (size_t)FL_N, sizeof(*c.run));
    assert_non_null(c.run);
}

static void end(void)
{
    free(c.run);
}

static void assert_conclusion(const char *wanted)
{
    char text[400];
    fl_analysis_make(&a, &c);
    fl_analysis_conclude(&a, &c, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void assert_sentence(size_t peer, const char *wanted)
{
    char text[400];
    fl_analysis_sentence(&a, &c, peer, text, sizeof(text));
    assert_memory_equal(text, wanted, strlen(wanted));
}

CASE(equal_rows_show_no_difference)
{
    add("a", 1, 100);
    add("b", 1, 100);
    assert_conclusion("no difference to a could be shown");
    assert_sentence(1, "no difference could be shown: 1.000 x the time of a (");
    assert_int_equal(a.warnings, 0);
}

CASE(the_fastest_and_its_equals_are_named)
{
    add("a", 1, 100);
    add("slow", 2, 100);
    add("half", 0.5, 100);
    add("best", 0.25, 25);
    add("equal", 0.2501, 100);
    char text[400];
    fl_analysis_make(&a, &c);
    fl_analysis_conclude(&a, &c, text, sizeof(text));
    assert_memory_equal(text, "best gains most: 0.25 x the time of a (", 39);
    assert_says(text, "); equal cannot be told from it");
    assert_sentence(1, "slower: 2.000 x the time of a (");
    assert_sentence(3, "faster: 0.250 x the time of a (");
    fl_analysis_sentence(&a, &c, 3, text, sizeof(text));
    assert_says(text, "; 0.250 x the page faults");
    fl_analysis_sentence(&a, &c, 2, text, sizeof(text));
    assert_null(strstr(text, "page faults"));
}

/* Waiting hides it in the time of the run; the processor's time shows it. */
CASE(the_processors_time_is_told_where_the_time_says_nothing)
{
    static const double wait[2 * FL_N] = {0.06, 0.00, 0.04, 0.05, 0.03, 0.02,
                                          0.00, 0.06, 0.02, 0.04, 0.05, 0.01};
    add("a", 1, 100);
    add("b", 1.03, 100);
    for (size_t i = 0; i < 2 * (size_t)FL_N; i++) {
        double *value = c.run[i].value;
        value[FL_METRIC_CPU_S] = value[FL_METRIC_WALL_S];
        value[FL_METRIC_WALL_S] += wait[i];
    }
    char text[400];
    fl_analysis_make(&a, &c);
    fl_analysis_sentence(&a, &c, 1, text, sizeof(text));
    assert_memory_equal(text, "no difference could be shown: ", 30);
    assert_says(text, "; 1.030 x the processor time");
    assert_int_equal(a.warnings, 1); /* and how it would be seen in the time */
    assert_memory_equal(a.warning[0], "rounds: the interval is wide", 28);
    assert_says(a.warning[0], "--rounds 24 would about halve it");
}

CASE(rows_that_are_only_slower_leave_the_first)
{
    add("a", 1, 100);
    add("b", 1.1, 100);
    assert_conclusion("none is faster than a");
}

CASE(bad_runs_are_in_no_figure)
{
    add("a", 1, 100);
    add("b", 1, 100);
    add("c", 1, 100);
    c.run[FL_N].exit_status = 7;
    c.run[FL_N].value[FL_METRIC_WALL_S] = 1000;
    c.run[FL_N + 1].is_timed_out = true;
    for (size_t i = 0; i < FL_N; i++) {
        c.run[2 * FL_N + i].served.state = FL_SERVED_SHADOWED;
        strcpy(c.run[2 * FL_N + i].served.reason, "X");
    }
    assert_conclusion("none: too few runs to tell; at least 5 rounds are needed");
    assert_int_equal(a.peer[1].figure[FL_METRIC_WALL_S].count, FL_N - 2);
    assert_true(a.peer[1].figure[FL_METRIC_WALL_S].most < 2);
    assert_int_equal(a.peer[1].failures, 2);
    assert_sentence(2, "not compared: shadowed by X");
}

CASE(the_first_that_was_measured_is_the_reference)
{
    add("a", 1, 100);
    add("b", 1, 100);
    add("c", 0.5, 100);
    for (size_t i = 0; i < FL_N; i++) {
        c.run[i].exit_status = 1;
    }
    fl_analysis_make(&a, &c);
    assert_int_equal(a.reference, 1);
    assert_sentence(0, "not compared: every run failed");
    assert_sentence(2, "faster: 0.500 x the time of b (");
}

CASE(steps_decide_where_there_are_some)
{
    add("a", 1, 100);
    add("b", 1, 100);
    for (size_t i = 0; i < 2 * (size_t)FL_N; i++) {
        c.run[i].steps = 9;
        c.run[i].value[FL_METRIC_STEP_MS] = (i < FL_N ? 10.0 : 20.0) + 0.01 * (double)i;
    }
    fl_analysis_make(&a, &c);
    assert_int_equal(a.metric, FL_METRIC_STEP_MS);
    assert_sentence(1, "slower: ");
}

CASE(what_disturbs_is_warned_of)
{
    add("a", 1, 100);
    add("b", 0.01, 100);
    c.run[0].value[FL_METRIC_WALL_S] = 9;
    c.run[FL_N + 2].value[FL_METRIC_WALL_S] = 9;
    c.run[2].library.is_known = true;
    c.run[2].library.requests = 0;
    c.repeats = 12;
    strcpy(c.repeats_pattern, "^x");
    fl_analysis_make(&a, &c);
    assert_int_equal(a.warnings, 4);
    assert_says(a.warning[0], "the first run was much slower than the others: a 9000 ms");
    assert_says(a.warning[1], "outliers: b 1");
    assert_says(a.warning[2], "--step-regex '^x'");
    assert_says(a.warning[3], "a: it served no large request");
}

CASES_MAIN(.setup = begin, .teardown = end)
