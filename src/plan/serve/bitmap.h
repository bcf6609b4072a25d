/* Who has which granules of an arena: see bitmap.c. */
#ifndef FL_PLAN_SERVE_BITMAP_H
#define FL_PLAN_SERVE_BITMAP_H

#include "plan/plan.h"

/* One bit a granule. Threads: any, no lock; a claim that fails for a part leaves nothing behind.
 * Cost: the words that the range touches. */
struct fl_bitmap {
    _Atomic uint64_t *word;
    size_t granules;
};

enum { FL_BITMAP_BITS = 64 }; /* of a word */

/* The bits of `n` granules, where they are in one word; else 0. */
static inline uint64_t fl_bitmap_mask(size_t first, size_t n)
{
    size_t at = first % FL_BITMAP_BITS;

    fl_assert(n != 0);
    return n - 1 < FL_BITMAP_BITS - at ? (UINT64_MAX >> (FL_BITMAP_BITS - n)) << at : 0;
}

bool fl_bitmap_take(struct fl_bitmap *c, size_t first, size_t n);
void fl_bitmap_give(struct fl_bitmap *c, size_t first, size_t n);
/* Is none of them taken? */
bool fl_bitmap_are_free(const struct fl_bitmap *c, size_t first, size_t n);
/* How many of the first `n` are claimed. A hint: others claim meanwhile. */
size_t fl_bitmap_count(const struct fl_bitmap *c, size_t n);
/* Is nothing claimed? A hint as well. It has some granules. */
static inline bool fl_bitmap_is_clear(const struct fl_bitmap *c)
{
    return fl_bitmap_are_free(c, 0, c->granules);
}

#endif
