/* faultplan: the layouts of steps, from outside. This file finds the subcommand. */
#include "faultplan/faultplan.h"

#include "commands.h"

static char pack_name[] = "faultplan pack";
static char draw_name[] = "faultplan draw";
static char record_name[] = "faultplan record";

static const struct fl_command command[] = {
    {"pack", pack_name, fl_plan_pack_main, "give the buffers of a table offsets"},
    {"draw", draw_name, fl_plan_draw_main, "draw a layout, address against time"},
    {"record", record_name, fl_plan_record_main, "run a command and write its steps as tables"},
};

static const struct fl_command_table commands = {
    .program = "faultplan",
    .version = FL_VERSION,
    .usage = "COMMAND [OPTION...] FILE|CMD",
    .manual = "tables",
    .exit_own = FL_EXIT_OWN,
    .command = command,
    .n = sizeof command / sizeof command[0],
};

int main(int argc, char **argv)
{
    return fl_commands_main(&commands, argc, argv);
}
