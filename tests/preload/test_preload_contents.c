/* What blocks hold, under the defaults and without each of the features that decide it. */
#include "run.h"

#define VICTIM "victim_contents"

#define OF_GLIBC_TOO                                                                               \
    "calloc_same_size", "calloc_in_pieces", "calloc_lazy", "realloc_walk", "realloc_random",       \
        "alignment", "usable_in_full"

static void hold(const char *const env[])
{
    fl_run_modes(VICTIM, FL_ARGV(OF_GLIBC_TOO, "errno_kept"), env);
}

CASE_IS(the_victim_is_right_under_glibc, fl_plain_modes(VICTIM, FL_ARGV(OF_GLIBC_TOO)))
CASE_IS(contents_hold_by_default, hold(NULL))
CASE_IS(contents_hold_without_caches, hold(FL_ENV("FAULTLESS_DISABLE=cache")))
CASE_IS(contents_hold_when_populated_by_touch, hold(FL_ENV("FAULTLESS_DISABLE=populate")))
CASE_IS(contents_hold_on_base_pages, hold(FL_ENV("FAULTLESS_DISABLE=thp,worker")))
CASE_IS(contents_hold_when_nothing_is_populated, hold(FL_ENV("FAULTLESS_EAGER_MAX=64K")))
CASE_IS(contents_hold_with_the_lowest_threshold_and_quick_decay,
        hold(FL_ENV("FAULTLESS_THRESHOLD=4K", "FAULTLESS_DECAY_MS=4")))
CASE_IS(contents_hold_with_the_threshold_at_2m, hold(FL_ENV("FAULTLESS_THRESHOLD=2M")))

CASES_MAIN()
