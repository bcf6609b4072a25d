/* faultless: runs a command with libfaultless.so preloaded. It sets variables and calls exec,
 * nothing else: the process keeps its identity, its NUMA policy (numactl), limits, cgroup and
 * open files. */
#include "launcher/check.h"
#include "launcher/find.h"
#include "launcher/process.h"
#include "launcher/tune.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *argp_program_version = "faultless " FL_VERSION;

static const char doc[] =
    "Run CMD with the faultless allocator preloaded.\v"
    "The library is taken from FAULTLESS_LIB, else from this program's folder, ../lib or "
    "../lib/" FL_MULTIARCH ". What "
    "LD_PRELOAD held follows it. The exit status is that of CMD; 125: this program failed, 126: "
    "CMD "
    "cannot be run, 127: CMD was not found. With --check: 0: CMD would be served, or PID and "
    "its children are, 1: not so. Options of the allocator: faultless(7).";

struct wanted {
    char **command;   /* NULL: none */
    const char *json; /* the file for JSON; NULL: text */
    bool check, library, tune;
};

enum { KEY_CHECK = 256, KEY_LIBRARY, KEY_TUNE };

static const struct argp_option option[] = {
    {"option", 'o', "NAME=VALUE", 0, "Set FAULTLESS_NAME to VALUE for CMD; may be repeated", 0},
    {"check", KEY_CHECK, NULL, 0,
     "Run nothing; say what the library will do here, for CMD; or does for process PID and its "
     "children",
     0},
    {"json", 'j', "FILE", 0, "With --check: write JSON to FILE; '-': to standard output", 0},
    {"library", KEY_LIBRARY, NULL, 0, "Run nothing; print the library's absolute path", 0},
    {"tune", KEY_TUNE, NULL, 0,
     "Also set for CMD what has libraries with an allocator of their own use malloc or huge pages",
     0},
    {NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0}, /* --help by its usual letter */
    {0},
};

/* Put OPTION=VALUE into the environment as FAULTLESS_OPTION; "decay-ms", "DECAY_MS" and the whole
 * name are the same. */
static void set_option(const char *text, struct argp_state *state)
{
    char name[128] = "FAULTLESS_";
    size_t len = strlen(name);
    const char *from = text + (strncmp(text, name, len) == 0 ? len : 0);
    const char *value = strchr(from, '=');
    if (value == NULL || value == from) {
        argp_error(state, "-o wants OPTION=VALUE, not '%s'", text);
        return;
    }
    for (const char *c = from; c < value; c++) {
        if ((!isalnum((unsigned char)*c) && *c != '_' && *c != '-') || len + 1 >= sizeof(name)) {
            argp_error(state, "'%s' is not the name of an option", text);
            return;
        }
        name[len++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    }
    name[len] = '\0';
    if (setenv(name, value + 1, 1) != 0) {
        argp_failure(state, FL_EXIT_OWN, errno, "cannot set %s", name);
    }
}

/* --check of a process's number; a command of digits alone is written with a slash. */
static bool is_process(const struct wanted *w)
{
    const char *text = w->check && w->command != NULL ? w->command[0] : "";

    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct wanted *w = state->input;
    switch (key) {
    case 'h':
        argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
        return 0;
    case 'o':
        set_option(arg, state);
        return 0;
    case KEY_CHECK:
        w->check = true;
        return 0;
    case 'j':
        if (!fl_is_output(arg)) {
            argp_error(state, "'%s' is no name for a file to be written", arg);
        }
        w->json = arg;
        return 0;
    case KEY_LIBRARY:
        w->library = true;
        return 0;
    case KEY_TUNE:
        w->tune = true;
        return 0;
    case ARGP_KEY_ARG:
        if (w->command != NULL) {
            argp_error(state, "one process, or one command");
        }
        w->command = &state->argv[state->next - 1];
        if (!is_process(w)) {
            state->next = state->argc; /* all that follows belongs to CMD */
        }
        return 0;
    case ARGP_KEY_END:
        if (w->json != NULL && !w->check) {
            argp_error(state, "--json goes with --check");
        } else if (w->library && (w->check || w->command != NULL)) {
            argp_error(state, "--library stands alone");
        } else if (w->tune && w->command == NULL) {
            argp_error(state, "--tune goes with a command");
        } else if (w->command == NULL && !w->check && !w->library) {
            argp_error(state, "no command given");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_library(void)
{
    char path[PATH_MAX];
    if (!fl_find_or_say("faultless", path)) {
        return FL_EXIT_OWN;
    }
    if (puts(path) == EOF || fflush(stdout) != 0) {
        fprintf(stderr, "faultless: standard output: %s\n", strerror(errno));
        return FL_EXIT_OWN;
    }
    return EXIT_SUCCESS;
}

/* Tells the library which process the user started: helpers inherit the variable and have another
 * number. */
static void mark_process(void)
{
    char number[24];

    snprintf(number, sizeof number, "%ld", (long)getpid());
    (void)setenv("_FAULTLESS_PID", number, 1); /* without it less is said, no more */
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        option, parse, "[--] CMD [ARG...]\n--check [CMD | PID]\n--library", doc, NULL, NULL, NULL};
    struct wanted w = {.command = NULL};
    if (argc == 2 && strcmp(argv[1], "--probe") == 0) { /* fl_check_main's child */
        return fl_probe_main();
    }
    argp_err_exit_status = FL_EXIT_OWN;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &w);
    if (is_process(&w)) {
        return fl_tree_main((pid_t)strtol(w.command[0], NULL, 10), w.json);
    }
    if (w.library) {
        return print_library();
    }
    if (w.check) {
        return fl_check_main(w.command != NULL ? w.command[0] : NULL, w.json);
    }
    if (!fl_find_preload("faultless") || (w.tune && !fl_tune("faultless"))) {
        return FL_EXIT_OWN;
    }
    mark_process();
    execvp(w.command[0], w.command);
    int rc = errno == ENOENT ? FL_EXIT_NOT_FOUND : FL_EXIT_CANNOT_RUN;
    fl_say_not_run("faultless", w.command[0], errno);
    return rc;
}
