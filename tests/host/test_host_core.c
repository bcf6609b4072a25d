/* A core dump has what is live, and of what is free hardly more than under glibc. */
#include "host.h"

enum { MORE_MIB = 8 };

static void holds_hardly_more(void **state)
{
    const char *mode = *state;
    char most[24];
    const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_host_core", mode));
    fl_run_assert_clean(plain);
    long under_glibc = fl_run_said(plain, "dumpable ");
    assert_true(under_glibc >= 0);
    snprintf(most, sizeof most, "%ld", under_glibc + MORE_MIB);
    /* The worker takes its time: until it is no more, or this test's time is over. */
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_host_core", mode, most), NULL));
}

static void what_is_live_is_in_a_core(void **state)
{
    (void)state;
    fl_run_modes("victim_host_core", FL_ARGV("live"), NULL);
    fl_run_modes("victim_host_core", FL_ARGV("live"), FL_ENV("FAULTLESS_DISABLE=worker"));
    fl_run_modes("victim_host_core", FL_ARGV("live"), FL_ENV("FAULTLESS_DISABLE=move,uffd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_CASE(what_was_freed_is_not_in_a_core, holds_hardly_more, "freed"),
        FL_CASE(nor_what_lies_between_live_blocks, holds_hardly_more, "freed_amid"),
        cmocka_unit_test(what_is_live_is_in_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
