#include "commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void print_usage(const struct fl_command_table *c, FILE *file)
{
    fprintf(file, "Usage: %s %s\n\n", c->program, c->usage);
    for (size_t i = 0; i < c->n; i++) {
        if (c->command[i].summary != NULL) {
            fprintf(file, "  %-9s %s\n", c->command[i].name, c->command[i].summary);
        }
    }
    fprintf(file, "\n%s COMMAND -h lists the options; %s(1) explains the %s.\n", c->program,
            c->program, c->manual);
}

static error_t parse_help(int key, char *arg, struct argp_state *state)
{
    (void)arg;
    if (key != 'h') {
        return ARGP_ERR_UNKNOWN;
    }
    argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP); /* and ends */
    return 0;
}

static const struct argp_option help_option[] = {{NULL, 'h', NULL, OPTION_HIDDEN, NULL, 0}, {0}};
static const struct argp help = {help_option, parse_help, NULL, NULL, NULL, NULL, NULL};
const struct argp_child fl_command_help[] = {{&help, 0, NULL, 0}, {NULL, 0, NULL, 0}};

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

int fl_commands_main(const struct fl_command_table *c, int argc, char **argv)
{
    argp_err_exit_status = c->exit_own;
    if (argc < 2) {
        print_usage(c, stderr);
        return c->exit_own;
    }
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        print_usage(c, stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("%s %s\n", c->program, c->version);
        return 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(argv[1], c->command[i].name) == 0) {
            argv[1] = c->command[i].usage_name;
            return c->command[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "%s: no command '%s'; ", c->program, argv[1]);
    if (c->runs != NULL && strchr(argv[1], '/') != NULL) {
        fprintf(stderr, "%s %s %s runs a program; ", c->program, c->runs, argv[1]);
    }
    fprintf(stderr, "%s -h lists them\n", c->program);
    return c->exit_own;
}
