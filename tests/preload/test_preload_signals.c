/* Handlers that free, allocate and fork amid our own work. */
#include "run.h"

static void handlers_free_amid_large_work(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("free_in_handler"), NULL);
}

static void handlers_allocate_amid_large_work(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("both_in_handler"), FL_ENV("FAULTLESS_DECAY_MS=4"));
}

static void handlers_free_amid_small_work(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("amid_small"), FL_ENV("FAULTLESS_DECAY_MS=4"));
}

static void what_a_handler_frees_unpopulated_is_cleared(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("giants"),
                 FL_ENV("FAULTLESS_EAGER_MAX=32M", "FAULTLESS_DISABLE=cache"));
}

static void handlers_free_with_threads(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("with_threads"), NULL);
}

static void handlers_fork(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("fork_in_handler"), NULL);
}

static void a_stack_overflow_handler_allocates(void **state)
{
    (void)state;
    fl_run_modes("victim_signals", FL_ARGV("overflow"), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_free_amid_large_work),
        cmocka_unit_test(handlers_allocate_amid_large_work),
        cmocka_unit_test(handlers_free_amid_small_work),
        cmocka_unit_test(what_a_handler_frees_unpopulated_is_cleared),
        cmocka_unit_test(handlers_free_with_threads),
        cmocka_unit_test(handlers_fork),
        cmocka_unit_test(a_stack_overflow_handler_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
