/* Bytes by what they are. Included by region.h. */
#ifndef FL_REGION_HELD_H
#define FL_REGION_HELD_H

#include "core/core.h"

/* Lock: region; to write, where a member is atomic; to add, of `filling`. */
struct fl_held {
    size_t populated;      /* R6 */
    size_t exempt;         /* of these, ISOLATED ones: not in memory yet, or no longer */
    _Atomic size_t moving; /* of ISOLATED extents whose pages move: counted twice for a moment */
    /* Of requests that fill addresses of their own, and what is free beside them in the same huge
     * pages. */
    _Atomic size_t filling;
    _Atomic size_t pinned; /* of PINNED extents */
    size_t in_use;         /* out of the trees: LIVE and CACHED */
    size_t in_use_most;    /* peak of that */
    size_t in_use_peak;    /* the same without what waits in depots: what the program needs */
    size_t populated_peak;
};

#endif
