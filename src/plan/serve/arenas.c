/* All arenas: which context gets which, what they lend, and how they age. */
#include "plan/context.h"

/* Bytes of an arena whose tables the worker brings into memory at once: 0.3 % of them. Those of a
 * longer one come as they are used. */
static const size_t warm_most = (size_t)4 << 30;

struct fl_arena *fl_arena_new(void)
{
    fl_plan_lock();
    struct fl_arena *a = fl_plan.arenas;
    while (a != NULL && (a->use.owned || atomic_load(&a->height) != 0)) {
        a = a->next;
    }
    if (a == NULL && (a = fl_own_map(&fl_plan.memory, sizeof *a)) != NULL) {
        a->next = fl_plan.arenas;
        fl_plan.arenas = a;
    }
    if (a != NULL) {
        fl_assert(!a->use.owned && a->use.held == 0);
        a->use.owned = true;
    }
    fl_plan_unlock();
    return a;
}

void fl_arena_retire(struct fl_arena *a)
{
    fl_assert(a->use.owned);
    atomic_store(&a->draining, true);
    /* Comes before the look at the bitmap: a block is seen there, or its free sees `draining`. */
    atomic_thread_fence(memory_order_seq_cst);
    (void)fl_arena_hand_on(a);
    fl_plan_lock();
    a->use.owned = false;
    fl_plan_unlock();
}

bool fl_arena_was_thinned(struct fl_arena *a)
{
    atomic_thread_fence(memory_order_acquire); /* the caller has seen what was claimed */
    bool was = atomic_load(&a->thinned);

    fl_region_enter();
    if (was && fl_lock_acquire_unless_forking(&fl_plan.lock)) {
        fl_lock_release(&fl_plan.lock);
    }
    fl_region_leave();
    return was;
}

void fl_arena_warm(struct fl_arena *a)
{
    struct fl_range blocks = {0, 0}, part = {0, 0};

    if (!atomic_load_explicit(&a->cold, memory_order_relaxed)) {
        return;
    }
    fl_plan_lock();
    if (a->cold && fl_arena_is_open(a) && a->limit <= warm_most) {
        size_t granules = a->height >> FL_GRANULE_SHIFT;
        blocks = (struct fl_range){(uintptr_t)a->inner.block, granules * sizeof(struct fl_extent)};
        part = (struct fl_range){a->base, a->height};
    }
    a->cold = false;
    fl_plan_unlock();
    if (part.len != 0) {
        fl_inner_warm(fl_plan.region, blocks, part);
    }
}

uint64_t fl_plan_age(struct fl_region *r)
{
    uint64_t again = UINT64_MAX;
    struct fl_arena *next;

    uint64_t tick_ns = atomic_load(&fl_plan.config.tick_ns);

    if (fl_region_kept(r) == SIZE_MAX || tick_ns == 0) {
        return UINT64_MAX;
    }
    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = next) {
        next = a->next;
        if (atomic_load(&a->height) == 0) {
            continue;
        }
        a->use.idle = atomic_exchange(&a->use.used, false) ? 0 : a->use.idle + 1;
        if (a->use.idle >= FL_DECAY_TICKS || !a->use.owned) {
            (void)fl_arena_give_up(a);
        }
        again = atomic_load(&a->height) != 0 ? tick_ns : again;
    }
    return again;
}

size_t fl_plan_release(void)
{
    size_t given = 0;

    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = a->next) {
        given += fl_arena_give_up(a);
    }
    return given;
}
