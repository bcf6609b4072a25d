/* What a program changes while it runs: fl_release and fl_option_set. */
#include "run.h"

static const char victim[] = "victim_change";

static const struct fl_run *run(const char *mode, const char *env)
{
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, mode), FL_ENV(env));

    fl_run_assert_active(r);
    return r;
}

static void release_leaves_what_it_is_told(void **state)
{
    (void)state;
    (void)run("release_leaves_what_it_is_told", NULL);
    (void)run("release_leaves_what_it_is_told", "FAULTLESS_SHARDS=8");
    (void)run("release_leaves_what_it_is_told", "FAULTLESS_STOCK=64M");
}

static void release_takes_from_plans(void **state)
{
    (void)state;
    const struct fl_run *r = run("release_takes_from_plans", NULL);
    if (!fl_rung_has("plan")) {
        assert_in_range(fl_run_stat(r, "plan_hits"), 64, 12 * 64);
    }
}

static void wrong_names_and_values_are_refused(void **state)
{
    (void)state;
    (void)run("wrong_names_and_values_are_refused", NULL);
}

static void memory_decays_as_it_says(void **state)
{
    (void)state;
    (void)run("memory_decays_sooner", "FAULTLESS_DECAY_MS=3600000");
    (void)run("memory_decays_sooner", "FAULTLESS_DECAY_MS=0");
    (void)run("memory_decays_sooner", "FAULTLESS_DISABLE=worker");
}

static void a_limit_counts_at_once(void **state)
{
    (void)state;
    (void)run("a_limit_counts_at_once", NULL);
}

static void blocks_come_populated(void **state)
{
    (void)state;
    assert_in_range(fl_run_said(run("blocks_come_populated", NULL), "faults "), 0, 4);
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

static void trims_give_nothing(void **state)
{
    (void)state;
    (void)run("trims_give_nothing", NULL);
}

static void nothing_changes_where_nothing_is_served(void **state)
{
    (void)state;
    fl_run_assert_clean(
        fl_preload_run(FL_ARGV(victim, "nothing_is_served"), FL_ENV("FAULTLESS_DISABLE=all")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(release_leaves_what_it_is_told),
        cmocka_unit_test(release_takes_from_plans),
        cmocka_unit_test(wrong_names_and_values_are_refused),
        cmocka_unit_test(memory_decays_as_it_says),
        cmocka_unit_test(a_limit_counts_at_once),
        cmocka_unit_test(blocks_come_populated),
        cmocka_unit_test(statistics_go_where_it_says),
        cmocka_unit_test(trims_give_nothing),
        cmocka_unit_test(nothing_changes_where_nothing_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
