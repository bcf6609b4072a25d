/* What is held is what is live, and little more: free memory goes back whatever lies beside it. */
#include "run.h"

#include <limits.h>

static const char *const sizes[] = {"64", "192", "512", "2560", "8192"};
static const char *const keeps[] = {"2", "4", "16"};

static void holds_little_more(const char *kib, const char *keep, const char *order, const char *how)
{
    FL_ACTIVE(FL_ARGV("victim_held", kib, keep, order, how), FL_ENV("FAULTLESS_DECAY_MS=400"));
}

static void all_sizes(const char *how)
{
    size_t by = fl_rung()[0] != '\0' ? 2 : 1; /* on each rung some */

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i += by) {
        for (size_t k = 0; k < sizeof keeps / sizeof keeps[0]; k += by) {
            holds_little_more(sizes[i], keeps[k], "strided", how);
            holds_little_more(sizes[i], keeps[k], "random", how);
        }
    }
}

enum { OTHERS_MOST = 8 }; /* faults: of code, say; the block would take 12, or 6,144 */

enum { STEPS = 48, FEW_STEPS = 4 /* what the first trims gave comes back once, at some time */ };
enum { TABLES_KIB = 4096 };

static void stays(const char *how, const char *env)
{
    const struct fl_run *r =
        FL_CLEAN(FL_ARGV("victim_kept", how), FL_ENV("FAULTLESS_DECAY_MS=40", env));
    assert_in_range(fl_run_said(r, "faults "), 0, OTHERS_MOST);
}

/* Locked, or with glibc's trimming off, free memory is there again without a fault, as glibc's is.
 */
CASE(what_the_program_wants_kept_stays)
{
    stays("lock", NULL);
    stays("number", NULL);
    stays("trim", NULL);
    stays("none", "MALLOC_TRIM_THRESHOLD_=-1");
    stays("none", "GLIBC_TUNABLES=glibc.malloc.trim_threshold=4294967296");
}

/* Its first trims give all back. */
CASE(a_loop_that_trims_keeps_what_its_steps_use)
{
    static const char *const env[] = {"FAULTLESS_DECAY_MS=3600000", NULL};
    const struct fl_run *each = FL_ACTIVE(FL_ARGV("victim_trim", "each"), env);
    assert_in_range(fl_run_said(each, "faults in "), 0, FEW_STEPS);
    long held = fl_run_said(each, "held ");
    const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_trim", "each"));
    assert_in_range(held, 0, fl_run_said(plain, "held ") + TABLES_KIB);
}

CASE(or_gives_all_back_where_the_user_says_so)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_trim", "each"), FL_ENV("FAULTLESS_TRIM=give"));
    assert_in_range(fl_run_said(r, "faults in "), STEPS - FEW_STEPS, STEPS);
    r = FL_ACTIVE(FL_ARGV("victim_trim", "each"), FL_ENV("FAULTLESS_TRIM=ignore"));
    assert_in_range(fl_run_said(r, "faults in "), 0, FEW_STEPS);
    assert_in_range(fl_run_said(r, "held "), 10 * 1024, LONG_MAX); /* until it has aged */
}

CASE_IS(at_once_after_malloc_trim, all_sizes("trim"))
CASE_IS(when_it_is_old, all_sizes("decay"))

CASES_MAIN()
