/* The fl-uffd thread is held up, wherever it may be, or is gone: the program goes on and loses
 * nothing. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 60, KINDS = 64 };

static const struct fl_run *run(const char *mode, const char *seen, const char *decay)
{
    const char *const argv[] = {"victim_stuck", FL_VICTIM_DIR "/victim_tracer", mode, seen, NULL};
    const struct fl_run *r =
        fl_run_how(&(struct fl_how){.argv = argv, .env = FL_ENV(decay), .seconds = PATIENCE});

    fl_run_assert_active(r);
    return r;
}

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_stuck", "none", "alone", ",")));
}

static void asleep_for_good(void **state)
{
    (void)state;
    const struct fl_run *r = run("hold", ",", "FAULTLESS_DECAY_MS=10000");
    assert_non_null(strstr(r->out, "before t\nover\nafter t\n")); /* it was held all the time */
}

static void ended(void **state)
{
    (void)state;
    const struct fl_run *r = run("kill", ",", "FAULTLESS_DECAY_MS=10000");
    assert_non_null(strstr(r->out, "before -\nover\nafter -\n"));
}

static void stopped_now_and_then_at_any_place(void **state)
{
    (void)state;
    run("slow", ",", "FAULTLESS_DECAY_MS=20");
}

/* In each kind of system call that it makes: one run a kind, until there is none that was not seen.
 * A run in which that happened when the victim was done already tells nothing. */
static void each_call(const char *mode, char state_after)
{
    static char seen[4096];
    char after[16];
    int kinds = 0, runs = 0;

    snprintf(seen, sizeof seen, ",");
    snprintf(after, sizeof after, "after %c\n", state_after);
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
        assert_non_null(strstr(r->out, after));
        size_t at = strlen(seen);
        snprintf(seen + at, sizeof seen - at, "%.*s", len, done);
        kinds++;
    }
    assert_true(kinds > 0 && runs < 2 * KINDS);
}

static void held_up_in_each_kind_of_call(void **state)
{
    (void)state;
    each_call("hold_in", 't');
}

static void ended_in_each_kind_of_call(void **state)
{
    (void)state;
    each_call("kill_in", '-');
}

static void kill_stop_and_cont(void **state)
{
    (void)state;
    run("stop", ",", "FAULTLESS_DECAY_MS=20");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        cmocka_unit_test(asleep_for_good),
        cmocka_unit_test(ended),
        cmocka_unit_test(stopped_now_and_then_at_any_place),
        cmocka_unit_test(held_up_in_each_kind_of_call),
        cmocka_unit_test(ended_in_each_kind_of_call),
        cmocka_unit_test(kill_stop_and_cont),
    };
    FL_SKIP_UNLESS(may_trace(), "test_preload_stuck",
                   "needs ptrace, and may not trace its own child");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
