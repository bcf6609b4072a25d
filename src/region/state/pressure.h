/* How much of the memory is left, by the last look, and until the next. Included by region.h. Lock:
 * region. */
#ifndef FL_REGION_STATE_PRESSURE_H
#define FL_REGION_STATE_PRESSURE_H

#include "core/core.h"

/* Bytes. */
struct fl_pressure {
    size_t total;        /* of RAM; 0: unknown. Constant */
    size_t absurd_above; /* RAM and swap; SIZE_MAX: unknown. Constant */
    size_t most;         /* that can be in memory, by the last look; 0: none yet */
    size_t fits; /* the same, where limits count maps four times of what may be held free of it */
    /* Since the next allocator was asked to trim, and until it is again. */
    size_t since_starved, starve_after;
    size_t least;                  /* that come back between two looks, at least */
    size_t since_look, look_after; /* that came back since the last look; until the next */
    size_t surplus; /* free bytes that the last look found too many; the next free purges them */
};

/* Bytes of the longest extent in a thread cache. What waits there is in the way of others: with
 * 64 MiB a pipeline of NumPy's, whose arrays have 8 to 512, moved 130 MiB in each step and took 40
 * faults; with 16 none. A block so long is touched for a thousand times what its lock takes. */
enum { FL_CACHED_MOST = 16 * FL_MIB };
/* Bytes: that come back between two looks at the memory, where there is much; that are taken
 * between two calls for help, at most. */
#define FL_LOOK_LEAST ((size_t)16 << 20)
#define FL_STARVE_MOST ((size_t)4 << 30)

#endif
