/* Keeps what an allocator's helper threads have used, the ended ones included: threads whose name
 * starts `fl-`, and the kernel's io_uring workers of such a thread, named `iou-wrk-` and its id.
 * Leaves to proc.h the reading of one thread. The caller owns the table; Lock: the caller's. */
#ifndef FAULTLESS_FAULTSTAT_THREADS_H
#define FAULTLESS_FAULTSTAT_THREADS_H

#include "faultstat/proc.h"

enum { FL_THREADS_MAX = 256 };

struct fl_thread {
    pid_t pid;
    pid_t tid;
    struct fl_usage last; /* as last sampled */
};

/* T1: no two entries agree in both tid and last.born. */
struct fl_threads {
    struct fl_thread entry[FL_THREADS_MAX];
    unsigned count;
    unsigned lost; /* helper threads that found no room; their faults count as the application's */
};

/* Walk /proc/PID/task and bring the table up to date with every helper thread.
 * Returns 0; -errno of opendir.  Threads: one at a time on one table.
 * Cost: one open, read and close a thread, about 10 us. */
int fl_threads_sample(struct fl_threads *table, pid_t pid);

/* What the helper threads of `pid` (0: of every process sampled), living and ended, have used as
 * far as sampled: a lower bound. It misses what a thread did between the last sample and its end,
 * so the error of "all minus helpers" is at most what they fault in one sampling interval.
 * Threads: as for fl_threads_sample. */
struct fl_usage fl_threads_sum(const struct fl_threads *table, pid_t pid);

#endif
