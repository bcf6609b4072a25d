/* Core dumps: without what is free, with all that is live. */
#include "run.h"

static void free_memory_is_in_no_dump(void **state)
{
    (void)state;
    fl_run_modes("victim_dump", FL_ARGV("freed", "live_stays", "in_child"),
                 FL_ENV("FAULTLESS_DECAY_MS=3600000"));
}

/* The fixed stock is so, from its start. */
static void nor_is_the_stock(void **state)
{
    (void)state;
    fl_run_modes("victim_dump", FL_ARGV("freed"),
                 FL_ENV("FAULTLESS_DECAY_MS=3600000", "FAULTLESS_STOCK=200M"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_memory_is_in_no_dump),
        cmocka_unit_test(nor_is_the_stock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
