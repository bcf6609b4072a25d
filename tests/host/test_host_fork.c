/* No fork hangs that does not under glibc, children can use what they have, and the parent gets
 * back what a child cost. */
#include "host.h"

static void run_forks(void **state)
{
    const char *mode = *state;
    struct fl_host_tally tally = {.rows = 1};
    long count = fl_host_runs(fl_rung()[0] == '\0' ? 300 : 100);
    char text[24];

    snprintf(text, sizeof text, "%ld", count);
    const struct fl_how how = {.argv = FL_ARGV("victim_host_fork", mode, text),
                               .env = FL_ENV("FAULTLESS_DECAY_MS=100", "FAULTLESS_STATS=0"),
                               .seconds = 25 + (int)(count / 10)};
    const struct fl_run *r = fl_run_how(&how);
    if (r->exit_status != 0 || r->err[0] != '\0' || fl_run_said(r, "forks ") < count / 3) {
        fl_host_failed(&tally, "%s, after %ld of %ld forks\n%s", fl_host_end(r),
                       fl_run_said(r, "forks "), count, r->err);
    }
    fl_host_judge(&tally);
}

static const struct fl_run *after_fork(const char *mode)
{
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_host_after_fork", mode), FL_ENV("FAULTLESS_DECAY_MS=400"));

    fl_run_assert_clean(r);
    return r;
}

static void a_process_without_large_requests_has_one_thread(void **state)
{
    (void)state;
    after_fork("threads_without_requests");
}

static void one_large_request_after_a_fork_starts_no_thread(void **state)
{
    (void)state;
    after_fork("threads_with_one_request");
}

static void huge_pages_come_back_without_a_request(void **state)
{
    (void)state;
    if (fl_rung_has("worker")) {
        return; /* there is no thread to bring them back */
    }
    for (long i = 0; i < fl_host_runs(3); i++) {
        const struct fl_run *r = after_fork("huge_again");
        long before = fl_run_said(r, "before "), after = fl_run_said(r, "after ");
        if (before < 500) {
            fail_msg("not in huge pages at first: %s", r->out);
        }
        if (after * 100 < before * 95) {
            fail_msg("run %ld: %s", i, r->out);
        }
    }
}

static void a_child_of_vfork_leaves_the_parent_its_decay(void **state)
{
    (void)state;
    if (fl_rung_has("worker")) {
        return; /* nothing decays by itself then */
    }
    /* At the file's start, over the count of forks. */
    assert_int_equal(strncmp(after_fork("vfork_child_allocates")->out, "small\n", 6), 0);
}

#define FORKS(mode) FL_CASE_OF("forks_" mode, run_forks, mode)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORKS("stdio"),
        FORKS("stdio_live"),
        FORKS("popens"),
        FORKS("dlopens"),
        FORKS("allocating"),
        FORKS("nested"),
        FORKS("spawns"),
        FORKS("raw_clones"),
        FORKS("solo_interrupted_small"),
        FORKS("solo_interrupted_large"),
        FORKS("solo_interrupted_giant"),
        FORKS("solo_children_continue"),
        cmocka_unit_test(a_process_without_large_requests_has_one_thread),
        cmocka_unit_test(one_large_request_after_a_fork_starts_no_thread),
        cmocka_unit_test(huge_pages_come_back_without_a_request),
        cmocka_unit_test(a_child_of_vfork_leaves_the_parent_its_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
