/* Many forks, from any thread, while others allocate: nothing is lost, on either side. */
#include "run.h"

static void clean_under_both(void **state)
{
    const char *mode = *state;

    if (fl_rung()[0] == '\0') { /* the victim itself */
        const struct fl_how plain = {
            .argv = FL_ARGV("victim_storm", mode), .env = FL_ENV("VICTIM_SHORT=1"), .preload = ""};
        fl_run_assert_clean(fl_run_how(&plain));
    }
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_storm", mode), NULL));
}

static void free_memory_is_not_inherited_nor_lost(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_storm", "free_stays_behind"), NULL);
    fl_run_assert_active(r);
    long before = fl_run_said(r, "before "), after = fl_run_said(r, "after ");
    print_message("           RSS %ld MiB before the fork, %ld after it\n", before, after);
    assert_true(after * 10 >= before * 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(sizes_that_vary_in_six_threads, "victim_storm",
                 FL_ARGV("sizes", "sizes", "sizes", "sizes", "sizes"), NULL),
        FL_MODES(a_thousand_forks_from_four_threads, "victim_storm", FL_ARGV("storm"), NULL),
        FL_MODES(a_thousand_forks_while_memory_ages_at_once, "victim_storm", FL_ARGV("storm"),
                 FL_ENV("FAULTLESS_DECAY_MS=4")),
        FL_MODES(a_thousand_forks_where_a_touch_brings_memory, "victim_storm", FL_ARGV("storm"),
                 FL_ENV("FAULTLESS_DECAY_MS=4", "FAULTLESS_DISABLE=populate")),
        FL_CASE(workers_that_load_data, clean_under_both, "loader"),
        FL_CASE(children_with_threads_of_their_own, clean_under_both, "threads_in_child"),
        cmocka_unit_test(free_memory_is_not_inherited_nor_lost),
        FL_MODES(what_copying_split_is_repaired_while_the_child_lives, "victim_storm",
                 FL_ARGV("repaired"), NULL),
    };
    /* The last needs huge pages and a thread that repairs them: not on rungs that do without. */
    size_t n = sizeof tests / sizeof tests[0];
    size_t left_out = fl_rung_has("thp") || fl_rung_has("worker");
    return _cmocka_run_group_tests("storm", tests, n - left_out, NULL, NULL);
}
