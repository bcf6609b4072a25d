/* Mirrors in whole programs: their pages stay what they are, children have what was asked for, and
 * what a planned step mallocs has a twin. */
#include "run.h"

/* A device's stand-in is not to be had everywhere: under a filter, and for who may pin no more. */
static void the_device_would_see_it(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_mirror", "planted"), NULL);
    fl_run_assert_clean(r);
    assert_int_equal(fl_run_said(r, "same "), fl_run_said(r, "device ") != 1);
}

static void nothing_takes_a_mirrors_pages(void **state)
{
    (void)state;
    fl_run_modes("victim_mirror", FL_ARGV("guarded"), NULL);
    fl_run_modes("victim_mirror", FL_ARGV("guarded"), FL_ENV("FAULTLESS_DECAY_MS=4"));
    fl_run_modes("victim_mirror", FL_ARGV("guarded"),
                 FL_ENV("FAULTLESS_THRESHOLD=4K", "FAULTLESS_STOCK=16M"));
}

static void blocks_of_a_planned_step_have_twins(void **state)
{
    (void)state;
    if (fl_rung_has("worker") || fl_rung_as() != 0) { /* the driver's file may be closed */
        return;
    }
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_mirror_plan"), FL_ENV("FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA));
    fl_run_assert_clean(r);
    assert_int_equal(fl_run_said(r, "seen "), 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_would_see_it),
        cmocka_unit_test(nothing_takes_a_mirrors_pages),
        FL_MODES(children_have_what_was_asked_for, "victim_mirror", FL_ARGV("forked"), NULL),
        cmocka_unit_test(blocks_of_a_planned_step_have_twins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
