/* The machine's setting for huge pages: never, madvise, always. */
#include "run.h"

#include <sys/utsname.h>
#include <unistd.h>

static const char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled";

/* By MADV_COLLAPSE (Linux 6.1), of what PAGEMAP_SCAN finds (6.7). */
static bool collapses(void)
{
    struct utsname u;
    unsigned major = 0, minor = 0;

    assert_int_equal(uname(&u), 0);
    assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
    return major > 6 || (major == 6 && minor >= 7);
}

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

/* The administrator said never; the user says: by collapse. */
static void never_but_by_collapse(void **state)
{
    static const char *const env[] = {"FAULTLESS_THP=collapse", "FAULTLESS_LOG=info", NULL};
    (void)state;
    assert_true(fl_sysctl_set(setting, "never"));
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_names", "f_malloc"), env);
    bool may = !fl_rung_has("thp") && !fl_rung_has("worker");
    assert_non_null(strstr(r->err, may ? ", huge pages by collapse" : ", base pages,"));
    fl_run_modes("victim_contents", FL_ARGV("realloc_random", "calloc_in_pieces", "calloc_lazy"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    fl_run_modes("victim_thp",
                 may && collapses() ? FL_ARGV("full_becomes_huge", "half_stays_as_it_is")
                                    : FL_ARGV("nothing_becomes_huge"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    fl_run_modes("victim_thp", FL_ARGV("nothing_becomes_huge"), NULL);
    fl_sysctl_restore();
}

/* Where it is not never the option changes nothing. */
static void collapse_is_of_never_alone(void **state)
{
    static const char *const env[] = {"FAULTLESS_THP=collapse", "FAULTLESS_LOG=info", NULL};
    (void)state;
    assert_true(fl_sysctl_set(setting, "madvise"));
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_names", "f_malloc"), env);
    assert_null(strstr(r->err, "by collapse"));
    fl_sysctl_restore();
}

static void settings_may_change_beside_a_program(void **state)
{
    static const char *const option[] = {"FAULTLESS_THP=auto", "FAULTLESS_THP=collapse"};
    static const char *const first[] = {"never", "madvise", "always"};
    (void)state;
    if (fl_rung_has("nobody")) { /* the victim changes it */
        return;
    }
    for (size_t i = 0; i < 6; i++) {
        assert_true(fl_sysctl_set(setting, first[i % 3]));
        fl_run_modes("victim_thp", FL_ARGV("settings_change"), FL_ENV(option[i / 3]));
        fl_sysctl_restore();
    }
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
        cmocka_unit_test_teardown(never_but_by_collapse, restore),
        cmocka_unit_test_teardown(collapse_is_of_never_alone, restore),
        cmocka_unit_test_teardown(settings_may_change_beside_a_program, restore),
    };
    FL_SKIP_UNLESS(access(setting, W_OK) == 0, "test_preload_thp",
                   "needs to write /sys/kernel/mm/transparent_hugepage/enabled");
    return cmocka_run_group_tests(tests, NULL, restore);
}
