/* The worker has descriptors and a signal of its own: the program and it know nothing of each
 * other's, and it does without where a sandbox refuses. */
#include "refuse.h"
#include "run.h"

#include <sys/syscall.h>

#define SHORT FL_ENV("FAULTLESS_DECAY_MS=100")
#define LONG FL_ENV("FAULTLESS_DECAY_MS=60000") /* it polls all the time */

#define WITHOUT(calls, ...) FL_ACTIVE(__VA_ARGS__, .in_child = fl_refuse, .arg = calls)

CASE(it_holds_nothing_of_the_program_s)
{
    FL_ACTIVE(FL_ARGV("victim_table", "pipe_ends"), SHORT);
    FL_ACTIVE(FL_ARGV("victim_table", "pipe_ends"), LONG);
}

CASE(it_takes_no_signal_of_the_program_s)
{
    fl_run_modes("victim_table", FL_ARGV("signals_are_its_own", "cancels_and_changes_ids"), SHORT);
    fl_run_modes("victim_table", FL_ARGV("signals_are_its_own", "cancels_and_changes_ids"), LONG);
    FL_ACTIVE(FL_ARGV("victim_table", "idles_amid_signals"), SHORT);
}

static void works_without(unsigned *calls)
{
    bool shares = calls[0] == SYS_close_range;

    WITHOUT(calls, FL_ARGV("victim_worker", "gives_back"), SHORT);
    WITHOUT(calls, FL_ARGV("victim_last_thread", "main_is_last"), LONG);
    WITHOUT(calls, FL_ARGV("victim_table", shares ? "pipe_is_shared" : "pipe_ends"),
            shares ? SHORT : LONG);
}

/* Each, and all at once. Everything but the watch for pressure stays. */
CASE(it_works_without_what_a_sandbox_refuses)
{
    static unsigned each[][2] = {
        {SYS_close_range}, {SYS_signalfd4}, {SYS_ppoll}, {SYS_tgkill}, {SYS_eventfd2}};
    static unsigned all[] = {SYS_close_range, SYS_signalfd4, SYS_ppoll,
                             SYS_tgkill,      SYS_eventfd2,  0};
    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++) {
        works_without(each[i]);
    }
    works_without(all);
    WITHOUT(all, FL_ARGV("victim_worker", "idles"), SHORT);
    WITHOUT(all, FL_ARGV("victim_table", "closes_all"), SHORT);
}

/* It cannot say how it was served: to write statistics is a call that its filter may not know. */
CASE(a_program_that_confines_itself_is_not_ended_for_it)
{
    static const char *const modes[] = {"confined_before", "confined_while_it_ticks",
                                        "confined_while_it_idles", "confined_alone"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_table", modes[i]),
                   .env = FL_ENV("FAULTLESS_DECAY_MS=100", "FAULTLESS_LOG=info"));
        assert_int_equal(r->exit_status, 0);
        assert_says(r->err, "faultless: active: ");
        assert_says(r->err, "faultless: a seccomp filter comes");
    }
}

CASE_IS(the_program_may_close_everything,
        fl_run_modes("victim_table", FL_ARGV("closes_all", "few_descriptors"), SHORT))
CASE_IS(it_watches_only_while_it_holds,
        FL_ACTIVE(FL_ARGV("victim_table", "watches"), FL_ENV("FAULTLESS_DECAY_MS=400")))

CASES_MAIN()
