/* The memory that a context's planned blocks lie in: one live extent of the region's, in granules.
 *
 * It is taken when a plan begins to serve and kept from step to step. When nothing of it is in use for a while, or memory is short, all
 * its bits are claimed at once, so that nobody gets anything of it any more, and it goes back. An arena that is too low for a new
 * plan drains: it serves no more, and whoever frees its last block gives it back. */
#include "plan/internal.h"

/* Everything, for good: true for one caller alone. */
static bool claim_all(struct fl_arena *a)
{
    return fl_claims_none(&a->claims) && fl_claims_take(&a->claims, 0, a->claims.granules);
}

static void close_arena(struct fl_arena *a)
{
    fl_inner_close(fl_plan.region, &a->inner);
    atomic_store_explicit(&a->height, 0, memory_order_release);
}

void fl_arena_drop_if_empty(struct fl_arena *a)
{
    if (atomic_load_explicit(&a->height, memory_order_acquire) != 0 && claim_all(a)) {
        close_arena(a);
    }
}

static bool has_words(struct fl_arena *a, size_t granules)
{
    size_t words = (granules + 63) / 64;

    if (words <= a->words) {
        return true;
    }
    _Atomic uint64_t *word = fl_plan_map(words * sizeof *word);
    if (word == NULL) {
        return false;
    }
    fl_plan_unmap((uintptr_t)a->claims.word, a->words * sizeof *word);
    a->claims.word = word;
    a->words = words;
    return true;
}

bool fl_arena_open(struct fl_arena *a, size_t height)
{
    struct fl_region *r = fl_plan.region;
    size_t len = fl_align_up(height, fl_page.huge), granules = len >> FL_GRANULE_SHIFT;

    if (!has_words(a, granules)) {
        return false;
    }
    struct fl_extent *e = fl_region_take(r, NULL, len, fl_page.huge, false);
    if (e == NULL) {
        return false;
    }
    a->inner.shift = FL_GRANULE_SHIFT;
    if (e->content != FL_CONTENT_POPULATED || fl_inner_open(r, &a->inner, e) != 0) {
        (void)fl_extent_claim(e, atomic_load_explicit(&r->epoch, memory_order_relaxed));
        fl_region_give(r, e);
        return false;
    }
    a->claims.granules = granules;
    a->base = e->base;
    for (size_t w = 0; w < a->words; w++) {
        atomic_store_explicit(&a->claims.word[w], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&a->draining, false, memory_order_relaxed);
    atomic_store_explicit(&a->height, len, memory_order_release);
    return true;
}

struct fl_extent *fl_arena_take(struct fl_arena *a, size_t granule, size_t len, size_t room)
{
    size_t n = (len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;

    if (FL_UNLIKELY(!fl_claims_take(&a->claims, granule, n))) {
        return NULL;
    }
    struct fl_extent *e = &a->inner.block[granule];
    e->len = len;
    e->zeroed.len = room;
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    return e;
}

void fl_plan_give(struct fl_extent *e)
{
    struct fl_arena *a = (struct fl_arena *)e->inner; /* its first member */
    size_t granule = (size_t)(e - a->inner.block);
    size_t n = (e->len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;

    if (FL_UNLIKELY(fl_extent_is_handled(e)) && !fl_inner_renew(fl_plan.region, e)) {
        return; /* it stays claimed: nobody gets it any more */
    }
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    fl_claims_give(&a->claims, granule, n);
    if (FL_UNLIKELY(atomic_load_explicit(&a->draining, memory_order_relaxed)) &&
        !fl_region_busy()) {
        fl_arena_drop_if_empty(a);
    }
}

bool fl_plan_resize(struct fl_extent *e, size_t len)
{
    struct fl_arena *a = (struct fl_arena *)e->inner; /* its first member */
    size_t first = (size_t)(e - a->inner.block);
    size_t had = (e->len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;
    size_t want = (len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;

    if (len > e->zeroed.len ||
        (want > had && !fl_claims_take(&a->claims, first + had, want - had))) {
        return false;
    }
    e->len = len;
    if (want < had) {
        fl_claims_give(&a->claims, first + want, had - want);
    }
    return true;
}
