/* faultstat: what page faults cost a program, and what an allocator saves of them. This file finds
 * the subcommand. */
#include "faultstat/faultstat.h"

#include "commands.h"

static char run_name[] = "faultstat run";
static char compare_name[] = "faultstat compare";
static char merge_name[] = "faultstat merge";
static char nodes_name[] = "faultstat nodes";
static char record_name[] = "faultstat record";
static char report_name[] = "faultstat report";
static char heap_name[] = "faultstat heap";
static char top_name[] = "faultstat top";
static char probe_name[] = "faultstat probe";
static char warm_name[] = "faultstat warm";

static const struct fl_command command[] = {
    {"run", run_name, fl_run_main, "run a command and count its page faults, time and memory"},
    {"compare", compare_name, fl_compare_main, "run a command under several allocators"},
    {"merge", merge_name, fl_merge_main, "show the ranks of a parallel job side by side"},
    {"nodes", nodes_name, fl_nodes_main, "say on which NUMA nodes the memory of processes lies"},
    {"record", record_name, fl_record_main,
     "run a command and find where its page faults come from"},
    {"report", report_name, fl_report_main, "show what record wrote: text, flame graph, page"},
    {"heap", heap_name, fl_heap_main, "say which places in a program hold its large blocks"},
    {"top", top_name, fl_top_main, "show the processes under faultless, live"},
    {"probe", probe_name, fl_probe_main, NULL},
    {"warm", warm_name, fl_warm_main, NULL},
};

static const struct fl_command_table commands = {
    .program = "faultstat",
    .version = FL_VERSION,
    .usage = "COMMAND [OPTION...] [--] CMD [ARG...]",
    .manual = "figures",
    .runs = "run --",
    .exit_own = FL_EXIT_OWN,
    .command = command,
    .n = sizeof command / sizeof command[0],
};

int main(int argc, char **argv)
{
    return fl_commands_main(&commands, argc, argv);
}
