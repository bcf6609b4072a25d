/* What blocks hold, under the defaults and without each of the features that decide it. */
#include "run.h"

static const char *const modes[] = {"calloc_same_size", "calloc_in_pieces", "calloc_lazy",
                                    "realloc_walk",     "realloc_random",   "alignment",
                                    "usable_in_full",   "errno_kept",       NULL};

static void all_modes(const char *const env[])
{
    fl_run_modes("victim_contents", modes, env);
}

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    for (size_t i = 0; modes[i] != NULL && strcmp(modes[i], "errno_kept") != 0; i++) {
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_contents", modes[i])));
    }
}

static void contents_hold_by_default(void **state)
{
    (void)state;
    all_modes(NULL);
}

static void contents_hold_without_caches(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_DISABLE=cache"));
}

static void contents_hold_when_populated_by_touch(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_DISABLE=populate"));
}

static void contents_hold_on_base_pages(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_DISABLE=thp,worker"));
}

static void contents_hold_when_nothing_is_populated(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_EAGER_MAX=64K"));
}

static void contents_hold_with_the_lowest_threshold_and_quick_decay(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_THRESHOLD=4K", "FAULTLESS_DECAY_MS=4"));
}

static void contents_hold_with_the_threshold_at_2m(void **state)
{
    (void)state;
    all_modes(FL_ENV("FAULTLESS_THRESHOLD=2M"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        cmocka_unit_test(contents_hold_by_default),
        cmocka_unit_test(contents_hold_without_caches),
        cmocka_unit_test(contents_hold_when_populated_by_touch),
        cmocka_unit_test(contents_hold_on_base_pages),
        cmocka_unit_test(contents_hold_when_nothing_is_populated),
        cmocka_unit_test(contents_hold_with_the_lowest_threshold_and_quick_decay),
        cmocka_unit_test(contents_hold_with_the_threshold_at_2m),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
