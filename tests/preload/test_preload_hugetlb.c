/* FAULTLESS_HUGETLB on this machine's pool, of which the test is the administrator: eight pages of
 * 2 MiB. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const char pages[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
static const char *const on[] = {"FAULTLESS_HUGETLB=2M", "FAULTLESS_HUGETLB_FROM=4M", NULL};

static int set_up(void **state)
{
    (void)state;
    return fl_sysctl_set(pages, "8") && fl_read_number(pages, "") == 8 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    fl_sysctl_restore();
    return fl_read_number(pages, "") == 0 ? 0 : -1;
}

/* No other program has any, and eight are to be had now. */
static bool has_pool(void)
{
    bool has = fl_read_number(pages, "") == 0 && set_up(NULL) == 0;

    return tear_down(NULL) == 0 && has;
}

static void a_block_takes_whole_pages_and_gives_them_back(void **state)
{
    (void)state;
    fl_run_modes("victim_hugetlb", FL_ARGV("lives_and_goes", "given_back"), on);
}

static void what_the_pool_has_not_lies_on_ordinary_pages_with_one_line(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_hugetlb", "too_long"), on);
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: hugetlb: too few pages are free for a block of 18M, "
                                "error 12: ordinary pages instead\n");
    r = fl_preload_run(FL_ARGV("victim_hugetlb", "too_long"),
                       FL_ENV(on[0], on[1], "FAULTLESS_LOG=none"));
    fl_run_assert_clean(r);
}

static void goes_well(void **state)
{
    assert_int_equal(fl_preload_run(FL_ARGV("victim_hugetlb", *state), on)->exit_status, 0);
}

static long child_reads(const char *fork)
{
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_hugetlb", "read_by_child"), FL_ENV(on[0], on[1], fork));

    fl_run_assert_clean(r);
    return strtol(r->out, NULL, 10);
}

static void a_child_may_have_none_or_zeros(void **state)
{
    (void)state;
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=copy"), 7);
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=wipe"), 0);
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=none"), -SIGSEGV);
}

#define WITH_POOL(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    static char resized[] = "resized", forked[] = "forked";
    const struct CMUnitTest tests[] = {
        WITH_POOL(a_block_takes_whole_pages_and_gives_them_back),
        WITH_POOL(what_the_pool_has_not_lies_on_ordinary_pages_with_one_line),
        {"a_block_can_be_resized", goes_well, set_up, tear_down, resized},
        {"a_child_has_a_copy_though_the_pool_is_empty", goes_well, set_up, tear_down, forked},
        WITH_POOL(a_child_may_have_none_or_zeros),
    };
    FL_SKIP_UNLESS(access(pages, W_OK) == 0, "test_preload_hugetlb",
                   "needs to write /sys/kernel/mm/hugepages");
    FL_SKIP_UNLESS(has_pool(), "test_preload_hugetlb", "needs eight free hugetlb pages of 2 MiB");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
