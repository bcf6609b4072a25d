/* Handlers that free, allocate and fork amid our own work. */
#include "run.h"

#define VICTIM "victim_signals"

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(handlers_free_amid_large_work, VICTIM, FL_ARGV("free_in_handler"), NULL),
        FL_MODES(handlers_allocate_amid_large_work, VICTIM, FL_ARGV("both_in_handler"),
                 FL_ENV("FAULTLESS_DECAY_MS=4")),
        FL_MODES(handlers_free_amid_small_work, VICTIM, FL_ARGV("amid_small"),
                 FL_ENV("FAULTLESS_DECAY_MS=4")),
        FL_MODES(what_a_handler_frees_unpopulated_is_cleared, VICTIM, FL_ARGV("giants"),
                 FL_ENV("FAULTLESS_EAGER_MAX=32M", "FAULTLESS_DISABLE=cache")),
        FL_MODES(handlers_free_with_threads, VICTIM, FL_ARGV("with_threads"), NULL),
        FL_MODES(handlers_fork, VICTIM, FL_ARGV("fork_in_handler"), NULL),
        FL_MODES(a_stack_overflow_handler_allocates, VICTIM, FL_ARGV("overflow"), NULL),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
