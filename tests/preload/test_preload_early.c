/* Before main, after it, and beside it: constructors, exit, the loader. */
#include "run.h"

#define VICTIM "victim_early"

static const char *const modes[] = {"before_main", "after_main", "missing_symbol", "loaders_blocks",
                                    NULL};

CASE(a_library_may_start_before_ours)
{
    const char *const library = FL_VICTIM_DIR "/victim_early_lib.so";
    const char *const orders[] = {fl_in_order(FL_LIB_PATH, library),
                                  fl_in_order(library, FL_LIB_PATH)};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; modes[k] != NULL; k++) {
            FL_ACTIVE(FL_ARGV(VICTIM, modes[k]), .preload = orders[i]);
        }
    }
}

CASE_IS(quick_exit_is_quiet, FL_CLEAN(FL_ARGV(VICTIM, "quick")))
CASE_IS(early_and_late_requests_are_served, fl_run_modes(VICTIM, modes, NULL))
CASE_IS(with_all_symbols_bound_at_start, fl_run_modes(VICTIM, modes, FL_ENV("LD_BIND_NOW=1")))
CASE_IS(with_all_descriptors_closed_at_start,
        fl_run_modes(VICTIM, modes, FL_ENV("VICTIM_CLOSES=1")))

CASES_MAIN()
