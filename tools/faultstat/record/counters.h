/* Where perf events are refused: the minor and major faults of each thread, read from /proc now and
 * then. No stacks, no kinds; a child process is in the total alone. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_COUNTERS_H
#define FAULTLESS_FAULTSTAT_RECORD_COUNTERS_H

#include "faultstat/record/recorder.h"

struct fl_counters {
    struct fl_thread_count *thread;
    size_t count;
    size_t capacity;
    uint64_t total; /* of the process when it was read last */
    uint64_t named; /* of it, given to threads */
};

/* Read all threads of `pid` and count what is new, under "thread NAME".
 *   now_ns   the time it is put down to. */
void fl_counters_look(struct fl_recorder *recorder, pid_t pid, uint64_t now_ns);

/* What threads took that ended between two readings, as "threads that ended". */
void fl_counters_finish(struct fl_recorder *recorder);

#endif
