/* Core dumps: without what is free, with all that is live. */
#include "run.h"

#define STAYS "FAULTLESS_DECAY_MS=3600000"

CASE_IS(free_memory_is_in_no_dump,
        fl_run_modes("victim_dump", FL_ARGV("freed", "live_stays", "in_child"), FL_ENV(STAYS)))
CASE_IS(nor_is_the_stock,
        FL_ACTIVE(FL_ARGV("victim_dump", "freed"), FL_ENV(STAYS, "FAULTLESS_STOCK=200M")))

CASE(what_is_live_is)
{
    FL_ACTIVE(FL_ARGV("victim_dump", "live"));
    FL_ACTIVE(FL_ARGV("victim_dump", "live"), FL_ENV("FAULTLESS_DISABLE=worker"));
    FL_ACTIVE(FL_ARGV("victim_dump", "live"), FL_ENV("FAULTLESS_DISABLE=move,uffd"));
}

CASES_MAIN()
