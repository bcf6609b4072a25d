/* The ways to run a victim that the rungs are made of: as the user `nobody`, and under a filter
 * like Docker's. */
#include "run.h"

static const struct fl_run *run_as(unsigned as, const char *mode)
{
    return FL_RUN(FL_ARGV("victim_rungs", mode), .as = as);
}

CASE(the_filter_answers_as_dockers_profile)
{
    const char refused[] = "userfaultfd EPERM\n"
                           "io_uring_setup EPERM\n"
                           "io_uring_enter EPERM\n"
                           "io_uring_register EPERM\n"
                           "mbind EPERM\n"
                           "get_mempolicy EPERM\n"
                           "set_mempolicy EPERM\n"
                           "migrate_pages EPERM\n"
                           "move_pages EPERM\n"
                           "process_madvise EPERM\n"
                           "unshare EPERM\n"
                           "setns EPERM\n"
                           "mount EPERM\n"
                           "clone3 ENOSYS\n"
                           "clone EPERM\n";
    for (unsigned as = FL_AS_CONTAINED; as <= (FL_AS_CONTAINED | FL_AS_NOBODY); as++) {
        const struct fl_run *r = fl_run_assert_clean(run_as(as, "calls"));
        assert_string_equal(r->out, refused);
    }
}

CASE(become_nobody_drops_the_rights)
{
    for (unsigned as = 0; as <= (FL_AS_CONTAINED | FL_AS_NOBODY); as++) {
        const struct fl_run *r = fl_run_assert_clean(run_as(as, "who"));
        assert_int_equal(fl_run_said(r, "uid "), (as & FL_AS_NOBODY) != 0 ? 65534 : 0);
        assert_int_equal(fl_run_said(r, "gid ") == 65534, (as & FL_AS_NOBODY) != 0);
        assert_int_equal(fl_run_said(r, "capabilities ") == 0, (as & FL_AS_NOBODY) != 0);
        assert_true((as & FL_AS_CONTAINED) == 0 || fl_run_said(r, "filter ") == 2);
    }
}

CASE(faultless_serves_each_of_them)
{
    for (unsigned as = 0; as <= (FL_AS_CONTAINED | FL_AS_NOBODY); as++) {
        fl_run_assert_active(run_as(as, "lives"));
    }
}

int main(void)
{
    FL_SKIP_UNLESS(geteuid() == 0, "test_preload_rungs", "needs root, to become `nobody`");
    return RUN_CASES();
}
