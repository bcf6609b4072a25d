/* `faultstat compare`: one command under several allocators. This file has its options and the
 * order of things: what can be refused is refused before anything runs. */
#include "faultstat/faultstat.h"
#include "faultstat/options.h"
#include "faultstat/show.h"
#include "faultstat/sink.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_LISTS_MAX = 24 };
enum { FL_KEY_INPUT = 256, FL_KEY_PREPARE, FL_KEY_CSV, FL_KEY_MARKDOWN };
enum form { FL_FORM_JSON, FL_FORM_CSV, FL_FORM_MARKDOWN, FL_FORM_COUNT };

struct options {
    char *list[FL_LISTS_MAX];
    size_t lists;
    const char *path[FL_FORM_COUNT]; /* NULL: none; "-": standard output */
    struct fl_sink sink[FL_FORM_COUNT];
    const char *input; /* NULL: ours */
    regex_t regex;
    struct fl_comparison *comparison;
};

static const char doc[] =
    "Run CMD under several allocators, interleaved, and print the medians and a verdict.\v"
    "LIST is NAME,NAME,... of "
#define X(name, ...) name ", "
#define TUNED(name, ...) name ", " name "-tuned, "
#include "faultstat/replacements.def"
#undef X
#undef TUNED
    "own (default: " FL_PEERS_DEFAULT
    "). own is what the program has by itself; NAME-tuned has the "
    "strongest settings. NAME=/path/lib.so names another one, "
    "NAME=BASE,ENV=VALUE,... a variant; each takes a -a of its own. Allocators that are absent are "
    "named and skipped. Standard input that is a file or a pipe is replayed to each run. A last "
    "line 'SUMMARY {json}' of CMD's output goes into the JSON. Exit status 1: a run failed, or an "
    "allocator was not loaded; 125: faultstat itself; 130: interrupted.";

static const struct argp_option option[] = {
    {"allocators", 'a', "LIST", 0, "Allocators to compare; may be repeated", 0},
    {"rounds", 'n', "N", 0, "Runs under each allocator (default 10; a verdict needs 5)", 0},
    {"warm", 'm', "MIB", 0, "Touch and free so much memory before each run (default 0)", 0},
    {"steps-warmup", 'w', "N", 0, "Leave out the first N steps (default: a third, at least 3)", 0},
    {"env", 'e', "NAME=VALUE", 0, "Set a variable for all runs; may be repeated", 0},
    {"input", FL_KEY_INPUT, "FILE", 0, "Standard input of each run", 0},
    {"prepare", FL_KEY_PREPARE, "CMD", 0, "Run CMD by sh before each run", 0},
    {"timeout", 't', "SECONDS", 0, "End a run and its descendants after so long", 0},
    {"step-regex", 'r', "RE", 0, "Each line of CMD's output that matches ends a step", 0},
    {"interval", 'i', "MS", 0, "Sampling interval (default 50); 0: at step marks only", 0},
    {"json", 'j', "FILE", 0, "Write the whole record to FILE; '-': to standard output", 0},
    {"csv", FL_KEY_CSV, "FILE", 0, "Write a line for each run to FILE, likewise", 0},
    {"markdown", FL_KEY_MARKDOWN, "FILE", 0, "Write the tables in Markdown to FILE, likewise", 0},
    {"nodes", 'N', NULL, 0, "Read on which nodes memory lies, on a machine with one node too", 0},
    {"verbose", 'v', NULL, 0, "Show the end of each run's output", 0},
    {0},
};

static void add_list(struct options *o, char *arg, struct argp_state *state)
{
    if (o->lists == FL_LISTS_MAX) {
        argp_error(state, "more than %d lists", FL_LISTS_MAX);
    } else {
        o->list[o->lists++] = arg;
    }
}

