/* New memory waits for its first touch: what is never touched is not held. What was touched stays,
 * for those who ask again. */
#include "run.h"

/* Base pages, each a fault, come with short blocks before they are touched. */
static bool has_huge_pages(void)
{
    const char *setting = fl_thp_setting();

    return setting[0] != '\0' && strcmp(setting, "never") != 0 && !fl_rung_has("thp");
}

CASE_IS(short_blocks_hold_what_is_touched,
        fl_run_modes("victim_touched",
                     has_huge_pages() ? FL_ARGV("by_8_mib", "by_1_mib") : FL_ARGV("by_8_mib"),
                     NULL))

CASE(steps_that_come_again_take_no_fault)
{
    static const char *const modes[] = {"steps", "half_steps"};
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_touched", modes[i]));
        /* A page of what is noted of the steps comes in on the thread where no worker, or a late
         * one, brings it in. */
        assert_in_range(fl_run_said(r, "faults "), 0, 1);
    }
}

CASE(who_sets_eager_max_has_it_at_once)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_touched", "held"), FL_ENV("FAULTLESS_EAGER_MAX=64M"));
    assert_true(fl_run_said(r, "held ") >= 64);
    r = FL_ACTIVE(FL_ARGV("victim_touched", "held"));
    assert_true(fl_run_said(r, "held ") < 32);
}

CASE_IS(long_blocks_hold_what_is_touched,
        fl_run_modes("victim_touched", FL_ARGV("by_64_mib", "by_512_mib"), NULL))
CASE_IS(what_is_read_alone_holds_nothing, FL_ACTIVE(FL_ARGV("victim_touched", "read_alone")))

CASES_MAIN()
