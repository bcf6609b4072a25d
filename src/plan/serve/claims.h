/* Who has which granules of an arena: see claims.c. */
#ifndef FL_PLAN_SERVE_CLAIMS_H
#define FL_PLAN_SERVE_CLAIMS_H

#include "plan/plan.h"

/* One bit a granule. Threads: any, no lock; a claim that fails for a part leaves nothing behind. Cost: the words that the
 * range touches. */
struct fl_claims {
    _Atomic uint64_t *word;
    size_t granules;
};

enum { FL_CLAIMS_BITS = 64 }; /* of a word */

/* The bits of `n` granules, where they are in one word; else 0. */
static inline uint64_t fl_claims_mask(size_t first, size_t n)
{
    size_t at = first % FL_CLAIMS_BITS;

    return n - 1 < FL_CLAIMS_BITS - at ? (UINT64_MAX >> (FL_CLAIMS_BITS - n)) << at : 0;
}

bool fl_claims_take(struct fl_claims *c, size_t first, size_t n);
void fl_claims_give(struct fl_claims *c, size_t first, size_t n);
/* Has nobody any of them? */
bool fl_claims_are_free(const struct fl_claims *c, size_t first, size_t n);
/* Where the shortest run of free granules that holds `n` of them at a multiple of `align` has room; SIZE_MAX: none. Only a
 * hint: others claim meanwhile. Cost: all words. */
size_t fl_claims_fit(const struct fl_claims *c, size_t n, size_t align);
/* How many of the first `n` are claimed. A hint as well. */
size_t fl_claims_count(const struct fl_claims *c, size_t n);
/* Is nothing claimed? A hint as well. */
bool fl_claims_none(const struct fl_claims *c);

#endif
