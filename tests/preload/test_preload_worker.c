/* The fl-uffd thread: gives memory back, and is not there when there is nothing to do. */
#include "run.h"

#define QUICK "FAULTLESS_DECAY_MS=100"
#define NO_WORKER "FAULTLESS_DISABLE=worker"

CASE(it_is_not_there_without_work)
{
    FL_ACTIVE(FL_ARGV("victim_worker", "none_below_16_mib"), FL_ENV(QUICK));
    FL_ACTIVE(FL_ARGV("victim_worker", "none_when_disabled"), FL_ENV(QUICK, NO_WORKER));
}

CASE(it_is_not_the_last_thread)
{
    fl_run_modes("victim_last_thread", FL_ARGV("main_is_last", "other_is_last"), FL_ENV(QUICK));
    fl_run_modes("victim_last_thread", FL_ARGV("main_is_last", "other_is_last"),
                 FL_ENV("FAULTLESS_DECAY_MS=60000"));
}

CASE_IS(free_memory_goes_back,
        fl_run_modes("victim_worker",
                     FL_ARGV("gives_back", "gives_back_from_caches", "keeps_live", "in_child"),
                     FL_ENV(QUICK)))
CASE_IS(it_blocks_all_signals,
        FL_ACTIVE(FL_ARGV("victim_worker", "blocks_all_signals"), FL_ENV(QUICK)))
CASE_IS(it_ends_when_all_is_given_back, FL_ACTIVE(FL_ARGV("victim_worker", "idles"), FL_ENV(QUICK)))
CASE_IS(without_it_requests_give_memory_back,
        fl_run_modes("victim_worker", FL_ARGV("gives_back_when_asked", "gives_back_after_steps"),
                     FL_ENV("FAULTLESS_DECAY_MS=400", NO_WORKER)))
CASE_IS(without_decay_free_memory_stays,
        FL_ACTIVE(FL_ARGV("victim_worker", "keeps_until_trimmed"), FL_ENV("FAULTLESS_DECAY_MS=0")))
CASE_IS(much_thread_local_storage_does_not_keep_it_away,
        FL_ACTIVE(FL_ARGV("victim_worker_tls", "much_tls"), FL_ENV(QUICK)))

CASES_MAIN()
