/* How full the huge-page reserve is to be, and who fills it. Included by region.h. Lock: region,
 * unless it says otherwise. */
#ifndef FL_REGION_REFILL_H
#define FL_REGION_REFILL_H

#include "core/core.h"

struct fl_region;
struct fl_fill_plan;
struct fl_todo;

/* Lock: region. */
struct fl_refill {
    bool filling;  /* up to the high watermark, once begun */
    size_t demand; /* bytes that recent requests took from the kernel or from the reserve */
};

/* Notes that requests needed `bytes` that were in no free extent; calls for the worker
 * when the reserve is low. */
void fl_refill_demand(struct fl_region *r, size_t bytes, unsigned zone);
/* What the supply has of the reserve, as far as it is there, is noted in what there is to do; and
 * back after the move. */
void fl_refill_take(struct fl_region *r, struct fl_fill_plan *g);
void fl_refill_give_back(struct fl_region *r, const struct fl_todo *t);
/* Gives chunks that were filled `age` ticks ago back to the kernel. Returns bytes. Releases the
 * lock in between. */
size_t fl_refill_release_unlocking(struct fl_region *r, uint32_t age);
void fl_refill_fork_child(struct fl_region *r);

#endif
