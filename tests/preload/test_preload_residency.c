/* What is told of memory (fl_residency_read, mallinfo2, malloc_stats, malloc_info) is what the
 * kernel has. */
#include "run.h"

#define VICTIM "victim_residency"

static void a_block_touched_in_part_is_told_so(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV(VICTIM, "sparse_block"), NULL);
    fl_run_assert_active(r);
    assert_true(fl_run_said(r, "live ") >= 512);
    assert_in_range(fl_run_said(r, "resident "), 10, 14);
    assert_int_equal(fl_run_said(r, "compared "), 1);
}

static void live_and_free_are_told_apart(void **state)
{
    (void)state;
    static const char *const env[] = {"FAULTLESS_LOG=warn", "FAULTLESS_STOCK=64M",
                                      "FAULTLESS_EAGER_MAX=1G"};
    for (size_t i = 0; i < sizeof env / sizeof env[0]; i++) {
        const struct fl_run *r = fl_preload_run(FL_ARGV(VICTIM, "mixed"), FL_ENV(env[i]));
        fl_run_assert_active(r);
        assert_int_equal(fl_run_said(r, "compared "), 1);
    }
}

static void who_is_not_served_has_nothing(void **state)
{
    (void)state;
    const struct fl_run *r =
        fl_preload_run(FL_ARGV(VICTIM, "size_counts"), FL_ENV("FAULTLESS_DISABLE=all"));
    assert_int_equal(r->exit_status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_touched_in_part_is_told_so),
        cmocka_unit_test(live_and_free_are_told_apart),
        FL_MODES(mallinfo_says_what_its_manual_does, VICTIM, FL_ARGV("told_by_mallinfo"), NULL),
        FL_MODES(the_size_says_which_version, VICTIM, FL_ARGV("size_counts"), NULL),
        cmocka_unit_test(who_is_not_served_has_nothing),
    };
    return cmocka_run_group_tests_name("residency", tests, NULL, NULL);
}
