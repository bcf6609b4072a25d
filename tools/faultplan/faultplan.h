/* The subcommands. Each parses its own options with argp and returns the program's exit status. */
#ifndef FAULTLESS_FAULTPLAN_FAULTPLAN_H
#define FAULTLESS_FAULTPLAN_FAULTPLAN_H

#include "commands.h"

enum {
    FL_EXIT_OWN = 125, /* a wrong option, a file that is no table; as faultstat does */
};

int fl_plan_pack_main(int argc, char **argv);
int fl_plan_draw_main(int argc, char **argv);
int fl_plan_record_main(int argc, char **argv);

#endif
