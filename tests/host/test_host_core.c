/* A core dump has what is live, and of what is free hardly more than under glibc. */
#include "host.h"

enum { MORE_MIB = 8 };

static void holds_hardly_more(const char *mode)
{
    char most[24];
    const struct fl_run *plain =
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_host_core", mode)));
    long under_glibc = fl_run_said(plain, "dumpable ");
    assert_true(under_glibc >= 0);
    snprintf(most, sizeof most, "%ld", under_glibc + MORE_MIB);
    /* The worker takes its time: until it is no more, or this test's time is over. */
    FL_ACTIVE(FL_ARGV("victim_host_core", mode, most));
}

CASE(what_is_live_is_in_a_core)
{
    fl_run_modes("victim_host_core", FL_ARGV("live"), NULL);
    fl_run_modes("victim_host_core", FL_ARGV("live"), FL_ENV("FAULTLESS_DISABLE=worker"));
    fl_run_modes("victim_host_core", FL_ARGV("live"), FL_ENV("FAULTLESS_DISABLE=move,uffd"));
}

CASE_IS(what_was_freed_is_not_in_a_core, holds_hardly_more("freed"))
CASE_IS(nor_what_lies_between_live_blocks, holds_hardly_more("freed_amid"))

CASES_MAIN()
