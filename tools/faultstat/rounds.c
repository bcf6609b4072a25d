/* Runs the command under all allocators, in rounds. Each round runs all of them once and begins
 * with another one than the round before, so that drift of the machine (heat, page cache, a
 * neighbour) falls on all alike. */
#include "faultstat/compare.h"
#include "faultstat/text.h"

#include "launcher/find.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct progress {
    unsigned order;
    bool is_in_place;
    uint64_t start_ns;
    char stats_path[64]; /* for faultless's own statistics; "": none */
};

/* One line on standard error: rewritten in place on a terminal, else one for each run. */
static void show_progress(const struct fl_comparison *c, const struct progress *p, unsigned round,
                          const char *name)
{
    fprintf(stderr, "%s[%u/%u] round %u of %u: %s", p->is_in_place ? "\r\033[K" : "", p->order + 1,
            c->runs_planned, round + 1, c->plan.rounds, name);
    if (!p->is_in_place) {
        fputc('\n', stderr);
    } else if (p->order > 0) {
        double passed_s = (double)(fl_proc_now_ns() - p->start_ns) / 1e9;
        double left_s = passed_s / p->order * (c->runs_planned - p->order);
        fprintf(stderr, left_s < 120 ? ", about %.0f s left" : ", about %.0f min left",
                left_s < 120 ? left_s : left_s / 60);
    }
    fflush(stderr);
}

static void end_progress(const struct progress *p)
{
    if (p->is_in_place) {
        fputs("\r\033[K", stderr);
    }
}

/* Show the last lines of what a run printed. */
static void show_tail(const char *title, const struct fl_tail *tail)
{
    enum { FL_LINES = 12 };
    const char *at = tail->text + tail->len;
    for (int lines = 0; at > tail->text; at--) {
        lines += at[-1] == '\n' && at != tail->text + tail->len;
        if (lines == FL_LINES) {
            break;
        }
    }
    if (tail->len > 0) {
        fprintf(stderr, "%s:\n%s%s", title, at, tail->text[tail->len - 1] == '\n' ? "" : "\n");
    }
}

static void show_failure(const struct fl_comparison *c, const char *name, const struct fl_run *run)
{
    if (run->is_timed_out) {
        fprintf(stderr, "faultstat: %s: ended after %g s, the time limit\n", name,
                c->plan.timeout_s);
    } else if (run->exit_status != 0) {
        fprintf(stderr, "faultstat: %s: the run failed with exit status %d\n", name,
                run->exit_status);
    }
}

/* Run a command of our own between runs. Returns 0, -EINTR, -EPROTO when it failed, or -errno. */
static int run_between(char *const argv[], const char *what)
{
    static struct fl_watch watch; /* static for its size */
    struct fl_env env = {"LD_PRELOAD", NULL};
    struct fl_watch_spec spec = {
        .spawn = {.argv = argv, .env = &env, .env_count = 1, .output = FL_OUTPUT_PIPES}};
    int rc = fl_watch_run(&watch, &spec);
    rc = rc != 0 ? rc : watch.exec_error != 0 ? watch.exec_error : 0;
    rc = rc == 0 && watch.interrupt != 0 ? -EINTR : rc;
    if (rc == 0 && fl_watch_exit_status(&watch) != 0) {
        show_tail(what, &watch.out);
        show_tail(what, &watch.err);
        fprintf(stderr, "faultstat: %s failed with exit status %d\n", what,
                fl_watch_exit_status(&watch));
        rc = -EPROTO;
    } else if (rc != 0 && rc != -EINTR) {
        fprintf(stderr, "faultstat: %s: %s\n", what, strerror(-rc));
    }
    fl_watch_clear(&watch);
    return rc;
}

/* What is to be done before each run. */
static int prepare(const struct fl_run_plan *plan)
{
    static char shell[] = "/bin/sh";
    static char flag[] = "-c";
    static char self[] = "/proc/self/exe";
    static char warm_name[] = "warm";
    char number[16];
    int rc = 0;
    snprintf(number, sizeof(number), "%u", plan->warm_mib);
    if (plan->prepare != NULL) {
        rc = run_between((char *[]){shell, flag, plan->prepare, NULL}, "--prepare");
    }
    if (rc == 0 && plan->warm_mib != 0) {
        rc = run_between((char *[]){self, warm_name, number, NULL}, "--warm");
    }
    if (rc == 0 && (rc = fl_input_rewind(&plan->input)) != 0) {
        fprintf(stderr, "faultstat: the input: %s\n", strerror(-rc));
    }
    return rc;
}

