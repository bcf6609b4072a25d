/* Programs that repeat themselves: the steps that they declare are served from a plan, and no byte
 * of any block is lost, whatever the program does beside. */
#include "run.h"

#include <limits.h>
#include <stdlib.h>

static long figure(const struct fl_run *r, const char *name)
{
    char key[64];

    snprintf(key, sizeof key, "\"%s\":", name);
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
    const struct fl_run *r = fl_run_how(&(struct fl_how){
        .argv = FL_ARGV("victim_steps", shape, steps, declare, threads), .seconds = 120});
    fl_run_assert_active(r);
    assert_non_null(strstr(r->out, "done"));
    assert_adds_up(r);
    print_message("           %s %s %s: hits %ld misses %ld steps %ld layouts %ld drops %ld; %s",
                  shape, declare, threads, figure(r, "plan_hits"), figure(r, "plan_misses"),
                  figure(r, "plan_steps"), figure(r, "plan_layouts"), figure(r, "plan_drops"),
                  r->out);
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

static void fixed_steps_are_served_where_they_were(void **state)
{
    (void)state;
    const struct fl_run *r = run("fixed", "160", "declare", "1");
    assert_served(r, 100, 995);
    assert_true(!may("plan") || strstr(r->out, "same 96 %") != NULL);
}

static void steps_that_are_not_declared_are_left_alone(void **state)
{
    (void)state;
    const struct fl_run *r = run("fixed", "160", "-", "1");
    assert_int_equal(figure(r, "plan_steps") + figure(r, "plan_recorded"), 0);
    assert_int_equal(figure(r, "plan_bytes"), 0);
}

/* Of new sizes in each step, of which the largest that were seen would have memory move in each, no
 * plan serves for long; and none where pages do not move. */
static void sizes_that_never_repeat_have_no_plan_for_long(void **state)
{
    (void)state;
    const struct fl_run *r = run("vary", "160", "declare", "1");
    assert_true(figure(r, "plan_steps") <= 40);
    assert_true(may("uffd") || figure(r, "plan_hits") == 0);
}

struct row {
    const char *shape, *steps, *threads;
    long served, permille; /* 0: whether any has a plan is the scheduler's to say */
};

static void served_as_it_should_be(void **state)
{
    const struct row *row = *state;
    const struct fl_run *r = run(row->shape, row->steps, "declare", row->threads);

    if (row->served != 0) {
        assert_served(r, row->served, row->permille);
    }
}

/* The tables of an arena of 640 MiB are 480 pages. The worker brings them in, and the victim waits
 * until it sleeps: which it may do still, where the machine is busy. So one run of some has to show
 * it. */
static void when_a_plan_begins_no_step_takes_its_faults(void **state)
{
    enum { FEW = 200, RUNS = 8 };
    long most = FEW + 1;

    (void)state;
    for (int run = 0; run < RUNS && most > FEW; run++) {
        const struct fl_run *r =
            fl_run_how(&(struct fl_how){.argv = FL_ARGV("victim_plan_begins"), .seconds = 120});
        fl_run_assert_active(r);
        print_message("           %s", r->out);
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
    const struct fl_run *r = fl_run_how(&(struct fl_how){
        .argv = FL_ARGV("victim_optional", "200"), .env = FL_ENV(steps, disabled), .seconds = 120});
    fl_run_assert_active(r);
    print_message("           %s %s: %ld MiB, live %ld; %ld steps, %ld plans, %ld dropped\n",
                  disabled, steps, figure(r, "populated_peak_bytes") >> 20,
                  fl_run_said(r, "peak ") >> 10, figure(r, "plan_steps"), figure(r, "plan_layouts"),
                  figure(r, "plan_drops"));
    return figure(r, "populated_peak_bytes");
}

/* Plans that are made and given up must not leave memory behind. A run's peak is the worker's
 * timing, too: 234 to 246 MiB without a plan, and in debug builds up to 264, long after the last
 * plan ended. So the lowest of some runs are compared, and an eighth is nothing. */
static void no_more_is_held_than_without_plans(void **state)
{
    static const char *const how[] = {"FAULTLESS_DISABLE=", "FAULTLESS_DISABLE=move,uffd"};
    enum { EDGES = 4 << 20, RUNS = 4, PART = 8 };

    (void)state;
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

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_steps", "jitter", "10", "declare", "2")));
}

static void a_first_step_waits_for_the_start(void **state)
{
    (void)state;
    fl_run_assert_clean(
        fl_run_how(&(struct fl_how){.argv = FL_ARGV("victim_first_step"), .seconds = 120}));
}

#define STEPS(name, ...) FL_CASE(name, served_as_it_should_be, (&(const struct row){__VA_ARGS__}))

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        cmocka_unit_test(fixed_steps_are_served_where_they_were),
        STEPS(steps_of_threads_are_served_as_ever, "fixed", "160", "3", 0, 0),
        cmocka_unit_test(steps_that_are_not_declared_are_left_alone),
        cmocka_unit_test(sizes_that_never_repeat_have_no_plan_for_long),
        STEPS(one_more_or_less_shifts_nothing, "jitter", "160", "1", 30, 900),
        STEPS(kinds_of_steps_take_turns, "phases", "240", "1", 120, 900),
        STEPS(what_does_not_repeat_is_served_as_ever, "random", "20", "2", 0, 0),
        cmocka_unit_test(no_more_is_held_than_without_plans),
        cmocka_unit_test(when_a_plan_begins_no_step_takes_its_faults),
        cmocka_unit_test(a_first_step_waits_for_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
