/* One piece of a huge page that others use, on its way back to the kernel. Lock: region. */
#ifndef FL_REGION_PIECE_H
#define FL_REGION_PIECE_H

#include "region/region.h"

/* What goes: what was freed `age` ticks ago. bare: with its addresses. */
struct fl_piece_terms {
    uint32_t age;
    bool bare;
};

enum fl_piece_verdict {
    FL_PIECE_LEAVE,
    FL_PIECE_TAKE,
    FL_PIECE_TAKE_AND_SPLIT, /* once its huge page is marked so in the table of holes */
    FL_PIECE_NO_TABLE,       /* which does not reach so far */
};
enum fl_piece_outcome { FL_PIECE_GONE, FL_PIECE_NOT_THERE, FL_PIECE_REFUSED };

/* Of `part` of the FREE `e`, within a huge page. */
enum fl_piece_verdict fl_piece_judge(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                                     struct fl_piece_terms terms);
/* The first of it that is mapped, since the kernel refuses what it is told of more, and that is not
 * gone by itself. */
struct fl_range fl_piece_worthy(struct fl_region *r, const struct fl_extent *e,
                                struct fl_range part, bool bare);
/* `e` is claimed, and FREE again afterwards. The lock is released meanwhile. */
enum fl_piece_outcome fl_piece_give_unlocking(struct fl_region *r, struct fl_extent *e,
                                              enum fl_piece_verdict v, struct fl_piece_terms terms,
                                              size_t *given);
/* The kernel refused: no second try soon. */
void fl_piece_note_refusal(struct fl_region *r);

#endif
