/* One thread's stream of large requests and frees, and where its steps end: see detect.c. Pure: it
 * allocates nothing and makes no system call. Included by plan.h.
 *
 * A detector belongs to the thread whose events it is told, and has no lock. */
#ifndef FL_PLAN_LEARN_DETECT_H
#define FL_PLAN_LEARN_DETECT_H

#include "base/base.h"

struct fl_detect;

enum fl_detect_says {
    FL_DETECT_NOTHING,
    FL_DETECT_STEP, /* a step ended just before this event */
    FL_DETECT_LOST, /* what was taken for steps does not repeat any more; goes on watching */
};

/* Bytes of memory that a detector wants, page-aligned; zeroed is new. */
size_t fl_detect_size(void);
/* `live` is the sum of the sizes that this thread has asked for and that are not freed, before the
 * event. O(1).
 *   size      bytes asked for. `kind`: malloc, calloc, aligned: any small number.
 *   distance  of a free: how many requests this thread has made since the one that is freed (0: the
 *             last one); UINT32_MAX when the block is another thread's or older than this. */
enum fl_detect_says fl_detect_alloc(struct fl_detect *d, size_t size, unsigned kind, uint64_t live);
enum fl_detect_says fl_detect_free(struct fl_detect *d, size_t size, uint32_t distance,
                                   uint64_t live);
/* Steps of `period` events were no good after `steps` of them: they have to repeat more often
 * before they are taken for steps again. Period 0: nothing is doubted. */
void fl_detect_doubt(struct fl_detect *d, uint32_t period, uint32_t steps);
/* After some events that it was not told of. */
void fl_detect_go_on(struct fl_detect *d);
/* Events of the step that is followed; 0: none is. */
uint32_t fl_detect_period(const struct fl_detect *d);
/* Is a step followed, or does something long repeat that may turn out to be one? */
bool fl_detect_follows(struct fl_detect *d);
/* Events that it was told of. */
uint32_t fl_detect_events(const struct fl_detect *d);

/* The memory that the first `events` events use, in whole pages; from FL_DETECT_ALL events on all
 * is used. Looks at no field: any thread. */
enum { FL_DETECT_PARTS = 2, FL_DETECT_ALL = 1 << 16 };
void fl_detect_used(const struct fl_detect *d, uint32_t events,
                    struct fl_range out[static FL_DETECT_PARTS]);

#endif
