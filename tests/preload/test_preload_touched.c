/* New memory waits for its first touch: what is never touched is not held. What was touched stays,
 * for those who ask again. */
#include "run.h"

#include <sched.h>

/* Base pages, each a fault, come with short blocks before they are touched. */
static bool has_huge_pages(void)
{
    const char *setting = fl_thp_setting();

    return setting[0] != '\0' && strcmp(setting, "never") != 0 && !fl_rung_has("thp");
}

static void short_blocks_hold_what_is_touched(void **state)
{
    (void)state;
    fl_run_modes("victim_touched",
                 has_huge_pages() ? FL_ARGV("by_8_mib", "by_1_mib") : FL_ARGV("by_8_mib"), NULL);
}

static void steps_that_come_again_take_no_fault(void **state)
{
    static const char *const modes[] = {"steps", "half_steps"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_touched", modes[i]), NULL);
        fl_run_assert_active(r);
        /* A page of what is noted of the steps comes in on the thread where no worker, or a late
         * one, brings it in. */
        assert_in_range(fl_run_said(r, "faults "), 0, 1);
    }
}

static bool has_cpus(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

/* Two faults, a read's and a write's, for each of 256 huge pages; those that the worker brings in
 * take none, or one. */
static void what_is_touched_in_order_comes_ahead(void **state)
{
    enum { FEWER = 460 };
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_touched", "in_order"), NULL);
    fl_run_assert_active(r);
    print_message("           %s", r->out);
    bool may =
        has_cpus() && !fl_rung_has("worker") && !fl_rung_has("populate") && !fl_rung_has("seccomp");
    if (has_huge_pages() && may) {
        assert_in_range(fl_run_said(r, "faults "), 1, FEWER);
    }
}

static void who_sets_eager_max_has_it_at_once(void **state)
{
    (void)state;
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_touched", "held"), FL_ENV("FAULTLESS_EAGER_MAX=64M"));
    fl_run_assert_active(r);
    assert_true(fl_run_said(r, "held ") >= 64);
    r = fl_preload_run(FL_ARGV("victim_touched", "held"), NULL);
    fl_run_assert_active(r);
    assert_true(fl_run_said(r, "held ") < 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_blocks_hold_what_is_touched),
        FL_MODES(long_blocks_hold_what_is_touched, "victim_touched",
                 FL_ARGV("by_64_mib", "by_512_mib"), NULL),
        FL_MODES(what_is_read_alone_holds_nothing, "victim_touched", FL_ARGV("read_alone"), NULL),
        cmocka_unit_test(steps_that_come_again_take_no_fault),
        cmocka_unit_test(what_is_touched_in_order_comes_ahead),
        cmocka_unit_test(who_sets_eager_max_has_it_at_once),
    };
    return cmocka_run_group_tests_name("touched", tests, NULL, NULL);
}
