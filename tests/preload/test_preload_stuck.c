/* The fl-uffd thread is held up, wherever it may be, or is gone: the program goes on and loses
 * nothing. */
#include "run.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { PATIENCE = 60, KINDS = 64 };

static const struct fl_run *run(const char *mode, const char *seen, const char *decay)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_stuck", FL_VICTIM_DIR "/victim_tracer", mode, seen),
                  .env = FL_ENV(decay), .seconds = PATIENCE);
    return r;
}

static void goes_on(const char *mode, const char *decay, const char *says)
{
    assert_says(run(mode, ",", decay)->out, says);
}

CASE_IS(the_victim_is_right_under_glibc,
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_stuck", "none", "alone", ","))))

/* In each kind of system call that it makes: one run a kind, until there is none that was not seen.
 * A run in which that happened when the victim was done already tells nothing. */
static void each_call(const char *mode, char state_after)
{
    static char seen[4096];
    int kinds = 0, runs = 0;

    snprintf(seen, sizeof seen, ",");
    for (; kinds < KINDS && runs < 2 * KINDS; runs++) {
        const struct fl_run *r = run(mode, seen, "FAULTLESS_DECAY_MS=20");
        const char *done = strstr(r->out, "done in ,");
        if (done == NULL) {
            break;
        }
        const char *over = strstr(r->out, "over\n");
        assert_non_null(over);
        if (done > over) {
            continue;
        }
        done += strlen("done in ,");
        int len = (int)strcspn(done, "\n");
        print_message("           in call %.*s\n", len - 1, done);
        assert_says(r->out, text_as("after %c\n", state_after));
        size_t at = strlen(seen);
        snprintf(seen + at, sizeof seen - at, "%.*s", len, done);
        kinds++;
    }
    assert_true(kinds > 0 && runs < 2 * KINDS);
}

static bool may_trace(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }
    bool may = pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
    kill(pid, SIGKILL);
    return waitpid(pid, &status, __WALL) == pid && may;
}

CASE_IS(asleep_for_good, goes_on("hold", "FAULTLESS_DECAY_MS=10000", "before t\nover\nafter t\n"))
CASE_IS(ended, goes_on("kill", "FAULTLESS_DECAY_MS=10000", "before -\nover\nafter -\n"))
CASE_IS(stopped_now_and_then_at_any_place, run("slow", ",", "FAULTLESS_DECAY_MS=20"))
CASE_IS(held_up_in_each_kind_of_call, each_call("hold_in", 't'))
CASE_IS(ended_in_each_kind_of_call, each_call("kill_in", '-'))
CASE_IS(kill_stop_and_cont, run("stop", ",", "FAULTLESS_DECAY_MS=20"))

int main(void)
{
    FL_SKIP_UNLESS(may_trace(), "test_preload_stuck",
                   "needs ptrace, and may not trace its own child");
    return RUN_CASES();
}
