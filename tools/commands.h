/* The subcommands of a program: finds the one that the command line names. */
#ifndef FAULTLESS_TOOLS_COMMANDS_H
#define FAULTLESS_TOOLS_COMMANDS_H

#include <argp.h>
#include <stddef.h>

struct fl_command {
    const char *name;
    char *usage_name; /* what argp shows as the program's name */
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: for the program's own use, not listed */
};

struct fl_command_table {
    const char *program, *version;
    const char *usage;  /* what stands behind the program's name */
    const char *manual; /* what the manual page explains */
    const char *runs;   /* the command that runs a program; NULL: none does */
    int exit_own;       /* the exit status of a wrong command line */
    const struct fl_command *command;
    size_t n;
};

/* For each command's struct argp: it answers -h as argp does --help. */
extern const struct argp_child fl_command_help[];

/* Runs the named command and returns its exit status; answers -h, --help, help and --version. */
int fl_commands_main(const struct fl_command_table *c, int argc, char **argv);

#endif
