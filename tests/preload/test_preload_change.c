/* What a program changes while it runs: fl_release and fl_option_set. */
#include "run.h"

static const char victim[] = "victim_change";

/* `state`: a mode, then a setting for each run. */
static void in_each(void **state)
{
    const char *const *mode = *state;

    for (size_t i = 1; mode[i] != NULL; i++) {
        print_message("           %s\n", mode[i]);
        fl_run_assert_active(fl_preload_run(FL_ARGV(victim, mode[0]), FL_ENV(mode[i])));
    }
}

/* Twelve steps, and one more, are planned: some are learned from. `state`: a mode. */
static void plans_serve_some(void **state)
{
    const char *const *mode = *state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, mode[0]), NULL);

    fl_run_assert_active(r);
    if (!fl_rung_has("plan")) {
        assert_in_range(fl_run_stat(r, "plan_hits"), 64, 13 * 64);
    }
}

static void blocks_come_populated(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, "blocks_come_populated"), NULL);
    fl_run_assert_active(r);
    assert_in_range(fl_run_said(r, "faults "), 0, 4);
}

static void statistics_go_where_it_says(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, "statistics_go_where_it_says"),
                                            FL_ENV("FAULTLESS_STATS=table"));
    assert_int_equal(r->exit_status, 0);
    assert_int_equal(fl_run_lines(r->err), 1);
    assert_non_null(strstr(r->err, "{\"pid\": "));
}

static void nothing_changes_where_nothing_is_served(void **state)
{
    (void)state;
    fl_run_assert_clean(
        fl_preload_run(FL_ARGV(victim, "nothing_is_served"), FL_ENV("FAULTLESS_DISABLE=all")));
}

#define EACH(mode, ...) FL_CASE(mode, in_each, FL_ARGV(#mode, __VA_ARGS__))
#define USUAL "FAULTLESS_LOG=warn"

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(release_leaves_what_it_is_told, USUAL, "FAULTLESS_SHARDS=8", "FAULTLESS_STOCK=64M"),
        FL_CASE(release_takes_from_plans, plans_serve_some, FL_ARGV("release_takes_from_plans")),
        FL_CASE(steps_go_and_come, plans_serve_some, FL_ARGV("steps_go_and_come")),
        EACH(wrong_names_and_values_are_refused, USUAL),
        EACH(memory_decays_sooner, "FAULTLESS_DECAY_MS=3600000", "FAULTLESS_DECAY_MS=0",
             "FAULTLESS_DISABLE=worker"),
        EACH(a_limit_counts_at_once, USUAL),
        cmocka_unit_test(blocks_come_populated),
        cmocka_unit_test(statistics_go_where_it_says),
        EACH(trims_give_nothing, USUAL),
        cmocka_unit_test(nothing_changes_where_nothing_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