static void note_run(struct fl_comparison *c, const struct progress *p,
                     const struct fl_watch *watch, const char *name, struct fl_run *run)
{
    run->is_done = true;
    run->is_timed_out = watch->is_timed_out;
    run->exit_status = fl_watch_exit_status(watch);
    run->served = watch->served;
    run->nodes = watch->peaks.nodes;
    run->steps = fl_steps_count(&watch->steps);
    run->reported = fl_json_reported(watch->out.text);
    run->library = fl_library_stats_take(p->stats_path);
    if (c->runs_done++ == 0) {
        c->repeats = fl_repeats_find(watch->out.text, c->repeats_pattern);
    }
    if (c->plan.verbose || run->exit_status != 0 || run->is_timed_out) {
        end_progress(p);
        show_tail(name, &watch->out);
        show_tail(name, &watch->err);
        show_failure(c, name, run);
    }
}

/* Run the command once under one peer. Returns 0, -EINTR when we were told to stop, -errno. */
static int run_once(struct fl_comparison *c, const struct progress *p, const struct fl_peer *peer,
                    struct fl_run *run)
{
    static struct fl_watch watch; /* static for its size */
    const struct fl_run_plan *plan = &c->plan;
    struct fl_watch_spec spec = {
        .spawn = {.argv = plan->command,
                  .env = peer->env,
                  .env_count = peer->env_count,
                  .output = plan->step_regex != NULL ? FL_OUTPUT_TERMINAL : FL_OUTPUT_PIPES,
                  .input_fd = plan->input.fd},
        .with_nodes = plan->with_nodes,
        .interval_ms = plan->interval_ms,
        .timeout_s = plan->timeout_s,
        .step_regex = plan->step_regex,
        .library = peer->is_any ? NULL : peer->library,
    };
    int rc = prepare(plan);
    if (rc != 0) {
        return rc;
    }
    rc = fl_watch_run(&watch, &spec);
    rc = rc != 0 ? rc : watch.exec_error;
    rc = rc != 0 ? rc : fl_metrics_get(&watch, plan->warmup, run->value);
    if (rc != 0) {
        end_progress(p);
        if (watch.exec_error != 0) {
            fl_say_not_run("faultstat", plan->command[0], -watch.exec_error);
        } else {
            fprintf(stderr, "faultstat: %s: %s\n", plan->command[0], strerror(-rc));
        }
    } else if (watch.interrupt != 0) {
        rc = -EINTR;
    } else {
        note_run(c, p, &watch, peer->name, run);
    }
    fl_watch_clear(&watch);
    return rc;
}

/* The signals that stop a comparison. While they are blocked they wait; see was_told_to_stop. */
static void stop_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGQUIT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
}

static bool was_told_to_stop(void)
{
    const struct timespec at_once = {0, 0};
    sigset_t set;
    stop_signals(&set);
    return sigtimedwait(&set, NULL, &at_once) > 0;
}

/* Did the command fail under every allocator in the first round? Then it is the command that
 * fails. */
static bool fails_always(const struct fl_comparison *c, const size_t *present, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct fl_run *run = &c->run[present[i] * c->plan.rounds];
        if (run->exit_status == 0 && !run->is_timed_out) {
            return false;
        }
    }
    return true;
}

static int run_rounds(struct fl_comparison *c, struct progress *p, const size_t *present,
                      unsigned count)
{
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        for (unsigned turn = 0; turn < count; turn++) {
            size_t peer = present[(round + turn) % count];
            struct fl_run *run = &c->run[peer * c->plan.rounds + round];
            show_progress(c, p, round, c->peers.peer[peer].name);
            run->order = p->order;
            int rc = was_told_to_stop() ? -EINTR : run_once(c, p, &c->peers.peer[peer], run);
            if (rc != 0) {
                return rc;
            }
            p->order++;
        }
        if (round == 0 && c->plan.rounds > 1 && fails_always(c, present, count)) {
            end_progress(p);
            fputs("faultstat: the command failed under every allocator; it is not run again\n",
                  stderr);
            return 0;
        }
    }
    return 0;
}

int fl_comparison_run(struct fl_comparison *c)
{
    size_t present[FL_PEERS_MAX];
    unsigned count = 0;
    sigset_t stop;
    struct progress p = {.is_in_place = fl_text_can_rewrite(stderr), .start_ns = fl_proc_now_ns()};
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.peer[i].is_present) {
            present[count++] = i;
        }
    }
    c->runs_planned = count * c->plan.rounds;
    fl_library_stats_create(p.stats_path);
    fl_peers_want_stats(&c->peers, p.stats_path);
    stop_signals(&stop);
    sigprocmask(SIG_BLOCK, &stop, NULL); /* for good: what was measured will be shown */
    int rc = run_rounds(c, &p, present, count);
    c->is_interrupted = rc == -EINTR;
    end_progress(&p);
    if (p.stats_path[0] != '\0') {
        unlink(p.stats_path);
    }
    return rc;
}
