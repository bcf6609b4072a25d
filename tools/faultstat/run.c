/* `faultstat run`: one command, its figures as text or JSON. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct options {
    bool json;
    bool with_nodes;
    const char *output; /* NULL: standard error */
    int warmup;
    unsigned interval_ms;
    char **command;
};

static const char doc[] =
    "Run CMD and count its page faults, time and memory; for a program that marks its steps "
    "(faultless/step.h), for each step.\vThe figures go to standard error, or to FILE; '-' is "
    "standard output. The exit status is that of CMD, 128 + N when signal N ended it, 125 when "
    "faultstat itself failed.";

static const struct argp_option option[] = {
    {"json", 'j', NULL, 0, "JSON instead of text", 0},
    {"output", 'o', "FILE", 0, "Write the figures to FILE", 0},
    {"warmup", 'w', "N", 0, "Steps left out of the medians (default: a third, at least 3)", 0},
    {"nodes", 'N', NULL, 0, "Read on which nodes memory lies, on a machine with one node too", 0},
    {"interval", 'i', "MS", 0, "Sampling interval (default 50); 0: at step marks only", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    char *end = NULL;
    long number = key == 'w' || key == 'i' ? strtol(arg, &end, 10) : 0;
    if (end != NULL && (*end != '\0' || end == arg || number < 0 || number > 1000000)) {
        argp_error(state, "'%s' is no number between 0 and 1000000", arg);
        return EINVAL;
    }
    switch (key) {
    case 'j':
        o->json = true;
        return 0;
    case 'N':
        o->with_nodes = true;
        return 0;
    case 'o':
        o->output = arg;
        return 0;
    case 'w':
        o->warmup = (int)number;
        return 0;
    case 'i':
        o->interval_ms = (unsigned)number;
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
        fprintf(
            f,
            "  %-24s %12.0f   taken by instructions%s; the rest by system calls such as madvise\n",
            "perf minor faults", (double)w->perf_minor, w->perf_user_only ? " in user mode" : "");
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
    }
    if (w->peaks.nodes.count > 0) {
        fl_nodes_print(&w->peaks.nodes, f);
    }
    fprintf(f, "  %-24s %12llu   fallback %llu, split pages %llu, split mappings %llu\n",
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
    fprintf(f, "  %-24s %12.1f\n", "fl-* minor faults/step", s.helper_minor_mean);
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
    fprintf(f, "\nfaultstat: %s", o->command[0]);
    for (char **arg = o->command + 1; *arg != NULL; arg++) {
        fprintf(f, " %s", *arg);
    }
    fprintf(f, "\n\n  %-24s %12.3f s\n", "wall", v[FL_METRIC_WALL_S]);
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
}

static int write_text(const struct fl_watch *w, const struct options *o, const double *v)
{
    bool is_stdout = o->output != NULL && strcmp(o->output, "-") == 0;
    FILE *f = o->output == NULL ? stderr : is_stdout ? stdout : fopen(o->output, "we");
    if (f == NULL) {
        return -errno;
    }
    errno = 0;
    print_text(f, w, o, v);
    bool is_bad = ferror(f) != 0;
    is_bad = (f == stderr || is_stdout ? fflush(f) : fclose(f)) != 0 || is_bad;
    return is_bad ? (errno != 0 ? -errno : -EIO) : 0;
}

static int write_json(const struct fl_watch *w, const struct options *o, const double *v)
{
    json_t *root = fl_json_metrics(v);
    json_object_set_new(root, "schema", json_integer(FL_JSON_SCHEMA));
    json_object_set_new(root, "command", fl_json_command(o->command));
    json_object_set_new(root, "exit", json_integer(fl_watch_exit_status(w)));
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
    int rc =
        root != NULL ? fl_json_write(root, o->output != NULL ? o->output : "/dev/stderr") : -ENOMEM;
    json_decref(root);
    return rc;
}

int fl_run_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, NULL, NULL, NULL};
    static struct fl_watch watch; /* static for its size */
    struct options o = {.warmup = FL_WARMUP_DEFAULT, .interval_ms = FL_INTERVAL_MS};
    double value[FL_METRIC_COUNT];
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    struct fl_watch_spec spec = {.argv = o.command,
                                 .use_perf = true,
                                 .with_nodes = o.with_nodes || fl_nodes_online() > 1,
                                 .interval_ms = o.interval_ms};
    int rc = fl_watch_run(&watch, &spec);
    if (rc == 0 && watch.exec_error != 0) {
        fprintf(stderr, "faultstat: %s: %s\n", o.command[0], strerror(-watch.exec_error));
    } else {
        rc = rc != 0 ? rc : fl_metrics_get(&watch, o.warmup, value);
        rc = rc != 0 ? rc : (o.json ? write_json : write_text)(&watch, &o, value);
    }
    int status = rc == 0 ? fl_watch_exit_status(&watch) : FL_EXIT_OWN;
    if (rc != 0) {
        fprintf(stderr, "faultstat: %s\n", strerror(-rc));
    }
    fl_watch_clear(&watch);
    return status;
}
