/* faultless: runs a command with libfaultless.so preloaded. It sets variables and calls exec,
 * nothing else: the process keeps its identity, its NUMA policy (numactl), limits, cgroup and
 * open files. */
#include "launcher/find.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_EXIT_OWN = 125, FL_EXIT_CANNOT_RUN = 126, FL_EXIT_NOT_FOUND = 127 }; /* as env(1) does */

const char *argp_program_version = "faultless " FL_VERSION;

static const char doc[] =
    "Run CMD with the faultless allocator preloaded.\v"
    "The library is taken from FAULTLESS_LIB, else from this program's folder, ../lib or "
    "../lib/" FL_MULTIARCH ". What "
    "LD_PRELOAD held follows it. The exit status is that of CMD; 125: this program failed, 126: "
    "CMD "
    "cannot be run, 127: CMD was not found. Options of the allocator: faultless(7).";

static const struct argp_option option[] = {
    {"option", 'o', "NAME=VALUE", 0, "Set FAULTLESS_NAME to VALUE for CMD; may be repeated", 0},
    {0},
};

/* Put OPTION=VALUE into the environment as FAULTLESS_OPTION; "decay-ms" and "DECAY_MS" are the
 * same name. */
static void set_option(const char *text, struct argp_state *state)
{
    char name[128] = "FAULTLESS_";
    size_t len = strlen(name);
    const char *value = strchr(text, '=');
    if (value == NULL || value == text) {
        argp_error(state, "-o wants OPTION=VALUE, not '%s'", text);
        return;
    }
    for (const char *c = text; c < value; c++) {
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

static error_t parse(int key, char *arg, struct argp_state *state)
{
    char ***command = state->input;
    switch (key) {
    case 'o':
        set_option(arg, state);
        return 0;
    case ARGP_KEY_ARG:
        *command = &state->argv[state->next - 1];
        state->next = state->argc; /* all that follows belongs to CMD */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, NULL, NULL, NULL};
    char **command = NULL;
    argp_err_exit_status = FL_EXIT_OWN;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &command);
    if (!fl_find_preload("faultless")) {
        return FL_EXIT_OWN;
    }
    execvp(command[0], command);
    int rc = errno == ENOENT ? FL_EXIT_NOT_FOUND : FL_EXIT_CANNOT_RUN;
    fprintf(stderr, "faultless: %s: %s\n", command[0], strerror(errno));
    return rc;
}
