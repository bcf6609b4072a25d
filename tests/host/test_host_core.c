/* A core dump has what is live, and of what is free hardly more than under glibc. */
#include "host.h"

enum { MORE_MIB = 8 };

static void compare(const char *mode, const char *const env[])
{
    const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_host_core", mode));
    fl_run_assert_clean(plain);
    const struct fl_run *ours = fl_preload_run(FL_ARGV("victim_host_core", mode), env);
    fl_run_assert_active(ours);
    long least = fl_run_said(plain, "dumpable "), most = fl_run_said(ours, "dumpable ");
    assert_true(least >= 0 && most >= 0);
    if (most > least + MORE_MIB) {
        fail_msg("%s: %ld MiB of memory would be in a core, %ld under glibc", mode, most, least);
    }
}

static void what_was_freed_is_not_in_a_core(void **state)
{
    (void)state;
    compare("freed", NULL);
}

static void nor_what_lies_between_live_blocks(void **state)
{
    (void)state;
    compare("freed_amid", NULL);
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
        cmocka_unit_test(what_was_freed_is_not_in_a_core),
        cmocka_unit_test(nor_what_lies_between_live_blocks),
        cmocka_unit_test(what_is_live_is_in_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