/* The options that say how each run is made. */
static error_t parse_plan(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    struct fl_run_plan *plan = &o->comparison->plan;
    switch (key) {
    case 'n':
        plan->rounds = (unsigned)fl_options_number(state, arg, 1, FL_ROUNDS_MAX);
        return 0;
    case 'm':
        plan->warm_mib = (unsigned)fl_options_number(state, arg, 0, 1 << 30);
        return 0;
    case 'w':
        plan->warmup = (int)fl_options_number(state, arg, 0, 1000000);
        return 0;
    case 'i':
        plan->interval_ms = (unsigned)fl_options_number(state, arg, 0, 1000000);
        return 0;
    case 't':
        plan->timeout_s = fl_options_seconds(state, arg);
        return 0;
    case 'r':
        fl_options_regex(state, arg, &o->regex);
        plan->step_regex = &o->regex;
        return 0;
    case FL_KEY_PREPARE:
        plan->prepare = arg;
        return 0;
    case 'N':
        plan->with_nodes = true;
        return 0;
    case 'v':
        plan->verbose = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'a':
        add_list(o, arg, state);
        return 0;
    case 'e':
        if (fl_peers_set_common(&o->comparison->peers, arg) != 0) {
            argp_error(state, "-e wants NAME=VALUE, at most %d times", FL_PEER_COMMON_MAX);
        }
        return 0;
    case FL_KEY_INPUT:
        o->input = arg;
        return 0;
    case 'j':
        o->path[FL_FORM_JSON] = fl_options_file(state, arg);
        return 0;
    case FL_KEY_CSV:
        o->path[FL_FORM_CSV] = fl_options_file(state, arg);
        return 0;
    case FL_KEY_MARKDOWN:
        o->path[FL_FORM_MARKDOWN] = fl_options_file(state, arg);
        return 0;
    case ARGP_KEY_ARG:
        o->comparison->plan.command = &state->argv[state->next - 1];
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return parse_plan(key, arg, state);
    }
}

/* Open all that will be written. */
static int open_sinks(struct options *o)
{
    int rc = 0;
    for (int i = 0; i < FL_FORM_COUNT && rc == 0; i++) {
        rc = o->path[i] != NULL ? fl_sink_open(&o->sink[i], o->path[i]) : 0;
    }
    return rc;
}

static void drop_sinks(struct options *o)
{
    for (int i = 0; i < FL_FORM_COUNT; i++) {
        fl_sink_drop(&o->sink[i]);
    }
}

static int write_form(struct options *o, enum form form, const struct fl_analysis *a)
{
    const struct fl_comparison *c = o->comparison;
    FILE *file = fl_sink_begin(&o->sink[form]);
    if (form == FL_FORM_JSON) {
        json_t *root = fl_show_json(c, a);
        fl_json_print(root, file);
        json_decref(root);
    } else if (form == FL_FORM_CSV) {
        fl_show_csv(c, file);
    } else {
        fl_show_markdown(c, a, file);
    }
    return fl_sink_end(&o->sink[form]);
}

static int report(struct options *o, const struct fl_analysis *a)
{
    bool is_stdout_taken = false;
    int rc = 0;
    for (int i = 0; i < FL_FORM_COUNT; i++) {
        is_stdout_taken |= o->path[i] != NULL && strcmp(o->path[i], "-") == 0;
    }
    fl_show_table(o->comparison, a, is_stdout_taken ? stderr : stdout);
    if (fflush(stdout) != 0) {
        rc = -errno;
        fprintf(stderr, "faultstat: standard output: %s\n", strerror(-rc));
    }
    for (int i = 0; i < FL_FORM_COUNT; i++) {
        int form_rc = o->path[i] != NULL ? write_form(o, (enum form)i, a) : 0;
        rc = rc != 0 ? rc : form_rc;
    }
    return rc;
}

static int add_peers(struct options *o)
{
    static char default_list[] = FL_PEERS_DEFAULT;
    struct fl_peers *peers = &o->comparison->peers;
    char error[320] = "";
    size_t present = 0;
    int rc = 0;
    if (o->lists == 0) {
        o->list[o->lists++] = default_list;
    }
    for (size_t i = 0; i < o->lists && rc == 0; i++) {
        rc = fl_peers_add(peers, o->list[i], error);
    }
    rc = rc != 0 ? rc : fl_peers_probe(peers, error);
    if (rc != 0) {
        fprintf(stderr, "faultstat: -a: %s\n", error[0] != '\0' ? error : strerror(-rc));
        return rc;
    }
    for (size_t i = 0; i < peers->count; i++) {
        present += peers->peer[i].is_present;
        if (!peers->peer[i].is_present) {
            fprintf(stderr, "faultstat: %s: not found, skipped (%s)\n", peers->peer[i].name,
                    peers->peer[i].absent_because);
        }
    }
    if (present == 0) {
        fputs("faultstat: none of the allocators is there\n", stderr);
    }
    return present > 0 ? 0 : -ENOENT;
}

