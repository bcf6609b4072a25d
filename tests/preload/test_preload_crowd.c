/* A process of many threads that have freed all and rest holds about as little as under glibc; one
 * of few threads keeps what they will ask for again. */
#include "run.h"

#include <sched.h>
#include <stdlib.h>

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
    char text[32];

    (void)snprintf(text, sizeof text, "%ld", most);
    const struct fl_how two = {.argv = FL_ARGV("victim_crowd", how, threads, kib, blocks, text),
                               .in_child = on_two_cpus};
    const struct fl_run *r = fl_run_how(&two);
    print_message("           %s, %s threads of %s blocks of %s KiB: %s", how, threads, blocks, kib,
                  r->out);
    fl_run_assert_active(r);
    return r;
}

static void holds_little(const char *how, const char *threads, const char *kib, const char *blocks)
{
    const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_crowd", how, threads, kib, blocks));
    long rss = fl_run_said(plain, "rss ");

    fl_run_assert_clean(plain);
    print_message("           glibc: %s", plain->out);
    (void)run(how, threads, kib, blocks, rss * 6 / 5 + OWN_KIB + EACH_KIB * atol(threads));
}

static void all_sizes(void **state)
{
    const char *how = *state;

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

static void of_four_hundred(void **state)
{
    (void)state;
    holds_little("hold", "400", "64", "10");
}

/* Eight threads' 20 blocks of 256 KiB and a little more are 45 MiB. */
static void few_threads_keep_what_they_freed(void **state)
{
    (void)state;
    const struct fl_run *r = run("hold", "8", "256", "20", 1L << 40);
    assert_true(fl_run_said(r, "rss ") >= 45 * 1024);
}

/* What came while another thread's first block was being served would be libc's for good, in heaps
 * that keep what is freed. It waits; but not for ever, where the other one waits for it. */
static void those_that_come_amid_the_first(void **state)
{
    (void)state;
    long long served = 0;

    /* A second that had no processor for long goes its way. */
    for (int tries = 0; served < 2 && tries < 20; tries++) {
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_amid"), NULL);
        fl_run_assert_active(r);
        served = fl_run_stat(r, "requests");
        assert_true(served >= 1);
    }
    assert_int_equal(served, 2);
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_amid", "lock"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_CASE(that_held_all_at_once, all_sizes, "hold"),
        FL_CASE(that_came_as_they_did, all_sizes, "free"),
        FL_CASE(that_came_in_turns, all_sizes, "turns"),
        cmocka_unit_test(of_four_hundred),
        cmocka_unit_test(few_threads_keep_what_they_freed),
        cmocka_unit_test(those_that_come_amid_the_first),
    };
    return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
