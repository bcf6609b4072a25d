/* fork, vfork, posix_spawn and exec, with threads allocating. */
#include "run.h"

#define VICTIM "victim_fork"

CASE(each_child_that_exits_reports)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(VICTIM, "by_exit"));
    assert_int_equal(fl_run_lines(r->stats), 21);
}

CASE(huge_pages_outlive_a_child)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(VICTIM, "keeps_huge"));
    assert_true(fl_run_said(r, "before ") >= 0);
    assert_true(fl_run_said(r, "after ") * 10 >= fl_run_said(r, "before ") * 9);
}

/* What still holds its locks says nothing at exit. */
CASE(a_fork_may_come_amid_another)
{
    FL_ACTIVE(FL_ARGV(VICTIM, "amid_a_fork"));
    FL_ACTIVE(FL_ARGV(VICTIM, "amid_a_fork_by_signal"));
}

CASE_IS(children_of_an_allocating_process_live,
        fl_run_modes(VICTIM, FL_ARGV("nested", "others_blocks"), NULL))
CASE_IS(children_live_with_quick_decay_and_touch,
        FL_ACTIVE(FL_ARGV(VICTIM, "nested"),
                  FL_ENV("FAULTLESS_DECAY_MS=4", "FAULTLESS_DISABLE=populate")))
CASE_IS(vfork_spawn_system_and_exec_work,
        fl_run_modes(VICTIM, FL_ARGV("vforks", "spawns", "systems", "exec_amid"), NULL))

CASES_MAIN()
