/* `faultstat run`: one command, its figures as text or JSON. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"
#include "faultstat/options.h"
#include "faultstat/rank.h"
#include "faultstat/sink.h"
#include "faultstat/text.h"

#include "launcher/find.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
    bool with_nodes;
    const char *json;       /* a file; NULL: no JSON */
    const char *output;     /* the text's; NULL: standard error, where there is no JSON */
    const char *step_regex; /* NULL: none */
    regex_t regex;
    double timeout_s;
    int warmup;
    unsigned interval_ms;
    char **command;
};

static const char doc[] =
    "Run CMD and count its page faults, time and memory; for a program that marks its steps "
    "(faultless/step.h), for each step.\vThe text goes to standard error, or to --output's FILE; "
    "with --json there is none unless --output names a FILE. '-' is standard output. In FILE, %r "
    "is the rank in a parallel job, %h the host, %p the process id; "
    "in a job of several ranks a FILE without %r or %p gets .RANK at its end. The exit status is "
    "that of CMD, 128 + N when signal N ended it, 125 when "
    "faultstat itself failed.";

static const struct argp_option option[] = {
    {FL_OPTION_JSON},
    {"output", 'o', "FILE", 0, "Write the text to FILE", 0},
    {"steps-warmup", 'w', "N", 0, "Leave out the first N steps (default: a third, at least 3)", 0},
    {"nodes", 'N', NULL, 0, "Read on which nodes memory lies, on a machine with one node too", 0},
    {"interval", 'i', "MS", 0, "Sampling interval (default 50); 0: at step marks only", 0},
    {FL_OPTION_STEP_REGEX},
    {"timeout", 't', "SECONDS", 0, "End CMD and its descendants after so long", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'j':
        o->json = fl_options_file(state, arg);
        return 0;
    case 'N':
        o->with_nodes = true;
        return 0;
    case 'o':
        o->output = fl_options_file(state, arg);
        return 0;
    case 'w':
        o->warmup = (int)fl_options_number(state, arg, 0, 1000000);
        return 0;
    case 'i':
        o->interval_ms = (unsigned)fl_options_number(state, arg, 0, 1000000);
        return 0;
    case 'r':
        o->step_regex = arg;
        fl_options_regex(state, arg, &o->regex);
        return 0;
    case 't':
        o->timeout_s = fl_options_seconds(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        o->command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static double per_second(double count, double wall_s)
{
    return wall_s > 0 ? count / wall_s : 0;
}

static void print_faults(FILE *f, const struct fl_watch *w, const double *v)
{
    fprintf(f, "  %-24s %12.0f   %12.0f/s\n", "minor faults", v[FL_METRIC_FAULTS],
            per_second(v[FL_METRIC_FAULTS], w->wall_s));
    fprintf(f, "  %-24s %12.0f   %12.0f/s\n", "  of threads fl-*", v[FL_METRIC_HELPER_FAULTS],
            per_second(v[FL_METRIC_HELPER_FAULTS], w->wall_s));
    fprintf(f, "  %-24s %12.0f   %12.0f/s\n", "major faults", v[FL_METRIC_MAJOR_FAULTS],
            per_second(v[FL_METRIC_MAJOR_FAULTS], w->wall_s));
    if (w->perf_error != 0) {
        fprintf(f, "  %-24s %12s   (%s)\n", "perf minor faults", "not permitted",
                strerror(-w->perf_error));
    } else {
        fprintf(f, "  %-24s %12.0f   by instructions%s\n", "perf minor faults",
                (double)w->perf_minor,
                w->perf_user_only ? " in user mode" : "; else by system calls");
    }
}

static void print_memory(FILE *f, const struct fl_watch *w, const double *v)
{
    fprintf(f, "  %-24s %12.1f MiB\n", "peak RSS", v[FL_METRIC_PEAK_MIB]);
    if (isnan(v[FL_METRIC_HUGE_PEAK_MIB])) {
        fprintf(f, "  %-24s %12s   (ended before the first sample)\n", "AnonHugePages peak", "-");
    } else {
        fprintf(f, "  %-24s %12.1f MiB   %llu samples\n", "AnonHugePages peak",
                v[FL_METRIC_HUGE_PEAK_MIB], (unsigned long long)w->peaks.samples);
        fprintf(f, "  %-24s %12.1f %%     of anonymous memory at its peak\n", "huge-page share",
                isnan(v[FL_METRIC_HUGE_PCT]) ? 0.0 : v[FL_METRIC_HUGE_PCT]);
        fprintf(f, "  %-24s %12.1f MiB   over time, all processes\n", "mean memory",
                v[FL_METRIC_MEAN_MIB]);
    }
    if (w->processes > 1) {
        fprintf(f, "  %-24s %12.1f MiB   %zu processes, shared pages divided\n",
                "peak of all processes", isnan(v[FL_METRIC_PSS_MIB]) ? 0.0 : v[FL_METRIC_PSS_MIB],
                w->processes);
    }
    if (w->peaks.nodes.count > 0) {
        fl_nodes_print(&w->peaks.nodes, f);
    }
    fprintf(f, "  %-24s %12llu   fallback %llu, split %llu, mappings %llu\n",
            "THP faults, system-wide", (unsigned long long)w->thp.fault_alloc,
            (unsigned long long)w->thp.fault_fallback, (unsigned long long)w->thp.split_page,
            (unsigned long long)w->thp.split_pmd);
}

static void print_steps(FILE *f, const struct fl_watch *w, int warmup, const double *v)
{
    struct fl_steps_summary s;
    if (fl_steps_summarise(&w->steps, warmup, &s) != 0) {
        return;
    }
    fprintf(f, "\n  %zu steps, the last %zu steady\n", s.steps, s.steady);
    fprintf(f, "  %-24s %12.2f ms    mean %.2f, least %.2f\n", "step, median", s.wall_ms_median,
            s.wall_ms_mean, s.wall_ms_min);
    fprintf(f, "  %-24s %12.0f       mean %.1f, most %.0f\n", "minor faults/step, median",
            s.minor_median, s.minor_mean, s.minor_max);
    fprintf(f, "  %-24s %12.1f\n", "fl-* faults/step, mean", s.helper_minor_mean);
    fprintf(f, "  %-24s %12.1f ms    user %.1f ms\n", "sys/step, mean", s.sys_ms_mean,
            s.user_ms_mean);
    fprintf(f, "  %-24s %12.2f ms    minor faults %llu\n", "first step", s.first.wall_ms,
            (unsigned long long)s.first.minor);
    fprintf(f, "  %-24s %12.1f MiB   base %.1f MiB\n", "peak RSS above base",
            v[FL_METRIC_PEAK_ABOVE_MIB], v[FL_METRIC_BASE_RSS_MIB]);
    if (w->steps.foreign != 0) {
        fprintf(f, "  %llu marks of other processes ignored\n",
                (unsigned long long)w->steps.foreign);
    }
}

static void print_text(FILE *f, const struct fl_watch *w, const struct options *o, const double *v)
{
    char *command = fl_text_command(o->command);
    fprintf(f, "\nfaultstat: %s\n\n", command != NULL ? command : "");
    free(command);
    if (w->is_timed_out) {
        fprintf(f, "  ended after %g s, its time limit\n", o->timeout_s);
    }
    fprintf(f, "  %-24s %12.3f s\n", "wall", v[FL_METRIC_WALL_S]);
    fprintf(f, "  %-24s %12.3f s     user %.3f s\n", "sys", v[FL_METRIC_SYS_S],
            v[FL_METRIC_USER_S]);
    print_faults(f, w, v);
    print_memory(f, w, v);
    fprintf(f, "  %-24s %12.0f   involuntary %.0f\n", "context switches", v[FL_METRIC_SWITCHES],
            v[FL_METRIC_FORCED_SWITCHES]);
    if (w->helper_lost != 0) {
        fprintf(f, "  more than %d threads fl-*: some counted as the application's\n",
                FL_THREADS_MAX);
    }
    print_steps(f, w, o->warmup, v);
    if (o->step_regex != NULL && w->steps.count < 2) {
        fprintf(f, "\n  no step: %zu line%s of the output matched '%s'\n", w->steps.count,
                w->steps.count == 1 ? "" : "s", o->step_regex);
    }
}

static json_t *run_json(const struct fl_watch *w, const struct options *o, const double *v)
{
    struct fl_rank rank;
    json_t *root = fl_json_metrics(v);
    fl_rank_get(&rank);
    json_object_set_new(root, "schema", json_integer(FL_JSON_SCHEMA));
    json_object_set_new(root, "kind", json_string("run"));
    json_object_set_new(root, "command", fl_json_command(o->command));
    json_object_set_new(root, "host", fl_json_text(rank.host));
    if (rank.is_known) {
        json_object_set_new(root, "rank", json_integer(rank.rank));
    }
    json_object_set_new(root, "exit", json_integer(fl_watch_exit_status(w)));
    json_object_set_new(root, "timed_out", json_boolean(w->is_timed_out));
    json_object_set_new(root, "thp_split_pmd", json_integer((json_int_t)w->thp.split_pmd));
    json_object_set_new(root, "perf",
                        json_string(w->perf_error != 0  ? "not permitted"
                                    : w->perf_user_only ? "user mode only"
                                                        : "permitted"));
    json_object_set_new(root, "rollup_samples", json_integer((json_int_t)w->peaks.samples));
    json_object_set_new(root, "foreign_marks", json_integer((json_int_t)w->steps.foreign));
    if (w->peaks.nodes.count > 0) {
        json_object_set_new(root, "nodes", fl_nodes_json(&w->peaks.nodes));
    }
    json_object_set_new(root, "steps", fl_json_steps(&w->steps));
    return root;
}

/* Where figures go; a form that is not wanted has no file. */
struct output {
    struct fl_sink text, json;
    char text_path[PATH_MAX], json_path[PATH_MAX];
};

/* `pattern` NULL: this form is not wanted. */
static bool open_form(struct fl_sink *sink, const char *pattern, char path[PATH_MAX])
{
    return pattern == NULL || (fl_rank_path(pattern, path) && fl_sink_open(sink, path) == 0);
}

static bool open_output(struct output *out, const struct options *o)
{
    const char *text = o->output != NULL ? o->output : o->json == NULL ? "/dev/stderr" : NULL;
    return open_form(&out->text, text, out->text_path) &&
           open_form(&out->json, o->json, out->json_path);
}

static int write_figures(struct output *out, const struct fl_watch *w, const struct options *o)
{
    double value[FL_METRIC_COUNT];
    int rc = fl_metrics_get(w, o->warmup, value);
    if (rc != 0) {
        fprintf(stderr, "faultstat: %s\n", strerror(-rc));
        return rc;
    }
    if (out->text.file != NULL) {
        print_text(fl_sink_begin(&out->text), w, o, value);
        rc = fl_sink_end(&out->text);
    }
    if (out->json.file != NULL && rc == 0) {
        json_t *root = run_json(w, o, value);
        fl_json_print(root, fl_sink_begin(&out->json));
        json_decref(root);
        rc = fl_sink_end(&out->json);
    }
    return rc;
}

static int watch_command(struct fl_watch *watch, const struct options *o)
{
    struct fl_watch_spec spec = {
        .spawn = {.argv = o->command, .use_perf = true},
        .with_nodes = o->with_nodes || fl_nodes_online() > 1,
        .interval_ms = o->interval_ms,
        .timeout_s = o->timeout_s,
    };
    if (o->step_regex != NULL) {
        spec.spawn.output = FL_OUTPUT_TERMINAL;
        spec.step_regex = &o->regex;
        spec.forward = true;
    }
    int rc = fl_watch_run(watch, &spec);
    rc = rc != 0 ? rc : watch->exec_error;
    if (watch->exec_error != 0) {
        fl_say_not_run("faultstat", o->command[0], -watch->exec_error);
    } else if (rc != 0) {
        fprintf(stderr, "faultstat: %s: %s\n", o->command[0], strerror(-rc));
    }
    return rc;
}

int fl_run_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, fl_command_help,
                                     NULL,   NULL};
    static struct fl_watch watch; /* static for their size */
    static struct output out;
    struct options o = {.warmup = FL_WARMUP_DEFAULT, .interval_ms = FL_INTERVAL_MS};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    bool is_open = open_output(&out, &o);
    int rc = is_open ? watch_command(&watch, &o) : -EIO;
    int status = rc == 0 || watch.exec_error != 0 ? fl_watch_exit_status(&watch) : FL_EXIT_OWN;
    if (rc == 0 && write_figures(&out, &watch, &o) != 0) {
        status = FL_EXIT_OWN;
    }
    fl_sink_drop(&out.text);
    fl_sink_drop(&out.json);
    fl_watch_clear(&watch);
    if (o.step_regex != NULL) {
        regfree(&o.regex);
    }
    return status;
}