/* The exit status of a comparison that ran to `rc`. */
static int exit_status(const struct fl_comparison *c, const struct fl_analysis *a, int rc)
{
    if (rc != 0) {
        return rc == -EINTR ? FL_EXIT_INTERRUPTED : FL_EXIT_OWN;
    }
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_judgement *j = &a->peer[i];
        if (c->peers.peer[i].is_present &&
            (j->failures > 0 || j->verdict == FL_VERDICT_NOT_COMPARED)) {
            return FL_EXIT_SOME_FAILED;
        }
    }
    return 0;
}

/* The allocator that a variable tunes; NULL: it tunes none. */
static const char *tuned_by(const char *variable)
{
    static const struct {
        const char *prefix, *allocator;
    } tuning[] = {{"FAULTLESS_", "faultless"},
                  {"MIMALLOC_", "mimalloc"},
                  {"TCMALLOC_", "tcmalloc"},
                  {"MALLOC_CONF", "jemalloc"},
                  {"MALLOC_", "glibc"}};
    for (size_t i = 0; i < sizeof(tuning) / sizeof(tuning[0]); i++) {
        if (strncmp(variable, tuning[i].prefix, strlen(tuning[i].prefix)) == 0) {
            return tuning[i].allocator;
        }
    }
    return NULL;
}

/* What tunes an allocator in our own environment would make its row into another one, silently: it
 * is left out, with a word on what the user may have meant to measure. */
static void clear_tuning(void)
{
    char name[128];

    for (char **e = environ; *e != NULL;) {
        size_t len = strcspn(*e, "=");
        const char *base = tuned_by(*e);
        if (base != NULL && len < sizeof(name) && strncmp(*e, "FAULTLESS_LIB=", 14) != 0) {
            memcpy(name, *e, len);
            name[len] = '\0';
            fprintf(stderr,
                    "faultstat: %s is not passed on to the runs; '-a %s -a x=%s,%s=...' compares "
                    "with it\n",
                    name, base, base, name);
            unsetenv(name); /* moves the rest up: `e` stays */
        } else {
            e++;
        }
    }
}

static int compare(struct options *o)
{
    static struct fl_analysis analysis; /* static for its size */
    struct fl_comparison *c = o->comparison;
    fl_machine_read(&c->machine);
    c->run = calloc(c->peers.count * c->plan.rounds, sizeof(*c->run));
    if (c->run == NULL) {
        perror("faultstat");
        return FL_EXIT_OWN;
    }
    int rc = fl_comparison_run(c);
    if (rc == 0 || rc == -EINTR) {
        fl_analysis_make(&analysis, c);
        int write_rc = report(o, &analysis);
        rc = rc != 0 ? rc : write_rc;
    }
    int status = exit_status(c, &analysis, rc);
    for (size_t i = 0; i < c->peers.count * c->plan.rounds; i++) {
        json_decref(c->run[i].reported);
    }
    free(c->run);
    return status;
}

int fl_compare_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, fl_command_help,
                                     NULL,   NULL};
    static struct fl_comparison c; /* static for its size */
    c.plan = (struct fl_run_plan){
        .rounds = FL_ROUNDS_DEFAULT,
        .warmup = FL_WARMUP_DEFAULT,
        .interval_ms = FL_INTERVAL_MS,
    };
    struct options o = {.comparison = &c};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    c.plan.with_nodes |= fl_nodes_online() > 1;
    clear_tuning();
    int status = FL_EXIT_OWN;
    if (open_sinks(&o) == 0 && add_peers(&o) == 0 && fl_input_open(&c.plan.input, o.input) == 0) {
        status = compare(&o);
    }
    drop_sinks(&o);
    if (c.plan.step_regex != NULL) {
        regfree(&o.regex);
    }
    return status;
}
