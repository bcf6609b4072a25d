/* The worker has descriptors and a signal of its own: the program and it know nothing of each
 * other's, and it does without where a sandbox refuses. */
#include "refuse.h"
#include "run.h"

#include <sys/syscall.h>

#define SHORT FL_ENV("FAULTLESS_DECAY_MS=100")
#define LONG FL_ENV("FAULTLESS_DECAY_MS=60000") /* it polls all the time */

static const struct fl_run *run_without(unsigned *calls, const char *const argv[],
                                        const char *const env[])
{
    return fl_run_how(
        &(struct fl_how){.argv = argv, .env = env, .in_child = fl_refuse, .arg = calls});
}

static void it_holds_nothing_of_the_program_s(void **state)
{
    (void)state;
    fl_run_modes("victim_table", FL_ARGV("pipe_ends"), SHORT);
    fl_run_modes("victim_table", FL_ARGV("pipe_ends"), LONG);
}

static void it_takes_no_signal_of_the_program_s(void **state)
{
    (void)state;
    fl_run_modes("victim_table", FL_ARGV("signals_are_its_own", "cancels_and_changes_ids"), SHORT);
    fl_run_modes("victim_table", FL_ARGV("signals_are_its_own", "cancels_and_changes_ids"), LONG);
    fl_run_modes("victim_table", FL_ARGV("idles_amid_signals"), SHORT);
}

static void works_without(unsigned *calls)
{
    bool shares = calls[0] == SYS_close_range;

    fl_run_assert_active(run_without(calls, FL_ARGV("victim_worker", "gives_back"), SHORT));
    fl_run_assert_active(run_without(calls, FL_ARGV("victim_last_thread", "main"), LONG));
    fl_run_assert_active(
        run_without(calls, FL_ARGV("victim_table", shares ? "pipe_is_shared" : "pipe_ends"),
                    shares ? SHORT : LONG));
}

/* Each, and all at once. Everything but the watch for pressure stays. */
static void it_works_without_what_a_sandbox_refuses(void **state)
{
    static unsigned each[][2] = {
        {SYS_close_range}, {SYS_signalfd4}, {SYS_ppoll}, {SYS_tgkill}, {SYS_eventfd2}};
    static unsigned all[] = {SYS_close_range, SYS_signalfd4, SYS_ppoll,
                             SYS_tgkill,      SYS_eventfd2,  0};
    (void)state;
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        works_without(each[i]);
    }
    works_without(all);
    fl_run_assert_active(run_without(all, FL_ARGV("victim_worker", "idles"), SHORT));
    fl_run_assert_active(run_without(all, FL_ARGV("victim_table", "closes_all"), SHORT));
}

/* It cannot say how it was served: to write statistics is a call that its filter may not know. */
static void a_program_that_confines_itself_is_not_ended_for_it(void **state)
{
    static const char *const modes[] = {"confined_before", "confined_while_it_ticks",
                                        "confined_while_it_idles", "confined_alone"};
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const struct fl_run *r = fl_run_how(
            &(struct fl_how){.argv = FL_ARGV("victim_table", modes[i]),
                             .env = FL_ENV("FAULTLESS_DECAY_MS=100", "FAULTLESS_LOG=info")});
        assert_int_equal(r->exit_status, 0);
        assert_non_null(strstr(r->err, "faultless: active: "));
        assert_non_null(strstr(r->err, "faultless: a seccomp filter comes"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_nothing_of_the_program_s),
        FL_MODES(the_program_may_close_everything, "victim_table",
                 FL_ARGV("closes_all", "few_descriptors"), SHORT),
        FL_MODES(it_watches_only_while_it_holds, "victim_table", FL_ARGV("watches"),
                 FL_ENV("FAULTLESS_DECAY_MS=400")),
        cmocka_unit_test(it_takes_no_signal_of_the_program_s),
        cmocka_unit_test(it_works_without_what_a_sandbox_refuses),
        cmocka_unit_test(a_program_that_confines_itself_is_not_ended_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
