/* New memory is left to its first touch: what is known of such blocks. Included by region.h.
 * Lock: region, for what says so; the rest needs none. */
#ifndef FL_REGION_LEFT_H
#define FL_REGION_LEFT_H

#include "region/state/budget.h"

struct fl_region;
struct fl_fill_plan;
struct fl_extent;

/* Blocks of a kind have about one length: by its log2. */
enum { FL_LEFT_KINDS = 64 };
static inline unsigned fl_left_kind(size_t len)
{
    return 63 - (unsigned)__builtin_clzll(len);
}

/* What was touched of blocks when they were freed. */
struct fl_history {
    /* By log2 of a block's bytes: 1 + the percentage that was in memory when the last few were
     * freed; 0: no look was made. Relaxed: a hint. */
    _Atomic uint8_t touched[FL_LEFT_KINDS];
    uint8_t hole_turn[FL_LEFT_KINDS]; /* short requests of holes alone. Lock: region */
    /* Blocks of which little was touched, less those of which more was; relaxed: a hint. */
    _Atomic uint32_t sparse_seen;
    /* Blocks that are out and have FL_LEFT_SPARSE or are thin. Lock: region */
    uint32_t sparse_live;
};

/* Is new memory left to the first touch, but for what is known to be touched? */
bool fl_left_is_usual(const struct fl_region *r);
/* Is what a request for `len` bytes needs from the kernel left to the first touch? */
bool fl_left_wants(const struct fl_region *r, const struct fl_fill_plan *g, size_t len);
/* Were blocks of about that length in memory when they were freed? */
bool fl_left_was_touched(const struct fl_region *r, size_t len);
/* Is a new block of that kind to come by base pages? Lock: region. */
bool fl_left_is_sparse(const struct fl_region *r, size_t len);
/* With it more is asked for than the process can have in memory: not all of that will be touched,
 * and what is touched comes as it does without us. Lock: region. */
bool fl_left_is_beyond(const struct fl_region *r, size_t len);
/* Of a block that is out next to nothing was touched, for so much; a thin one fills. */
void fl_left_note_thin(struct fl_region *r, size_t len);
void fl_left_note_filled(struct fl_region *r, size_t len);
/* Holes in what was carved for the fill plan: left to the touch where they may not be filled
 * (`refusal`) or need not be. Some are left so that one learns by `live` what is touched of such
 * blocks; NULL: not by this one. Lock: region. */
void fl_left_note_holes(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *live,
                        enum fl_refusal refusal);
/* enum fl_left of what is carved for the fill plan. */
uint8_t fl_left_of(const struct fl_region *r, const struct fl_fill_plan *g);

#endif
