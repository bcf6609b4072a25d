/* fork, vfork, posix_spawn and exec, with threads allocating. */
#include "run.h"

#define VICTIM "victim_fork"

static void each_child_that_exits_reports(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(VICTIM, "by_exit"), NULL);
    fl_run_assert_active(r);
    assert_int_equal(fl_run_lines(r->stats), 21);
}

static void huge_pages_outlive_a_child(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(VICTIM, "keeps_huge"), NULL);
    fl_run_assert_active(r);
    assert_true(fl_run_said(r, "before ") >= 0);
    assert_true(fl_run_said(r, "after ") * 10 >= fl_run_said(r, "before ") * 9);
}

/* What still holds its locks says nothing at exit. */
static void a_fork_may_come_amid_another(void **state)
{
    (void)state;
    fl_run_assert_active(fl_preload_run(FL_ARGV(VICTIM, "amid_a_fork"), NULL));
    fl_run_assert_active(fl_preload_run(FL_ARGV(VICTIM, "amid_a_fork_by_signal"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(children_of_an_allocating_process_live, VICTIM, FL_ARGV("nested", "others_blocks"),
                 NULL),
        FL_MODES(children_live_with_quick_decay_and_touch, VICTIM, FL_ARGV("nested"),
                 FL_ENV("FAULTLESS_DECAY_MS=4", "FAULTLESS_DISABLE=populate")),
        cmocka_unit_test(each_child_that_exits_reports),
        FL_MODES(vfork_spawn_system_and_exec_work, VICTIM,
                 FL_ARGV("vforks", "spawns", "systems", "exec_amid"), NULL),
        cmocka_unit_test(huge_pages_outlive_a_child),
        cmocka_unit_test(a_fork_may_come_amid_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
