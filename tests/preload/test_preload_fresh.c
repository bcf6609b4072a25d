/* What a request for a fresh GiB costs the thread that makes it, by the kernel's counts. */
#include "run.h"

/* Tables are a few pages, whatever the block's length. The first request brings in code too: a
 * build with more checks has more of it. */
static const char *const first = FL_CHECK_LEVEL > 1 ? "24" : "12";

static void a_fresh_gib_takes_few_faults(void **state)
{
    (void)state;
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_fresh", first, "3"), FL_ENV("FAULTLESS_LOG=warn"));

    print_message("           %s", r->out);
    fl_run_assert_active(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_gib_takes_few_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
