/* Processor time that the calling thread spends in user mode, by sampling: the kernel's own split
 * goes by ticks of 4 to 10 ms, too coarse for a calibration of some tens. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_USER_CLOCK_H
#define FAULTLESS_FAULTSTAT_RECORD_USER_CLOCK_H

#include <stdbool.h>

struct perf_event_mmap_page;

struct fl_user_clock {
    int fd; /* -1: not open, the clock stands at 0 */
    struct perf_event_mmap_page *page;
};

/* Start the clock. False where perf events are refused.  Threads: reads must come from this one. */
bool fl_user_clock_open(struct fl_user_clock *clock);

/* ns of user mode since it was opened; one sample is 100 us. */
double fl_user_clock_ns(const struct fl_user_clock *clock);

void fl_user_clock_close(struct fl_user_clock *clock);

#endif
