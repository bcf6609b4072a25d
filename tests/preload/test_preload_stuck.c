/* The fl-uffd thread is held up, wherever it may be, or is gone: the program goes on and loses
 * nothing. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 60, KINDS = 64 };

struct row {
    const char *mode, *decay;
    const char *says; /* NULL: whatever */
};

static const struct fl_run *run(const char *mode, const char *seen, const char *decay)
{
    const struct fl_run *r = fl_run_how(&(struct fl_how){
        .argv = FL_ARGV("victim_stuck", FL_VICTIM_DIR "/victim_tracer", mode, seen),
        .env = FL_ENV(decay),
        .seconds = PATIENCE});

    fl_run_assert_active(r);
    return r;
}

static void goes_on(void **state)
{
    const struct row *row = *state;
    const struct fl_run *r = run(row->mode, ",", row->decay);

    assert_true(row->says == NULL || strstr(r->out, row->says) != NULL);
}

static void the_victim_is_right_under_glibc(void **state)
{
    (void)state;
    fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_stuck", "none", "alone", ",")));
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

#define GOES_ON(name, ...) FL_CASE(name, goes_on, (&(const struct row){__VA_ARGS__}))

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_victim_is_right_under_glibc),
        GOES_ON(asleep_for_good, "hold", "FAULTLESS_DECAY_MS=10000", "before t\nover\nafter t\n"),
        GOES_ON(ended, "kill", "FAULTLESS_DECAY_MS=10000", "before -\nover\nafter -\n"),
        GOES_ON(stopped_now_and_then_at_any_place, "slow", "FAULTLESS_DECAY_MS=20", NULL),
        cmocka_unit_test(held_up_in_each_kind_of_call),
        cmocka_unit_test(ended_in_each_kind_of_call),
        GOES_ON(kill_stop_and_cont, "stop", "FAULTLESS_DECAY_MS=20", NULL),
    };
    FL_SKIP_UNLESS(may_trace(), "test_preload_stuck",
                   "needs ptrace, and may not trace its own child");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
