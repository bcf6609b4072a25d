/* The machine's setting for huge pages: never, madvise, always. */
#include "run.h"

#include <unistd.h>

static const char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled";

static void under(const char *value)
{
    assert_true(fl_sysctl_set(setting, value));
    fl_run_modes("victim_contents", FL_ARGV("realloc_random", "calloc_in_pieces", "calloc_lazy"),
                 NULL);
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"), NULL);
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_names", "f_malloc"), FL_ENV("FAULTLESS_LOG=info"));
    assert_non_null(strstr(r->err, strcmp(value, "never") == 0 ? ", base pages" : ", huge pages"));
    fl_sysctl_restore();
}

static void never(void **state)
{
    (void)state;
    under("never");
}

static void by_advice(void **state)
{
    (void)state;
    under("madvise");
}

static void always(void **state)
{
    (void)state;
    under("always");
}

static int restore(void **state)
{
    (void)state;
    fl_sysctl_restore();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(never, restore),
        cmocka_unit_test_teardown(by_advice, restore),
        cmocka_unit_test_teardown(always, restore),
    };
    FL_SKIP_UNLESS(access(setting, W_OK) == 0, "test_preload_thp",
                   "needs to write /sys/kernel/mm/transparent_hugepage/enabled");
    return cmocka_run_group_tests(tests, NULL, restore);
}
