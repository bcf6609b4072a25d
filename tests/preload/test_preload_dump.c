/* Core dumps: without what is free, with all that is live. */
#include "run.h"

#define STAYS "FAULTLESS_DECAY_MS=3600000"

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(free_memory_is_in_no_dump, "victim_dump",
                 FL_ARGV("freed", "live_stays", "in_child"), FL_ENV(STAYS)),
        FL_MODES(nor_is_the_stock, "victim_dump", FL_ARGV("freed"),
                 FL_ENV(STAYS, "FAULTLESS_STOCK=200M")),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
