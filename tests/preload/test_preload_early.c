/* Before main, after it, and beside it: constructors, exit, the loader. */
#include "run.h"

static const char *const modes[] = {"before_main",    "after_main",      "missing_symbol",
                                    "loaders_blocks", "other_namespace", NULL};

static void early_and_late_requests_are_served(void **state)
{
    (void)state;
    fl_run_modes("victim_early", modes, NULL);
}

static void with_all_symbols_bound_at_start(void **state)
{
    (void)state;
    fl_run_modes("victim_early", modes, FL_ENV("LD_BIND_NOW=1"));
}

static void with_all_descriptors_closed_at_start(void **state)
{
    (void)state;
    fl_run_modes("victim_early", modes, FL_ENV("VICTIM_CLOSES=1"));
}

static void quick_exit_is_quiet(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_preload_run(FL_ARGV("victim_early", "quick"), NULL));
}

static void a_library_may_start_before_ours(void **state)
{
    (void)state;
    const char *const orders[] = {FL_LIB_PATH " " FL_VICTIM_DIR "/victim_early_lib.so",
                                  FL_VICTIM_DIR "/victim_early_lib.so " FL_LIB_PATH};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; modes[k] != NULL; k++) {
            fl_run_assert_active(fl_run_how(
                &(struct fl_how){.argv = FL_ARGV("victim_early", modes[k]), .preload = orders[i]}));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(early_and_late_requests_are_served),
        cmocka_unit_test(with_all_symbols_bound_at_start),
        cmocka_unit_test(with_all_descriptors_closed_at_start),
        cmocka_unit_test(quick_exit_is_quiet),
        cmocka_unit_test(a_library_may_start_before_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
