/* No fork hangs that does not under glibc, children can use what they have, and the parent gets
 * back what a child cost. */
#include "host.h"

static void run_forks(const char *mode)
{
    struct fl_host_tally tally = {.rows = 1};
    long count = fl_host_runs(fl_rung()[0] == '\0' ? 300 : 100);
    const struct fl_how how = {.argv = FL_ARGV("victim_host_fork", mode, text_as("%ld", count)),
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
        FL_CLEAN(FL_ARGV("victim_host_after_fork", mode), FL_ENV("FAULTLESS_DECAY_MS=400"));
    return r;
}

CASE(huge_pages_come_back_without_a_request)
{
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

CASE(a_child_of_vfork_leaves_the_parent_its_decay)
{
    if (fl_rung_has("worker")) {
        return; /* nothing decays by itself then */
    }
    /* At the file's start, over the count of forks. */
    assert_int_equal(strncmp(after_fork("vfork_child_allocates")->out, "small\n", 6), 0);
}

CASE_IS(a_process_without_large_requests_has_one_thread, after_fork("threads_without_requests"))
CASE_IS(one_large_request_after_a_fork_starts_no_thread, after_fork("threads_with_one_request"))

#define FORKS(mode) CASE_IS(forks_##mode, run_forks(#mode))

FORKS(stdio)
FORKS(stdio_live)
FORKS(popens)
FORKS(dlopens)
FORKS(allocating)
FORKS(nested)
FORKS(spawns)
FORKS(raw_clones)
FORKS(solo_interrupted_small)
FORKS(solo_interrupted_large)
FORKS(solo_interrupted_giant)
FORKS(solo_children_continue)

CASES_MAIN()
