/* Pieces: what is free of huge pages that others use, and goes back to the kernel by base pages.
 * Included by region.h. See pieces.c.
 * State: r->pieces, under the region lock. */
#ifndef FL_REGION_PIECES_H
#define FL_REGION_PIECES_H

#include "region/state/budget.h"

struct fl_region;
struct fl_fill_plan;

struct fl_pieces {
    uintptr_t joining; /* the huge page whose split is undone at this moment; 0: none */
    size_t headroom;   /* bytes that the last look at the memory found left */
    size_t since;      /* bytes that came back since pieces were looked at for want of memory */
    size_t step;       /* such bytes until the next look; 0: the least */
    /* Bytes that went back by age, and holes that were taken, of late; ticks by which pieces go
     * later than other memory for that, and the tick at which that was last changed. */
    size_t dug, refilled;
    uint32_t later, judged;
    uint32_t refusals; /* of the kernel's, in a row */
    uint64_t tries;    /* pieces that were given to the kernel's hand */
    uint32_t resume;   /* the tick before which nothing is tried, after the kernel's refusal */
};

/* give_back: `want` bytes of what was freed `age` ticks ago, after `most` looks at most.
 * give_fringes: the same, whatever their age, of free extents that have whole huge pages besides,
 * which stay; bare: of those that have none, too, and nothing stays mapped there (holes.h).
 * smooth: whole huge pages that are free and split go, so that what they lie in is as any other
 * free memory; it ends after `most` bytes of addresses. All return bytes, and release the lock in
 * between. are_due: would a look find anything? */
size_t fl_pieces_give_back_unlocking(struct fl_region *r, uint32_t age, size_t want, unsigned most);
size_t fl_pieces_give_fringes_unlocking(struct fl_region *r, bool bare);
size_t fl_pieces_smooth_unlocking(struct fl_region *r, size_t most);
bool fl_pieces_are_due(struct fl_region *r, uint32_t age);
/* Has the kernel refused nothing of late? */
bool fl_pieces_may_go(const struct fl_region *r);
/* Or is it worth a wait for the next try? */
bool fl_pieces_may_go_one_day(const struct fl_region *r);
/* At each tick: do they go too soon? */
void fl_pieces_note_tick(struct fl_region *r);

/* Bytes that are smoothed while a thread waits: some 32 unmappings at most. */
enum { FL_SMOOTHED_MOST = 64 * FL_MIB };

#endif
