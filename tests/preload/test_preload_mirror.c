/* Mirrors in whole programs: their pages stay what they are, children have what was asked for, and
 * what a planned step mallocs has a twin. */
#include "run.h"

/* A device's stand-in is not to be had everywhere: under a filter, and for who may pin no more. */
CASE(the_device_would_see_it)
{
    const struct fl_run *r = FL_CLEAN(FL_ARGV("victim_mirror", "planted"));
    assert_int_equal(fl_run_said(r, "same "), fl_run_said(r, "device ") != 1);
}

CASE(nothing_takes_a_mirrors_pages)
{
    FL_ACTIVE(FL_ARGV("victim_mirror", "guarded"));
    FL_ACTIVE(FL_ARGV("victim_mirror", "guarded"), FL_ENV("FAULTLESS_DECAY_MS=4"));
    FL_ACTIVE(FL_ARGV("victim_mirror", "guarded"),
              FL_ENV("FAULTLESS_THRESHOLD=4K", "FAULTLESS_STOCK=16M"));
}

CASE(blocks_of_a_planned_step_have_twins)
{
    if (fl_rung_has("worker") || fl_rung_as() != 0) { /* the driver's file may be closed */
        return;
    }
    const struct fl_run *r =
        FL_CLEAN(FL_ARGV("victim_mirror_plan"), FL_ENV("FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA));
    assert_int_equal(fl_run_said(r, "seen "), 80);
}

CASE_IS(children_have_what_was_asked_for, FL_ACTIVE(FL_ARGV("victim_mirror", "forked")))

CASES_MAIN()
