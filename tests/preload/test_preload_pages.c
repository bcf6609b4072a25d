/* Blocks are whole base pages. However large those are, a program that writes to what it asks for
 * holds what it holds under glibc. */
#include "run.h"

#include <stdlib.h>

static void what_is_written_costs_what_it_costs_under_glibc(void **state)
{
    const char *const *argv = FL_ARGV("victim_pages");
    const struct fl_run *plain = fl_plain_run(argv), *ours = fl_preload_run(argv, NULL);
    (void)state;

    fl_run_assert_clean(plain);
    fl_run_assert_active(ours);
    long under_glibc = fl_run_said(plain, "resident:"), held = fl_run_said(ours, "resident:");
    print_message("           %ld KiB, under glibc %ld\n", held, under_glibc);
    assert_true(under_glibc > 0 && held > 0 && held <= under_glibc + under_glibc / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_costs_what_it_costs_under_glibc),
    };
    unsetenv("FL_TEST_THRESHOLD"); /* it is about the default */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
