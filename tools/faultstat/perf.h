/* Counts page faults of a command and its descendants by perf_event_open, where the kernel permits.
 * These are faults that instructions took; pages that MADV_POPULATE_WRITE brought in are not
 * among them, so the two sources together show how much population a run did ahead of need. */
#ifndef FAULTLESS_FAULTSTAT_PERF_H
#define FAULTLESS_FAULTSTAT_PERF_H

#include <stdint.h>
#include <sys/types.h>

struct fl_perf {
    int minor_fd; /* -1: not open */
    int major_fd;
    int error;     /* why not: -errno; 0 when open */
    int user_only; /* 1: faults inside system calls are left out, for perf_event_paranoid >= 2 */
};

/* Start to count for `pid` at its next exec, threads and children included.
 * Returns 0; -EACCES, -EPERM, -ENOENT or -ENOSYS where it is not permitted: `perf` is then still
 * fit for the calls below.
 * Source: perf_event_open(2) PERF_COUNT_SW_PAGE_FAULTS_MIN, mm/memory.c mm_account_fault. */
int fl_perf_start(struct fl_perf *perf, pid_t pid);

/* Read both counts and release the events. Returns 0 and the counts, or the -errno of
 * fl_perf_start. */
int fl_perf_stop(struct fl_perf *perf, uint64_t *minor, uint64_t *major);

#endif
