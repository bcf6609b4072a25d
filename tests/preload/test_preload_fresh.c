/* What a request for a fresh GiB costs the thread that makes it, by the kernel's counts. */
#include "run.h"

/* Tables are a few pages, whatever the block's length. The first request brings in code too: a
 * build with more checks has more of it. */
static const char *const first = FL_CHECK_LEVEL > 1 ? "24" : "12";

CASE_IS(a_fresh_gib_takes_few_faults,
        FL_ACTIVE(FL_ARGV("victim_fresh", first, "3"), FL_ENV("FAULTLESS_LOG=warn")))

CASES_MAIN()
