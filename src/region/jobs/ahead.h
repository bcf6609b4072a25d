/* Memory that comes ahead of the touch: a long new block that a program touches from its front on
 * is brought into memory by the worker, some way before the program gets there. Included by
 * region.h. */
#ifndef FL_REGION_AHEAD_H
#define FL_REGION_AHEAD_H

#include "space/space.h"

struct fl_region;
enum { FL_AHEAD_SLOTS = 8 };

/* A block that is watched. */
struct fl_ahead_slot {
    /* Lock: region. */
    struct fl_extent *e;   /* NULL: none */
    struct fl_range range; /* its whole huge pages, when it was handed out */
    uint32_t turn;         /* of fl_ahead.turn: which watch it is */
    /* The worker's alone. */
    uint32_t known;         /* the turn that the rest is about */
    uintptr_t begin, front; /* what lay before the watch; the lowest huge page that is not there */
    struct fl_range part;   /* what is being filled, from its end down */
    size_t filled;          /* bytes of it, from the end */
    bool scans;             /* one call tells what of it is there: Linux 6.7 */
    bool hopeless;          /* nothing may come ahead here: the watch ends */
    uint64_t due_ns;        /* monotonic; of the next look */
    uint64_t rest_ns;       /* before the one after */
    unsigned still;         /* looks in a row that found the front where it was */
};

struct fl_ahead {
    struct fl_ahead_slot slot[FL_AHEAD_SLOTS];
    _Atomic uint32_t turn; /* watches ever begun. Lock: region, to write */
    /* The worker's alone: slots in use; bytes that came ahead of programs which then stopped, since
     * one came to the end of its block. */
    unsigned watched;
    size_t vain;
};

/* Bytes of the shortest block that is watched; of a shorter one no part would be allowed. */
#define FL_AHEAD_FROM ((size_t)160 << 20)

void fl_ahead_fork_child(struct fl_region *r);

#endif
