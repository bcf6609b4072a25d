/* faultstat: what page faults cost a program, and what an allocator saves of them. This file finds
 * the subcommand. */
#include "faultstat/faultstat.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>

static char run_name[] = "faultstat run";
static char compare_name[] = "faultstat compare";
static char merge_name[] = "faultstat merge";
static char nodes_name[] = "faultstat nodes";
static char record_name[] = "faultstat record";
static char report_name[] = "faultstat report";
static char top_name[] = "faultstat top";
static char probe_name[] = "faultstat probe";
static char warm_name[] = "faultstat warm";

static const struct {
    const char *name;
    char *usage_name; /* what argp shows as the program's name */
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: for faultstat's own use, not listed */
} subcommands[] = {
    {"run", run_name, fl_run_main, "run a command and count its page faults, time and memory"},
    {"compare", compare_name, fl_compare_main, "run a command under several allocators"},
    {"merge", merge_name, fl_merge_main, "show the ranks of a parallel job side by side"},
    {"nodes", nodes_name, fl_nodes_main, "say on which NUMA nodes the memory of processes lies"},
    {"record", record_name, fl_record_main,
     "run a command and find where its page faults come from"},
    {"report", report_name, fl_report_main, "show what record wrote: text, flame graph, page"},
    {"top", top_name, fl_top_main, "show the processes under faultless, live"},
    {"probe", probe_name, fl_probe_main, NULL},
    {"warm", warm_name, fl_warm_main, NULL},
};

static void print_usage(FILE *file)
{
    fprintf(file, "Usage: faultstat COMMAND [OPTION...] [--] CMD [ARG...]\n\n");
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (subcommands[i].summary != NULL) {
            fprintf(file, "  %-9s %s\n", subcommands[i].name, subcommands[i].summary);
        }
    }
    fprintf(file,
            "\nfaultstat COMMAND --help lists the options; faultstat(1) explains the figures.\n");
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
        puts("faultstat " FL_VERSION);
        return 0;
    }
    for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
        if (strcmp(argv[1], subcommands[i].name) == 0) {
            argv[1] = subcommands[i].usage_name;
            return subcommands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "faultstat: no command '%s'; see faultstat --help\n", argv[1]);
    return FL_EXIT_OWN;
}
