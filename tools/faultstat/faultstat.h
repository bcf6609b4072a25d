/* The subcommands. Each parses its own options with argp and returns the program's exit status. */
#ifndef FAULTLESS_FAULTSTAT_FAULTSTAT_H
#define FAULTLESS_FAULTSTAT_FAULTSTAT_H

#include "commands.h"

enum {
    FL_EXIT_SOME_FAILED =
        1, /* compare: a run failed, or an allocator was not loaded; nodes: no such process */
    FL_EXIT_OWN = 125, /* a wrong option, or faultstat itself failed; as env(1) does */
    FL_EXIT_INTERRUPTED = 130,
};

int fl_run_main(int argc, char **argv);
int fl_compare_main(int argc, char **argv);
int fl_merge_main(int argc, char **argv);
int fl_nodes_main(int argc, char **argv);
int fl_record_main(int argc, char **argv);
int fl_report_main(int argc, char **argv);
int fl_heap_main(int argc, char **argv);
int fl_top_main(int argc, char **argv);
int fl_probe_main(int argc, char **argv);
int fl_warm_main(int argc, char **argv);

#endif
