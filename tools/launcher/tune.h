/* Switches of libraries that bring an allocator: what `faultless --tune` sets. */
#ifndef FAULTLESS_LAUNCHER_TUNE_H
#define FAULTLESS_LAUNCHER_TUNE_H

#include <stdbool.h>

/* Set each variable of the table that is not set yet, for what is started next, and say on standard
 * error what was set. False: out of memory, which is said.  Threads: one. */
bool fl_tune(const char *program);

#endif
