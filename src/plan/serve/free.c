/* What becomes of a planned block: it is freed, by any thread and without a lock, or realloc makes
 * it longer or shorter in place. */
#include "plan/context.h"

#include <errno.h>

/* Was it the last one? */
static FL_COLD void drain(struct fl_arena *a)
{
    int saved = errno;

    if (!fl_region_busy()) {
        fl_arena_drop_if_empty(a);
    }
    errno = saved;
}

/* Of several words of the bitmap. */
static FL_APART void give_long(struct fl_arena *a, struct fl_extent *e)
{
    size_t granule = (size_t)(e - a->inner.block);

    fl_assert(granule + fl_granules(e->len) <= a->claimed.granules);
    fl_bitmap_give(&a->claimed, granule, fl_granules(e->len));
    if (FL_UNLIKELY(atomic_load(&a->draining))) {
        drain(a);
    }
}

static FL_INLINE void give_block(struct fl_arena *a, struct fl_extent *e)
{
    size_t word = ((uintptr_t)e - (uintptr_t)a->inner.block) / (FL_BITMAP_BITS * sizeof *e);
    uint64_t mask = e->planned.mask;

    fl_assert((size_t)(e - a->inner.block) < a->claimed.granules);
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    if (FL_UNLIKELY(mask == 0)) {
        give_long(a, e);
        return;
    }
    fl_bits_give(&a->claimed.word[word], mask);
    if (FL_UNLIKELY(atomic_load(&a->draining))) {
        drain(a);
    }
}

static FL_COLD void give_handled(struct fl_arena *a, struct fl_extent *e)
{
    int saved = errno;

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    if (fl_inner_renew(fl_plan.region, e)) { /* else it stays claimed, for good */
        give_block(a, e);
    }
    errno = saved;
}

void fl_plan_give(struct fl_extent *e)
{
    struct fl_arena *a = (struct fl_arena *)e->inner; /* its first member */

    if (FL_UNLIKELY(fl_extent_is_user_remapped(e))) {
        give_handled(a, e);
    } else {
        give_block(a, e);
    }
}

/* Its owner alone fills it, and not in a handler that has interrupted just that. */
static bool fill_ours(struct fl_arena *a, size_t from, size_t n)
{
    struct fl_step_context *c = fl_plan_mine;

    if (c == NULL || c->serve.arena != a || fl_region_busy() ||
        atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        return false;
    }
    atomic_signal_fence(memory_order_seq_cst);
    bool filled = fl_arena_bring(a, from, n);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    return filled;
}

/* What is there is known once it is ours: until then it may go. */
static bool grow(struct fl_arena *a, size_t from, size_t n)
{
    if (!fl_bitmap_take(&a->claimed, from, n)) {
        return false;
    }
    if (fl_bitmap_are_free(&a->absent, from, n) || fill_ours(a, from, n)) {
        return true;
    }
    fl_bitmap_give(&a->claimed, from, n);
    return false;
}

bool fl_plan_resize(struct fl_extent *e, size_t len)
{
    struct fl_arena *a = (struct fl_arena *)e->inner; /* its first member */
    size_t first = (size_t)(e - a->inner.block);
    size_t had = fl_granules(e->len);
    size_t want = fl_granules(len);

    fl_assert(fl_extent_is_live(e) && had != 0 && want != 0);
    if (want != had && fl_extent_is_user_remapped(e)) {
        return false; /* no other block may have a part of it as it is */
    }
    if (len > e->planned.room || (want > had && !grow(a, first + had, want - had))) {
        return false;
    }
    e->len = len;
    e->planned.mask = fl_bitmap_mask(first, want);
    if (want < had) {
        fl_bitmap_give(&a->claimed, first + want, had - want);
    }
    return true;
}
