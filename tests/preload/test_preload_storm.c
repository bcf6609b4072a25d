/* Many forks, from any thread, while others allocate: nothing is lost, on either side. */
#include "run.h"

static void clean_under_both(const char *mode)
{
    if (fl_rung()[0] == '\0') { /* the victim itself */
        FL_CLEAN(FL_ARGV("victim_storm", mode), FL_ENV("VICTIM_SHORT=1"), .preload = "");
    }
    FL_ACTIVE(FL_ARGV("victim_storm", mode));
}

CASE(free_memory_is_not_inherited_nor_lost)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_storm", "free_stays_behind"),
                                       FL_ENV("FAULTLESS_DECAY_MS=3600000"));
    long before = fl_run_said(r, "before "), after = fl_run_said(r, "after ");
    assert_true(after * 10 >= before * 9);
}

CASE(what_copying_split_is_repaired_while_the_child_lives)
{
    if (!fl_rung_has("thp") && !fl_rung_has("worker")) { /* a thread repairs huge pages */
        FL_ACTIVE(FL_ARGV("victim_storm", "repaired"));
    }
}

CASE_IS(sizes_that_vary_in_six_threads,
        fl_run_modes("victim_storm", FL_ARGV("sizes", "sizes", "sizes", "sizes", "sizes"), NULL))
CASE_IS(a_thousand_forks_from_four_threads, FL_ACTIVE(FL_ARGV("victim_storm", "storm")))
CASE_IS(a_thousand_forks_while_memory_ages_at_once,
        FL_ACTIVE(FL_ARGV("victim_storm", "storm"), FL_ENV("FAULTLESS_DECAY_MS=4")))
CASE_IS(a_thousand_forks_where_a_touch_brings_memory,
        FL_ACTIVE(FL_ARGV("victim_storm", "storm"),
                  FL_ENV("FAULTLESS_DECAY_MS=4", "FAULTLESS_DISABLE=populate")))
CASE_IS(workers_that_load_data, clean_under_both("loader"))
CASE_IS(children_with_threads_of_their_own, clean_under_both("threads_in_child"))

CASES_MAIN()
