/* What a program changes while it runs: fl_release and fl_option_set. */
#include "run.h"

static const char victim[] = "victim_change";

/* One run a setting. */
static void in_each(const char *mode, const char *const settings[])
{
    for (; *settings != NULL; settings++) {
        FL_ACTIVE(FL_ARGV(victim, mode), FL_ENV(*settings));
    }
}

/* Twelve steps, and one more, are planned: some are learned from. */
static void plans_serve_some(const char *mode)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(victim, mode));
    if (!fl_rung_has("plan")) {
        assert_in_range(fl_run_stat(r, "plan_hits"), 64, 13 * 64);
    }
}

CASE(blocks_come_populated)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(victim, "blocks_come_populated"));
    assert_in_range(fl_run_said(r, "faults "), 0, 4);
}

CASE(statistics_go_where_it_says)
{
    const struct fl_run *r =
        FL_RUN(FL_ARGV(victim, "statistics_go_where_it_says"), FL_ENV("FAULTLESS_STATS=table"));
    assert_int_equal(r->exit_status, 0);
    assert_int_equal(fl_run_lines(r->err), 1);
    assert_says(r->err, "{\"pid\": ");
}

CASE_IS(nothing_changes_where_nothing_is_served,
        FL_CLEAN(FL_ARGV(victim, "nothing_is_served"), FL_ENV("FAULTLESS_DISABLE=all")))

#define EACH(mode, ...) CASE_IS(mode, in_each(#mode, FL_ENV(__VA_ARGS__)))
#define USUAL "FAULTLESS_LOG=warn"

EACH(release_leaves_what_it_is_told, USUAL, "FAULTLESS_SHARDS=8", "FAULTLESS_STOCK=64M")
EACH(wrong_names_and_values_are_refused, USUAL)
EACH(memory_decays_sooner, "FAULTLESS_DECAY_MS=3600000", "FAULTLESS_DECAY_MS=0",
     "FAULTLESS_DISABLE=worker")
EACH(a_limit_counts_at_once, USUAL)
EACH(trims_give_nothing, USUAL)
CASE_IS(release_takes_from_plans, plans_serve_some("release_takes_from_plans"))
CASE_IS(steps_go_and_come, plans_serve_some("steps_go_and_come"))

CASES_MAIN()
