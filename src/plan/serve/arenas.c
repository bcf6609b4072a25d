/* All arenas: which context gets which, what they lend, and how they age. */
#include "plan/context.h"

struct fl_arena *fl_arena_new(void)
{
    fl_plan_lock();
    struct fl_arena *a = fl_plan.arenas;
    while (a != NULL && (a->use.owned || atomic_load(&a->height) != 0)) {
        a = a->next;
    }
    if (a == NULL && (a = fl_plan_map(sizeof *a)) != NULL) {
        a->next = fl_plan.arenas;
        fl_plan.arenas = a;
    }
    if (a != NULL) {
        a->use.owned = true;
    }
    fl_plan_unlock();
    return a;
}

void fl_arena_retire(struct fl_arena *a)
{
    atomic_store(&a->draining, true);
    /* Comes before the look at the bitmap: a block is seen there, or its free sees `draining`. */
    atomic_thread_fence(memory_order_seq_cst);
    (void)fl_arena_hand_on(a);
    fl_plan_lock();
    a->use.owned = false;
    fl_plan_unlock();
}

uint64_t fl_plan_age(struct fl_region *r)
{
    enum { IDLE_TICKS = 4 };
    uint64_t again = UINT64_MAX;
    struct fl_arena *next;

    if (fl_region_kept(r) == SIZE_MAX) {
        return UINT64_MAX;
    }
    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = next) {
        next = a->next;
        if (atomic_load(&a->height) == 0) {
            continue;
        }
        a->use.idle = atomic_exchange(&a->use.used, false) ? 0 : a->use.idle + 1;
        if (a->use.idle >= IDLE_TICKS || !a->use.owned) {
            (void)fl_arena_give_up(a);
        }
        again = atomic_load(&a->height) != 0 ? fl_plan.config.tick_ns : again;
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
