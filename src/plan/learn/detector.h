/* One thread's stream of large requests, and where its steps end: see detect.c. Pure. Included by
 * plan.h. */
#ifndef FL_PLAN_DETECTOR_H
#define FL_PLAN_DETECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One thread's large requests and frees, as they come. */
struct fl_detect;

enum fl_detect_says {
    FL_DETECT_NOTHING,
    FL_DETECT_STEP, /* a step ended just before this event */
    FL_DETECT_LOST, /* what was taken for steps does not repeat any more; goes on watching */
};

/* Bytes of memory that a detector wants, page-aligned; zeroed is new. It never allocates and makes no system call. */
size_t fl_detect_size(void);
/* `live` is the sum of the sizes that this thread has asked for and that are not freed, before the event. O(1).
 *   size      bytes asked for. `kind`: malloc, calloc, aligned: any small number.
 *   distance  of a free: how many requests this thread has made since the one that is freed (0: the last one); UINT32_MAX
 *             when the block is another thread's or was there before the detector. */
enum fl_detect_says fl_detect_alloc(struct fl_detect *d, size_t size, unsigned kind, uint64_t live);
enum fl_detect_says fl_detect_free(struct fl_detect *d, size_t size, uint32_t distance,
                                   uint64_t live);
/* Steps of so many events were no good after so many: they have to repeat more often before they are taken for steps again. Period 0:
 * nothing is doubted. */
void fl_detect_doubt(struct fl_detect *d, uint32_t period, uint32_t steps);
/* After some events that it was not told of. */
void fl_detect_go_on(struct fl_detect *d);
/* Events of the period that is being followed; 0: none is confirmed. */
uint32_t fl_detect_period(const struct fl_detect *d);

#endif
