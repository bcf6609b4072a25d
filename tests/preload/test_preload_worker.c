/* The fl-uffd thread: gives memory back, and is not there when there is nothing to do. */
#include "run.h"

#define QUICK "FAULTLESS_DECAY_MS=100"
#define NO_WORKER "FAULTLESS_DISABLE=worker"

static void it_is_not_there_without_work(void **state)
{
    (void)state;
    fl_run_modes("victim_worker", FL_ARGV("none_below_16_mib"), FL_ENV(QUICK));
    fl_run_modes("victim_worker", FL_ARGV("none_when_disabled"), FL_ENV(QUICK, NO_WORKER));
}

static void it_is_not_the_last_thread(void **state)
{
    (void)state;
    fl_run_modes("victim_last_thread", FL_ARGV("main", "other"), FL_ENV(QUICK));
    fl_run_modes("victim_last_thread", FL_ARGV("main", "other"),
                 FL_ENV("FAULTLESS_DECAY_MS=60000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(free_memory_goes_back, "victim_worker",
                 FL_ARGV("gives_back", "gives_back_from_caches", "keeps_live", "in_child"),
                 FL_ENV(QUICK)),
        FL_MODES(it_blocks_all_signals, "victim_worker", FL_ARGV("blocks_all_signals"),
                 FL_ENV(QUICK)),
        FL_MODES(it_ends_when_all_is_given_back, "victim_worker", FL_ARGV("idles"), FL_ENV(QUICK)),
        cmocka_unit_test(it_is_not_there_without_work),
        FL_MODES(without_it_requests_give_memory_back, "victim_worker",
                 FL_ARGV("gives_back_when_asked", "gives_back_after_steps"),
                 FL_ENV("FAULTLESS_DECAY_MS=400", NO_WORKER)),
        FL_MODES(without_decay_free_memory_stays, "victim_worker", FL_ARGV("keeps_until_trimmed"),
                 FL_ENV("FAULTLESS_DECAY_MS=0")),
        FL_MODES(much_thread_local_storage_does_not_keep_it_away, "victim_worker_tls",
                 FL_ARGV("much_tls"), FL_ENV(QUICK)),
        cmocka_unit_test(it_is_not_the_last_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
