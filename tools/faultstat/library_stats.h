/* What faultless itself says of a run, where that is the allocator: its statistics at exit. */
#ifndef FAULTLESS_FAULTSTAT_LIBRARY_STATS_H
#define FAULTLESS_FAULTSTAT_LIBRARY_STATS_H

#include <stdbool.h>
#include <stdint.h>

struct fl_library_stats {
    bool is_known;
    uint64_t requests;   /* large ones that it served, of all processes */
    uint64_t plan_steps; /* steps that a plan served: it saw them, marked or not */
};

/* Create an empty file for FAULTLESS_STATS; `path` (64 bytes) receives its name, "" when that
 * fails: then nothing is known. */
void fl_library_stats_create(char path[64]);

/* Read what the run left there, a line of JSON a process, and empty it. */
struct fl_library_stats fl_library_stats_take(const char *path);

#endif
