/* Programs that repeat themselves: the steps that they declare are served from a plan, and no byte
 * of any block is lost, whatever the program does beside. */
#include "run.h"

#include <limits.h>

static long figure(const struct fl_run *r, const char *name)
{
    const char *key = text_as("\"%s\":", name);
    const char *at = strstr(r->stats, key);
    assert_non_null(at);
    return atol(at + strlen(key));
}

/* What is printed of requests and memory adds up, with plans too. */
static void assert_adds_up(const struct fl_run *r)
{
    assert_true(figure(r, "requests") >= figure(r, "plan_hits") + figure(r, "cache_hits"));
    assert_int_equal(figure(r, "requests"), figure(r, "frees") + figure(r, "live_extents"));
    assert_true(figure(r, "in_use_bytes") <= figure(r, "in_use_peak_bytes"));
    assert_true(figure(r, "populated_bytes") <= figure(r, "populated_peak_bytes"));
    assert_true(figure(r, "served_bytes") / 4096 >= figure(r, "requests"));
}

static const struct fl_run *run(const char *shape, const char *steps, const char *declare,
                                const char *threads)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_steps", shape, steps, declare, threads), .seconds = 120);
    assert_says(r->out, "done");
    assert_adds_up(r);
    print_message("           hits %ld misses %ld steps %ld layouts %ld drops %ld; %s",
                  figure(r, "plan_hits"), figure(r, "plan_misses"), figure(r, "plan_steps"),
                  figure(r, "plan_layouts"), figure(r, "plan_drops"), r->out);
    return r;
}

static bool may(const char *word)
{
    return strstr(fl_rung_disabled(), word) == NULL;
}

/* So many steps are served by a plan, with that share of their requests where it says. How soon the
 * plan is made is the worker's to say, and the machine's load. */
static void assert_served(const struct fl_run *r, long steps, long permille)
{
    long hits = figure(r, "plan_hits"), misses = figure(r, "plan_misses");

    if (may("plan")) {
        assert_true(figure(r, "plan_steps") >= steps);
        assert_true(misses * 1000 <= (1000 - permille) * (hits + misses));
    }
}

CASE(fixed_steps_are_served_where_they_were)
{
    const struct fl_run *r = run("fixed", "160", "declare", "1");
    assert_served(r, 100, 995);
    assert_true(!may("plan") || strstr(r->out, "same 96 %") != NULL);
}

CASE(steps_that_are_not_declared_are_left_alone)
{
    const struct fl_run *r = run("fixed", "160", "-", "1");
    assert_int_equal(figure(r, "plan_steps") + figure(r, "plan_recorded"), 0);
    assert_int_equal(figure(r, "plan_bytes"), 0);
}

/* Of new sizes in each step, of which the largest that were seen would have memory move in each, no
 * plan serves for long; and none where pages do not move. */
CASE(sizes_that_never_repeat_have_no_plan_for_long)
{
    const struct fl_run *r = run("vary", "160", "declare", "1");
    assert_true(figure(r, "plan_steps") <= 40);
    assert_true(may("uffd") || figure(r, "plan_hits") == 0);
}

/* The tables of an arena of 640 MiB are 480 pages. The worker brings them in, and the victim waits
 * until it sleeps: which it may do still, where the machine is busy. So one run of some has to show
 * it. */
CASE(when_a_plan_begins_no_step_takes_its_faults)
{
    enum { FEW = 200, RUNS = 8 };
    long most = FEW + 1;

    for (int run = 0; run < RUNS && most > FEW; run++) {
        const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_plan_begins"), .seconds = 120);
        if (!may("plan") || !may("uffd") || !may("worker") || !may("thp")) {
            return;
        }
        assert_true(figure(r, "plan_hits") > 0);
        most = fl_run_said(r, "most ");
    }
    assert_true(most <= FEW);
}

/* The most that a run of victim_optional held, in bytes. */
static long peak_of_optional(const char *disabled, const char *steps)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_optional", "200"),
                                       .env = FL_ENV(steps, disabled), .seconds = 120);
    return figure(r, "populated_peak_bytes");
}

/* Plans that are made and given up must not leave memory behind. A run's peak is the worker's
 * timing, too: 234 to 246 MiB without a plan, and in debug builds up to 264, long after the last
 * plan ended. So the lowest of some runs are compared, and an eighth is nothing. */
CASE(no_more_is_held_than_without_plans)
{
    static const char *const how[] = {"FAULTLESS_DISABLE=", "FAULTLESS_DISABLE=move,uffd"};
    enum { EDGES = 4 << 20, RUNS = 4, PART = 8 };

    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        long with = LONG_MAX, without = LONG_MAX;
        for (int run = 0; run < RUNS && (run == 0 || with > without + without / PART + EDGES);
             run++) {
            long peak = peak_of_optional(how[i], "FAULTLESS_STEPS=off");
            without = peak < without ? peak : without;
            peak = peak_of_optional(how[i], "FAULTLESS_STEPS=declared");
            with = peak < with ? peak : with;
        }
        assert_true(with <= without + without / PART + EDGES);
    }
}

CASE_IS(the_victim_is_right_under_glibc,
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_steps", "jitter", "10", "declare", "2"))))

CASE_IS(a_first_step_waits_for_the_start, FL_CLEAN(FL_ARGV("victim_first_step"), .seconds = 120))

CASE_IS(one_more_or_less_shifts_nothing,
        assert_served(run("jitter", "160", "declare", "1"), 30, 900))
CASE_IS(kinds_of_steps_take_turns, assert_served(run("phases", "240", "declare", "1"), 120, 900))
/* Whether any of these has a plan is the scheduler's to say. */
CASE_IS(steps_of_threads_are_served_as_ever, run("fixed", "160", "declare", "3"))
CASE_IS(what_does_not_repeat_is_served_as_ever, run("random", "20", "declare", "2"))

CASES_MAIN()
