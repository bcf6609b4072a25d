/* What blocks hold, under the defaults and without each of the features that decide it. */
#include "run.h"

#define VICTIM "victim_contents"

static const char *const modes[] = {"calloc_same_size", "calloc_in_pieces", "calloc_lazy",
                                    "realloc_walk",     "realloc_random",   "alignment",
                                    "usable_in_full",   "errno_kept",       NULL};

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    for (size_t i = 0; modes[i] != NULL && strcmp(modes[i], "errno_kept") != 0; i++) {
        fl_run_assert_clean(fl_plain_run(FL_ARGV(VICTIM, modes[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        FL_MODES(contents_hold_by_default, VICTIM, modes, NULL),
        FL_MODES(contents_hold_without_caches, VICTIM, modes, FL_ENV("FAULTLESS_DISABLE=cache")),
        FL_MODES(contents_hold_when_populated_by_touch, VICTIM, modes,
                 FL_ENV("FAULTLESS_DISABLE=populate")),
        FL_MODES(contents_hold_on_base_pages, VICTIM, modes,
                 FL_ENV("FAULTLESS_DISABLE=thp,worker")),
        FL_MODES(contents_hold_when_nothing_is_populated, VICTIM, modes,
                 FL_ENV("FAULTLESS_EAGER_MAX=64K")),
        FL_MODES(contents_hold_with_the_lowest_threshold_and_quick_decay, VICTIM, modes,
                 FL_ENV("FAULTLESS_THRESHOLD=4K", "FAULTLESS_DECAY_MS=4")),
        FL_MODES(contents_hold_with_the_threshold_at_2m, VICTIM, modes,
                 FL_ENV("FAULTLESS_THRESHOLD=2M")),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
