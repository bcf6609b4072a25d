/* Many forks, from any thread, while others allocate: nothing is lost, on either side. */
#include "run.h"

static void clean_under_both(const char *mode)
{
    if (fl_rung()[0] == '\0') { /* the victim itself */
        const struct fl_how plain = {
            .argv = FL_ARGV("victim_storm", mode), .env = FL_ENV("VICTIM_SHORT=1"), .preload = ""};
        fl_run_assert_clean(fl_run_how(&plain));
    }
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_storm", mode), NULL));
}

static void sizes_that_vary_in_six_threads(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        fl_run_assert_active(fl_preload_run(FL_ARGV("victim_storm", "sizes"), NULL));
    }
}

static void a_thousand_forks_from_four_threads(void **state)
{
    (void)state;
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_storm", "storm"), NULL));
}

static void a_thousand_forks_while_memory_ages_at_once(void **state)
{
    (void)state;
    fl_run_assert_active(
        fl_preload_run(FL_ARGV("victim_storm", "storm"), FL_ENV("FAULTLESS_DECAY_MS=4")));
}

static void workers_that_load_data(void **state)
{
    (void)state;
    clean_under_both("loader");
}

static void children_with_threads_of_their_own(void **state)
{
    (void)state;
    clean_under_both("threads_in_child");
}

static void free_memory_is_not_inherited_nor_lost(void **state)
{
    long before, after;
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_storm", "free_stays_behind"), NULL);
    fl_run_assert_active(r);
    before = fl_run_said(r, "before ");
    after = fl_run_said(r, "after ");
    print_message("           RSS %ld MiB before the fork, %ld after it\n", before, after);
    assert_true(after * 10 >= before * 9);
}

static void what_copying_split_is_repaired_while_the_child_lives(void **state)
{
    (void)state;
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_storm", "repaired"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_vary_in_six_threads),
        cmocka_unit_test(a_thousand_forks_from_four_threads),
        cmocka_unit_test(a_thousand_forks_while_memory_ages_at_once),
        cmocka_unit_test(workers_that_load_data),
        cmocka_unit_test(children_with_threads_of_their_own),
        cmocka_unit_test(free_memory_is_not_inherited_nor_lost),
        cmocka_unit_test(what_copying_split_is_repaired_while_the_child_lives),
    };
    /* The last needs huge pages and a thread that repairs them: not on rungs that do without. */
    size_t n = sizeof tests / sizeof tests[0];
    size_t left_out = fl_rung_has("thp") || fl_rung_has("worker");
    return _cmocka_run_group_tests("storm", tests, n - left_out, NULL, NULL);
}
