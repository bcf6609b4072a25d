/* `faultstat record`: where a command's page faults come from. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"
#include "faultstat/options.h"
#include "faultstat/rank.h"
#include "faultstat/record/save.h"
#include "faultstat/report/report.h"
#include "faultstat/sink.h"

#include "launcher/find.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FL_HOOK_MS = 20,
    FL_EVERY = 199 /* a prime: no stride of a loop */,
    FL_STACK_LEN = 16384,
    FL_STACK_MOST = 65528
};

struct options {
    struct fl_rings_spec rings;
    const char *output;
    int warmup;
    bool no_perf;
    bool quiet;
    const char *step_regex; /* NULL: steps by marks */
    regex_t regex;
    char **command;
};

static const char doc[] =
    "Run CMD and record where its page faults come from: by call stack, kind and mapping, over "
    "time "
    "and by step. Works under any allocator.\vFILE (default faults.json) is for faultstat report; "
    "the summary goes to standard error. In FILE, %r is the rank in a parallel job, %h the host, "
    "%p "
    "the process id; in a job of several ranks a FILE without %r or %p gets .RANK at its end. "
    "Where perf events are refused, faults are counted by "
    "thread "
    "from /proc, without stacks. The exit status is that of CMD, 128 + N when signal N ended it, "
    "125 when faultstat itself failed.";

static const struct argp_option option[] = {
    {"output", 'o', "FILE", 0, "Write the recording to FILE; '-' is standard output", 0},
    {"every", 'c', "N", 0, "Take the stack of each Nth fault (default 199; 1: of all)", 0},
    {"stack", 's', "BYTES", 0, "Bytes of stack a sample (default 16384)", 0},
    {"steps-warmup", 'w', "N", 0, "Leave out the first N steps (default: a third, at least 3)", 0},
    {"copies", 'C', NULL, 0,
     "Tell copies of pages after a fork apart; adds work to each fault of CMD", 0},
    {FL_OPTION_STEP_REGEX},
    {"no-perf", 'P', NULL, 0, "Count by /proc, as where perf events are refused", 0},
    {"quiet", 'q', NULL, 0, "No summary", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'o':
        o->output = arg;
        return 0;
    case 'c':
        o->rings.every = (uint64_t)fl_options_number(state, arg, 1, 1000000000);
        return 0;
    case 's':
        o->rings.stack_len = (uint32_t)fl_options_number(state, arg, 256, FL_STACK_MOST) / 8 * 8;
        return 0;
    case 'C':
        o->rings.copies = true;
        return 0;
    case 'w':
        o->warmup = (int)fl_options_number(state, arg, 0, 1000000);
        return 0;
    case 'r':
        o->step_regex = arg;
        fl_options_regex(state, arg, &o->regex);
        return 0;
    case 'P':
        o->no_perf = true;
        return 0;
    case 'q':
        o->quiet = true;
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

/* NUMA hint faults of the whole system since boot. */
static uint64_t read_numa_hints(void)
{
    char text[16384];
    return fl_proc_read_text("/proc/vmstat", text, sizeof(text)) > 0
               ? fl_proc_find_number(text, "numa_hint_faults ", 0)
               : 0;
}

static int save(struct fl_recorder *recorder, const struct fl_watch *watch, const struct options *o,
                uint64_t numa_hints, struct fl_sink *sink)
{
    struct fl_save_spec spec = {o->command, o->warmup, numa_hints};
    /* libdw asks servers on the network for debug information; the command has ended, its
     * environment is not touched. */
    setenv("DEBUGINFOD_URLS", "", 1);
    json_t *root = fl_save_json(recorder, watch, &spec);
    if (root == NULL) {
        return -ENOMEM;
    }
    fl_json_print(root, fl_sink_begin(sink));
    int rc = fl_sink_end(sink);
    if (rc == 0 && !o->quiet) {
        fl_report_top(root, 10, stderr);
        if (strcmp(o->output, "-") != 0) {
            size_t stem = strlen(o->output);
            stem -= stem > 5 && strcmp(o->output + stem - 5, ".json") == 0 ? 5 : 0;
            fprintf(stderr, "\nto see it in a browser: faultstat report --html %.*s.html %s\n",
                    (int)stem, o->output, o->output);
        }
    }
    json_decref(root);
    return rc;
}

/* Run the command and write what was found to the sink. Returns 0; -errno, which is said. */
static int record(struct fl_recorder *recorder, struct fl_watch *watch, const struct options *o,
                  struct fl_sink *sink)
{
    struct fl_watch_hook hook = {fl_recorder_look, recorder, FL_HOOK_MS};
    struct fl_watch_spec spec = {
        .spawn = {.argv = o->command}, .interval_ms = FL_INTERVAL_MS, .hook = &hook};
    if (o->step_regex != NULL) {
        spec.spawn.output = FL_OUTPUT_TERMINAL;
        spec.step_regex = &o->regex;
        spec.forward = true;
    }
    int rc = fl_recorder_open(recorder, o->no_perf ? NULL : &o->rings);
    uint64_t numa_hints = read_numa_hints();
    rc = rc != 0 ? rc : fl_watch_run(watch, &spec);
    if (rc != 0) {
        fprintf(stderr, "faultstat: %s\n", strerror(-rc));
        return rc;
    }
    if (watch->exec_error != 0) {
        fl_say_not_run("faultstat", o->command[0], -watch->exec_error);
        return 0;
    }
    fl_recorder_finish(recorder, watch);
    return save(recorder, watch, o, read_numa_hints() - numa_hints, sink);
}

int fl_record_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, fl_command_help,
                                     NULL,   NULL};
    static struct fl_recorder recorder; /* static for their size */
    static struct fl_watch watch;
    static char path[PATH_MAX];
    struct fl_sink sink;
    struct options o = {
        .rings = {.every = FL_EVERY, .stack_len = FL_STACK_LEN},
        .output = "faults.json",
        .warmup = FL_WARMUP_DEFAULT,
    };
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    if (!fl_rank_path(o.output, path) || fl_sink_open(&sink, path) != 0) {
        return FL_EXIT_OWN;
    }
    o.output = path;
    int rc = record(&recorder, &watch, &o, &sink);
    int status = rc == 0 ? fl_watch_exit_status(&watch) : FL_EXIT_OWN;
    fl_sink_drop(&sink);
    fl_recorder_close(&recorder);
    fl_watch_clear(&watch);
    if (o.step_regex != NULL) {
        regfree(&o.regex);
    }
    return status;
}
