/* The figures of all contexts and arenas. */
#include "plan/context.h"

#include <string.h>

_Static_assert(offsetof(struct fl_plan_stats, hits) == 0 &&
                   offsetof(struct fl_plan_stats, arenas) == sizeof(struct fl_plan_counters),
               "what contexts count comes first");

/* Blocks that the program has there: a granule that is claimed, and begins one. Lock: plan. */
static size_t live_in(const struct fl_arena *a)
{
    size_t n = 0;

    fl_assert(fl_lock_is_held(FL_RANK_PLAN, 1));
    for (size_t i = 0; i < a->claimed.granules; i += FL_BITMAP_BITS) {
        uint64_t bits =
            atomic_load_explicit(&a->claimed.word[i / FL_BITMAP_BITS], memory_order_relaxed);
        for (; bits != 0; bits &= bits - 1) {
            const struct fl_extent *e = &a->inner.block[i + (size_t)__builtin_ctzll(bits)];
            n += fl_extent_state(e) == FL_EXTENT_LIVE;
        }
    }
    return n;
}

void fl_plan_stats_read(struct fl_plan_stats *out)
{
    struct fl_plan_counters sum = {0};
    struct fl_step_context *c = fl_plan_mine;

    /* What others have not counted yet in their steps they will when these end. */
    if (c != NULL && !atomic_exchange_explicit(&c->inside, true, memory_order_relaxed)) {
        fl_replay_count(c);
        atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    }
    fl_plan_lock();
    uint32_t n = atomic_load_explicit(&fl_plan.ncontexts, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        fl_plan_add_counters(&sum, &fl_plan.context[i]->stats);
    }
    *out = (struct fl_plan_stats){0};
    memcpy(out, &sum, sizeof sum);
    for (const struct fl_arena *a = fl_plan.arenas; a != NULL; a = a->next) {
        if (fl_arena_is_open(a)) {
            out->arenas++;
            out->live_blocks += live_in(a);
            out->arena_bytes += atomic_load_explicit(&a->limit, memory_order_relaxed);
            size_t absent = fl_bitmap_count(&a->absent, a->absent.granules),
                   held = (a->absent.granules - absent) << FL_GRANULE_SHIFT,
                   used = fl_bitmap_count(&a->claimed, a->claimed.granules) << FL_GRANULE_SHIFT;
            out->free_bytes += held - fl_min(held, used); /* blocks come and go meanwhile */
        }
    }
    fl_plan_unlock();
}
