/* Blocks are whole base pages. However large those are, a program that writes to what it asks for
 * holds what it holds under glibc. */
#include "run.h"

CASE(what_is_written_costs_what_it_costs_under_glibc)
{
    const char *const *argv = FL_ARGV("victim_pages");
    const struct fl_run *plain = fl_plain_run(argv), *ours = FL_RUN(argv);
    fl_run_assert_clean(plain);
    fl_run_assert_active(ours);
    long under_glibc = fl_run_said(plain, "resident:"), held = fl_run_said(ours, "resident:");
    assert_true(under_glibc > 0 && held > 0 && held <= under_glibc + under_glibc / 20);
}

int main(void)
{
    unsetenv("FL_TEST_THRESHOLD"); /* it is about the default */
    return RUN_CASES();
}
