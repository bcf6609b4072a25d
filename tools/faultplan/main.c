/* faultplan: the layouts of steps, from outside. This file finds the subcommand. */
#include "faultplan/faultplan.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

static char pack_name[] = "faultplan pack";
static char show_name[] = "faultplan show";
static char draw_name[] = "faultplan draw";
static char record_name[] = "faultplan record";

static const struct {
    const char *name;
    char *usage_name; /* what argp shows as the program's name */
    int (*run)(int argc, char **argv);
    const char *summary;
} subcommands[] = {
    {"pack", pack_name, fl_plan_pack_main, "give the buffers of a table offsets"},
    {"show", show_name, fl_plan_show_main, "print the plans that a program has kept"},
    {"draw", draw_name, fl_plan_draw_main, "draw a layout, address against time"},
    {"record", record_name, fl_plan_record_main, "run a command and write its steps as tables"},
};

static void print_usage(FILE *file)
{
    fprintf(file, "Usage: faultplan COMMAND [OPTION...] FILE|CMD\n\n");
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        fprintf(file, "  %-9s %s\n", subcommands[i].name, subcommands[i].summary);
    }
    fprintf(file,
            "\nfaultplan COMMAND --help lists the options; faultplan(1) explains the tables.\n");
}

int main(int argc, char **argv)
{
    argp_err_exit_status = FL_EXIT_OWN;
    if (argc < 2) {
        print_usage(stderr);
        return FL_EXIT_OWN;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("faultplan " FL_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            argv[1] = subcommands[i].usage_name;
            return subcommands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "faultplan: no command '%s'; see faultplan --help\n", argv[1]);
    return FL_EXIT_OWN;
}
