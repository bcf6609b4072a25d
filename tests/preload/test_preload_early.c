/* Before main, after it, and beside it: constructors, exit, the loader. */
#include "run.h"

#define VICTIM "victim_early"

static const char *const modes[] = {"before_main", "after_main", "missing_symbol", "loaders_blocks",
                                    NULL};

static void quick_exit_is_quiet(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_preload_run(FL_ARGV(VICTIM, "quick"), NULL));
}

static void a_library_may_start_before_ours(void **state)
{
    const char *const library = FL_VICTIM_DIR "/victim_early_lib.so";
    const char *const orders[] = {fl_in_order(FL_LIB_PATH, library),
                                  fl_in_order(library, FL_LIB_PATH)};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; modes[k] != NULL; k++) {
            fl_run_assert_active(fl_run_how(
                &(struct fl_how){.argv = FL_ARGV(VICTIM, modes[k]), .preload = orders[i]}));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(early_and_late_requests_are_served, VICTIM, modes, NULL),
        FL_MODES(with_all_symbols_bound_at_start, VICTIM, modes, FL_ENV("LD_BIND_NOW=1")),
        FL_MODES(with_all_descriptors_closed_at_start, VICTIM, modes, FL_ENV("VICTIM_CLOSES=1")),
        cmocka_unit_test(quick_exit_is_quiet),
        cmocka_unit_test(a_library_may_start_before_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
