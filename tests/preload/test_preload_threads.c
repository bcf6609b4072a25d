/* Threads that come and go, and free each other's blocks. */
#include "run.h"

static const char *const modes[] = {"thousand",        "at_once",   "specific", "no_key_left",
                                    "end_while_freed", "exit_amid", NULL};

static void threads_come_go_and_share(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", modes, NULL);
}

static void threads_without_caches_and_worker(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", modes, FL_ENV("FAULTLESS_DISABLE=cache,worker"));
}

static void contents_survive_churn(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", FL_ARGV("churn"), NULL);
}

static void contents_survive_churn_when_populated_by_touch(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", FL_ARGV("churn"),
                 FL_ENV("FAULTLESS_DISABLE=populate", "FAULTLESS_DECAY_MS=4"));
}

static void contents_survive_churn_with_decay_at_its_quickest(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", FL_ARGV("churn"),
                 FL_ENV("FAULTLESS_DECAY_MS=1", "FAULTLESS_THRESHOLD=16K"));
}

static void contents_survive_replacement(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", FL_ARGV("replace"), NULL);
    fl_run_modes("victim_threads", FL_ARGV("replace"),
                 FL_ENV("FAULTLESS_STEPS=off", "FAULTLESS_DECAY_MS=4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_come_go_and_share),
        cmocka_unit_test(threads_without_caches_and_worker),
        cmocka_unit_test(contents_survive_churn),
        cmocka_unit_test(contents_survive_replacement),
        cmocka_unit_test(contents_survive_churn_when_populated_by_touch),
        cmocka_unit_test(contents_survive_churn_with_decay_at_its_quickest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
