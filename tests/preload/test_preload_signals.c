/* Handlers that free, allocate and fork amid our own work. */
#include "run.h"

#define VICTIM "victim_signals"

CASE_IS(handlers_free_amid_large_work, FL_ACTIVE(FL_ARGV(VICTIM, "free_in_handler")))
CASE_IS(handlers_allocate_amid_large_work,
        FL_ACTIVE(FL_ARGV(VICTIM, "both_in_handler"), FL_ENV("FAULTLESS_DECAY_MS=4")))
CASE_IS(handlers_free_amid_small_work,
        FL_ACTIVE(FL_ARGV(VICTIM, "amid_small"), FL_ENV("FAULTLESS_DECAY_MS=4")))
CASE_IS(what_a_handler_frees_unpopulated_is_cleared,
        FL_ACTIVE(FL_ARGV(VICTIM, "giants"),
                  FL_ENV("FAULTLESS_EAGER_MAX=32M", "FAULTLESS_DISABLE=cache")))
CASE_IS(handlers_free_with_threads, FL_ACTIVE(FL_ARGV(VICTIM, "with_threads")))
CASE_IS(handlers_fork, FL_ACTIVE(FL_ARGV(VICTIM, "fork_in_handler")))
CASE_IS(a_stack_overflow_handler_allocates, FL_ACTIVE(FL_ARGV(VICTIM, "overflow")))

CASES_MAIN()
