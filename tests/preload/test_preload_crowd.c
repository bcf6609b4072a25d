/* A process of many threads that have freed all and rest holds about as little as under glibc; one
 * of few threads keeps what they will ask for again. */
#include "run.h"

#include <sched.h>

/* What each thread costs beside its blocks, at most; and the process. */
enum { EACH_KIB = 32, OWN_KIB = 2048 };

/* However many the machine has: of hundreds of CPUs 200 threads would be no crowd. */
static void on_two_cpus(void *unused)
{
    cpu_set_t set;
    unsigned n = 0;

    (void)unused;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (size_t i = 0; i < CPU_SETSIZE; i++) {
            n += CPU_ISSET(i, &set) ? 1 : 0;
            if (n > 2) {
                CPU_CLR(i, &set);
            }
        }
        (void)sched_setaffinity(0, sizeof set, &set);
    }
}

static const struct fl_run *run(const char *how, const char *threads, const char *kib,
                                const char *blocks, long most)
{
    return FL_ACTIVE(FL_ARGV("victim_crowd", how, threads, kib, blocks, text_as("%ld", most)),
                     .in_child = on_two_cpus);
}

static void holds_little(const char *how, const char *threads, const char *kib, const char *blocks)
{
    const struct fl_run *plain =
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_crowd", how, threads, kib, blocks)));
    long rss = fl_run_said(plain, "rss ");

    (void)run(how, threads, kib, blocks, rss * 6 / 5 + OWN_KIB + EACH_KIB * atol(threads));
}

static void all_sizes(const char *how)
{
    holds_little(how, "200", "64", "20");
    if (fl_rung()[0] != '\0') {
        return;
    }
    holds_little(how, "200", "64", "1");
    holds_little(how, "200", "100", "20");
    holds_little(how, "200", "256", "10");
    holds_little(how, "200", "1024", "2");
    holds_little(how, "50", "4096", "2");
}

/* Eight threads' 20 blocks of 256 KiB and a little more are 45 MiB. */
CASE(few_threads_keep_what_they_freed)
{
    const struct fl_run *r = run("hold", "8", "256", "20", 1L << 40);
    assert_true(fl_run_said(r, "rss ") >= 45 * 1024);
}

/* What came while another thread's first block was being served would be libc's for good, in heaps
 * that keep what is freed. It waits; but not for ever, where the other one waits for it. */
CASE(those_that_come_amid_the_first)
{
    long long served = 0;

    /* A second that had no processor for long goes its way. */
    for (int tries = 0; served < 2 && tries < 20; tries++) {
        const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_amid"));
        served = fl_run_stat(r, "requests");
        assert_true(served >= 1);
    }
    assert_int_equal(served, 2);
    FL_ACTIVE(FL_ARGV("victim_amid", "lock"));
}

CASE_IS(that_held_all_at_once, all_sizes("hold"))
CASE_IS(that_came_as_they_did, all_sizes("free"))
CASE_IS(that_came_in_turns, all_sizes("turns"))
CASE_IS(of_four_hundred, holds_little("hold", "400", "64", "10"))

CASES_MAIN()
