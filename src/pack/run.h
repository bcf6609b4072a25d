/* Shared by the files of the packer alone.
 *
 * pack.c          what the methods share, in which order they run, when to stop
 * setup.c    buffers -> sections, parts, bounds
 * sort.c     sorting, random numbers, memory inside the caller's scratch
 * skyline.c  places the best buffer that fits on the lowest segment
 * fit.c      first fit, and what of an earlier layout can stay
 * search.c   depth first over canonical layouts below a height
 * node.c     what one node of that search asks and changes
 * check.c    is a layout right?
 *
 * Words. A *section* is a stretch of time in which nothing is born after something died: two buffers conflict just when
 * they share one. A *part* is a run of sections that no buffer crosses into or out of; parts do not see each other.
 * Buffers that never live or have no size are left out. Sizes and offsets are in units: the smallest alignment of any buffer.
 * A zone is packed by itself, on the floor of the next lower one; what has no zone lies above all of them. */
#ifndef FL_PACK_RUN_H
#define FL_PACK_RUN_H

#include "pack/pack.h"

enum { FL_PACK_KEYS = 8 };

/* Scratch is handed out from the bottom and taken back in the opposite order: remember `at`, and set it back. */
struct fl_pack_arena {
    char *at, *end;
};

struct fl_pack_part {
    uint32_t lo, hi;   /* buffers, by their place in order of (zone, birth) */
    uint32_t from, to; /* sections */
    uint64_t floor;    /* the lowest offset of its zone's band */
    uint64_t bound;    /* of its height, from the floor's zero */
    uint64_t height;   /* of the best layout; UINT64_MAX: there is none */
};

/* Where the search in a part has come to. */
struct fl_pack_hunt {
    uint32_t part; /* UINT32_MAX: none */
    /* Exact dives and blurred ones: placements tried in one, and in all so far. */
    uint64_t limit[2], work[2];
};

struct fl_pack_run {
    const struct fl_pack_how *how;
    struct fl_pack_buffer *buffer;
    size_t n;
    struct fl_pack_arena arena;

    /* Buffers in order of (zone, birth). */
    uint32_t count;
    uint32_t *id;          /* index in `buffer` */
    uint32_t *start, *end; /* sections [start, end) */
    uint64_t *size, *mask; /* mask: alignment - 1 */
    uint64_t *hot;         /* the most that lives at once while it does */
    uint64_t *offset;      /* being built */
    uint64_t *best;        /* of each part's best layout */

    uint32_t sections;
    uint64_t *load;  /* of each section, of the zone that is packed */
    uint64_t *floor; /* of each section: what lies below belongs to zones */

    struct fl_pack_part *part;
    uint32_t parts;
    unsigned shift;               /* bytes = units << shift */
    uint64_t bound;               /* units */
    uint64_t target;              /* units: a layout as low as this ends the search */
    uint64_t deadline_ns, end_ns; /* of all, and of what is at work now; 0: none */
    uint64_t work, end_work;
    uint64_t cost, end_cost;
    uint32_t unlooked; /* what was spent since the clock was looked at */
    uint64_t random;
    const char *by; /* the method at work */

    uint64_t height; /* of what was given out; UINT64_MAX: nothing yet */
    const char *found_by;
    uint64_t below;      /* where the zones below what is packed now end */
    uint32_t last_group; /* the first part of the zone that is packed last */
    bool is_whole;       /* every part has a layout: what is better may go out */
    struct fl_pack_hunt hunt;
    unsigned key;  /* the next to be tried */
    bool is_over;  /* no time, no work left, or told to stop */
    bool is_wrong; /* a layout failed its check */
};

/* ---- sort.c ---- */

/* NULL when nothing of that size is left. Aligned to 64 bytes, not cleared. */
void *fl_pack_carve(struct fl_pack_arena *a, size_t count, size_t width);
/* Sorts `order` by key[order[i]], stable. 24 bytes an element of the arena, for the time of the call. False: not there. */
bool fl_pack_sort(struct fl_pack_arena a, uint32_t *order, const uint64_t *key, size_t n);
uint64_t fl_pack_random(uint64_t *state);
/* Non-negative numbers as integers that compare alike. */
uint64_t fl_pack_order_of(double v);

/* ---- setup.c ---- */

/* Checks the input, and fills everything in `r` from `count` on. 0, -EINVAL or -ENOMEM. */
int fl_pack_setup(struct fl_pack_run *r);
/* r->floor from the best layout of the first `n` buffers: the tops of what lies there. False: no scratch. */
bool fl_pack_floors(struct fl_pack_run *r, uint32_t n);

/* ---- pack.c ---- */

/* Counts one placement that took about `cost` microseconds. True: stop, time or work is spent. */
bool fl_pack_spend(struct fl_pack_run *r, uint32_t cost);
/* r->offset is a layout of part `p`: it becomes its best if it is, and goes out if the whole is lower by it. */
void fl_pack_keep(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height);

/* ---- skyline.c ---- */

/* A layout in r->offset of part `p`, by key 0..FL_PACK_KEYS - 1, blurred at random by up to `blur` (0: exact).  Returns its
 * height; UINT64_MAX when it would be `limit` or more, or time ran out and `must` is not set, or scratch. */
uint64_t fl_pack_skyline(struct fl_pack_run *r, const struct fl_pack_part *p, unsigned key,
                         double blur, uint64_t limit, bool must);
extern const char *const fl_pack_key_name[FL_PACK_KEYS];

/* ---- fit.c ---- */

/* Buffers of a part that are not too many. */
enum { FL_PACK_FIT_MOST = 3000, FL_PACK_STAY_MOST = 10000 };

/* As fl_pack_skyline: by decreasing size (0), life (1) or both (2). */
uint64_t fl_pack_first_fit(struct fl_pack_run *r, const struct fl_pack_part *p, unsigned by,
                           uint64_t limit);
/* Likewise, with as many as can be where they were before. */
uint64_t fl_pack_stay(struct fl_pack_run *r, const struct fl_pack_part *p, uint64_t limit);

/* ---- search.c ---- */

enum { FL_PACK_SEARCH_MOST = 6000 }; /* buffers of a part: a node costs a look at each */

/* A dive or a few, by turns at `goal` and between it and the best height. New layouts go to fl_pack_keep; the part's bound
 * rises when a height is shown to be too low. */
void fl_pack_search(struct fl_pack_run *r, uint32_t part, struct fl_pack_hunt *h, uint64_t goal);

#endif
