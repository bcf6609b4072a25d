/* What is told of memory (fl_residency_read, mallinfo2, malloc_stats, malloc_info) is what the
 * kernel has. */
#include "run.h"

#define VICTIM "victim_residency"

CASE(a_block_touched_in_part_is_told_so)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(VICTIM, "sparse_block"));
    assert_true(fl_run_said(r, "live ") >= 512);
    assert_in_range(fl_run_said(r, "resident "), 10, 14);
    assert_int_equal(fl_run_said(r, "compared "), 1);
}

CASE(live_and_free_are_told_apart)
{
    static const char *const env[] = {"FAULTLESS_LOG=warn", "FAULTLESS_STOCK=64M",
                                      "FAULTLESS_EAGER_MAX=1G"};
    for (size_t i = 0; i < sizeof env / sizeof env[0]; i++) {
        const struct fl_run *r = FL_ACTIVE(FL_ARGV(VICTIM, "mixed"), FL_ENV(env[i]));
        assert_int_equal(fl_run_said(r, "compared "), 1);
    }
}

CASE_IS(mallinfo_says_what_its_manual_does, FL_ACTIVE(FL_ARGV(VICTIM, "told_by_mallinfo")))
CASE_IS(the_size_says_which_version, FL_ACTIVE(FL_ARGV(VICTIM, "size_counts")))
CASE_IS(who_is_not_served_has_nothing,
        FL_CLEAN(FL_ARGV(VICTIM, "size_counts"), FL_ENV("FAULTLESS_DISABLE=all")))

CASES_MAIN()
