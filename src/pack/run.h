/* Shared by the files of the packer alone.
 *
 * pack.c     in which order the methods run, when to stop, what becomes of their layouts
 * setup.c    buffers -> blocks, sections, parts, bounds
 * skyline.c  places the best block that fits on the lowest segment
 * search.c   which heights to look for a layout at; dive.c looks, depth first
 * check.c    is a layout right?
 * warm.c     which of the layouts of one height: one that the caches like
 *
 * Words. A *block* is a buffer that lives and has a size. A *section* is a stretch of time in
 * which nothing is born after something died: two blocks conflict just when they share one. A
 * *part* is a run of sections that no block crosses into or out of; the methods pack part by part,
 * and a layout is as high as the tallest. Sizes and offsets are in units: the smallest alignment of
 * any block. */
#ifndef FL_PACK_RUN_H
#define FL_PACK_RUN_H

#include "pack/pack.h"

struct fl_pack_block {
    uint64_t size, mask; /* mask: alignment - 1 */
    uint64_t offset;     /* being built */
    uint64_t best;       /* in the part's best layout */
    uint32_t id;         /* index in `buffer` */
    uint32_t start, end; /* sections [start, end) */
};

struct fl_pack_part {
    uint32_t lo, hi;   /* blocks */
    uint32_t from, to; /* sections */
    uint64_t bound;    /* no layout is lower */
    uint64_t height;   /* of the best layout; UINT64_MAX: there is none */
    /* The search, exact and blurred: placements in the next dive (0: it has not begun), cost of
     * all so far. */
    uint64_t limit[2], work[2];
};

struct fl_pack_budget {
    uint64_t cost, end_cost, end_ns; /* end_ns 0: never */
    uint32_t unlooked;               /* cost since the clock was looked at */
    bool is_over;                    /* no time or budget left */
};

/* What was given out. */
struct fl_pack_found {
    const char *by;  /* the method */
    uint64_t height; /* UINT64_MAX: nothing yet */
    bool is_wrong;   /* a layout failed its check */
};

struct fl_pack_run {
    const struct fl_pack_how *how;
    struct fl_pack_buffer *buffer;
    size_t n;
    struct fl_bump room;

    struct fl_pack_block *block; /* in order of birth */
    uint32_t count, sections, parts;
    struct fl_pack_part *part;
    unsigned shift;         /* bytes = units << shift */
    uint64_t bound, target; /* a layout as low as `target` ends the search */

    struct fl_pack_budget budget;
    uint64_t random;
    const char *by; /* the method at work */
    struct fl_pack_found found;
};

/* ---- setup.c ---- */

/* Checks the input, and fills everything in `r` from `block` to `bound`. 0, -EINVAL or -ENOMEM. */
int fl_pack_setup(struct fl_pack_run *r);

/* ---- check.c ---- */

/* Of buffers, those that live and have a size. */
struct fl_pack_times {
    uint32_t *born, *died; /* in the order of birth, and of death */
    uint32_t n;
};
/* In `room`. False: it is too little. */
bool fl_pack_by_time(const struct fl_pack_buffer *b, size_t n, struct fl_bump *room,
                     struct fl_pack_times *out);

/* ---- pack.c ---- */

/* Counts `cost`. True: stop, the budget is spent. */
bool fl_pack_spend(struct fl_pack_run *r, uint32_t cost);
/* The blocks' offsets are a layout of part `p`: if it is the best, it is kept, and goes out
 * where the whole is lower by it. */
void fl_pack_keep(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height);
/* In [0, 1). */
double fl_pack_random(struct fl_pack_run *r);
/* Non-negative numbers as integers that compare alike. */
uint64_t fl_pack_order_of(double v);

/* ---- methods: a layout of part `p` in the blocks' offsets. Its height; UINT64_MAX when it
 * would be `limit` or more, or the budget or the scratch is not enough ---- */

/* By lifetime times size, blurred at random by up to `blur` (0: exact). */
uint64_t fl_pack_skyline(struct fl_pack_run *r, const struct fl_pack_part *p, double blur,
                         uint64_t limit);

/* ---- search.c, dive.c ---- */

/* Some dives at `goal`, the first time also between it and the best height. New layouts go to
 * fl_pack_keep; the part's bound rises when a height is shown to be too low. */
void fl_pack_search(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal);

enum fl_dive_end {
    FL_DIVE_FOUND, /* the blocks' offsets are a layout */
    FL_DIVE_NONE,  /* there is none */
    FL_DIVE_CUT,   /* there may be one */
};

/* Looks for a layout of at most `capacity`, in at most `limit` placements; its order is blurred
 * by up to `noise`. */
enum fl_dive_end fl_pack_dive(struct fl_pack_run *r, const struct fl_pack_part *p,
                              uint64_t capacity, double noise, uint64_t limit);

#endif
