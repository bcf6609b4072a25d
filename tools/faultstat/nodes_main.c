/* `faultstat nodes`: where the memory of running processes lies. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"
#include "faultstat/nodes.h"
#include "faultstat/options.h"
#include "faultstat/proc.h"
#include "faultstat/sink.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *json; /* a file; NULL: text */
    char **pid;       /* texts; ends with NULL */
};

static const char doc[] =
    "Print on which NUMA nodes the memory of processes lies, and how much of it is remote.\v"
    "JSON takes the place of the text. Exit status 1: a process could not be read; 125: faultstat "
    "itself failed.";

static const struct argp_option option[] = {
    {FL_OPTION_JSON},
    {0},
};

/* 0: it is no process id. */
static pid_t parse_pid(const char *text)
{
    char *end;
    errno = 0;
    long pid = strtol(text, &end, 10);
    return errno == 0 && *end == '\0' && end != text && pid > 0 && pid <= INT32_MAX ? (pid_t)pid
                                                                                    : 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'j':
        o->json = fl_options_file(state, arg);
        if (parse_pid(arg) != 0) {
            argp_error(state, "--json=FILE names a file, and '%s' is a process", arg);
        }
        return 0;
    case ARGP_KEY_ARGS:
        o->pid = state->argv + state->next;
        for (char **p = o->pid; *p != NULL; p++) {
            if (parse_pid(*p) == 0) {
                argp_error(state, "'%s' is no process id", *p);
            }
        }
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no process given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void set_share(json_t *object, const char *key, double pct)
{
    if (!isnan(pct)) {
        json_object_set_new(object, key, json_real(nearbyint(pct * 1e4) / 1e4));
    }
}

static json_t *process_json(pid_t pid, const char *name, const struct fl_nodes *nodes)
{
    json_t *object = json_pack("{s:i, s:o, s:o}", "pid", (int)pid, "name", fl_json_text(name),
                               "nodes", fl_nodes_json(nodes));
    set_share(object, "remote_pct", fl_nodes_remote_pct(nodes));
    set_share(object, "remote_if_shared_pct", fl_nodes_shared_pct(nodes));
    return object;
}

int fl_nodes_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "PID...", doc, fl_command_help, NULL, NULL};
    struct options o = {.json = NULL};
    struct fl_sink sink = {0};
    int status = 0;
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (o.json != NULL && fl_sink_open(&sink, o.json) != 0) {
        return FL_EXIT_OWN;
    }
    json_t *array = json_array();
    for (char **p = o.pid; *p != NULL; p++) {
        struct fl_nodes nodes;
        struct fl_usage usage;
        char name[16] = "";
        pid_t pid = parse_pid(*p);
        int rc = fl_nodes_read(pid, &nodes);
        rc = rc != 0 ? rc : fl_proc_read_usage(pid, 0, &usage, name);
        if (rc != 0) {
            fprintf(stderr, "faultstat: %s: %s\n", *p, strerror(-rc));
            status = FL_EXIT_SOME_FAILED;
        } else if (o.json != NULL) {
            json_array_append_new(array, process_json(pid, name, &nodes));
        } else {
            printf("%s%d %s\n", p == o.pid ? "" : "\n", (int)pid, name);
            fl_nodes_print(&nodes, stdout);
        }
    }
    bool is_written = fflush(stdout) == 0;
    if (o.json != NULL) {
        fl_json_print(array, fl_sink_begin(&sink));
        is_written = fl_sink_end(&sink) == 0;
    }
    json_decref(array);
    return is_written ? status : FL_EXIT_OWN;
}
