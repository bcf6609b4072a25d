/* FAULTLESS_HUGETLB on this machine's pool, of which the test is the administrator: eight pages of
 * 2 MiB. */
#include "run.h"

#include <signal.h>

static const char pages[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
static const char *const on[] = {"FAULTLESS_HUGETLB=2M", "FAULTLESS_HUGETLB_FROM=4M", NULL};

static bool takes_pool(void)
{
    return fl_sysctl_set(pages, "8") && fl_read_number(pages, "") == 8;
}

static bool leaves_pool(void)
{
    fl_sysctl_restore();
    return fl_read_number(pages, "") == 0;
}

static void set_up(void)
{
    assert_true(takes_pool());
}

static void tear_down(void)
{
    assert_true(leaves_pool());
}

/* No other program has any, and eight are to be had now. */
static bool has_pool(void)
{
    bool has = fl_read_number(pages, "") == 0 && takes_pool();

    return leaves_pool() && has;
}

CASE(what_the_pool_has_not_lies_on_ordinary_pages_with_one_line)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_hugetlb", "too_long"), on);
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: hugetlb: too few pages are free for a block of 18M, "
                                "error 12: ordinary pages instead\n");
    r = FL_CLEAN(FL_ARGV("victim_hugetlb", "too_long"), FL_ENV(on[0], on[1], "FAULTLESS_LOG=none"));
}

static void goes_well(const char *mode)
{
    assert_int_equal(FL_RUN(FL_ARGV("victim_hugetlb", mode), on)->exit_status, 0);
}

static long child_reads(const char *fork)
{
    const struct fl_run *r =
        FL_CLEAN(FL_ARGV("victim_hugetlb", "read_by_child"), FL_ENV(on[0], on[1], fork));
    return strtol(r->out, NULL, 10);
}

CASE(a_child_may_have_none_or_zeros)
{
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=copy"), 7);
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=wipe"), 0);
    assert_int_equal(child_reads("FAULTLESS_HUGETLB_FORK=none"), -SIGSEGV);
}

CASE_IS(a_block_takes_whole_pages_and_gives_them_back,
        fl_run_modes("victim_hugetlb", FL_ARGV("lives_and_goes", "given_back"), on))
CASE_IS(a_block_can_be_resized, goes_well("resized"))
CASE_IS(a_child_has_a_copy_though_the_pool_is_empty, goes_well("forked"))

int main(void)
{
    FL_SKIP_UNLESS(access(pages, W_OK) == 0, "test_preload_hugetlb",
                   "needs to write /sys/kernel/mm/hugepages");
    FL_SKIP_UNLESS(has_pool(), "test_preload_hugetlb", "needs eight free hugetlb pages of 2 MiB");
    return RUN_CASES(.setup = set_up, .teardown = tear_down);
}
