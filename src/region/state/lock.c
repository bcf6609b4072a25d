/* The region's lock, with the guard against signal handlers. It takes and releases, no more: what
 * piled up meanwhile is settled by hooks, settle.c. */
#include "region/state/lock.h"

bool fl_region_is_outer(void)
{
    return fl_busy_depth == 1;
}

bool fl_region_is_closed(const struct fl_region *r)
{
    return fl_region_busy() || atomic_load_explicit(&r->fork.threads, memory_order_relaxed) != 0;
}

/* The first one is held: how many there are is known. */
static FL_COLD void lock_others(struct fl_region *r)
{
    for (unsigned i = 1; i < fl_shards_open(&r->shards); i++) {
        fl_lock_acquire_behind(&r->shards.of[i].lock);
    }
}

static FL_COLD void unlock_others(struct fl_region *r)
{
    for (unsigned i = fl_shards_open(&r->shards); --i != 0;) {
        fl_lock_release(&r->shards.of[i].lock);
    }
}

static FL_INLINE void lock_rest(struct fl_region *r)
{
    bool several = fl_shards_open(&r->shards) != 1;

    fl_assert(fl_region_is_locked(r));
    if (FL_UNLIKELY(several)) {
        lock_others(r);
    }
    r->stats.locks++;
    if (FL_UNLIKELY(several || r->fork.orphans)) {
        r->settle.begin(r);
    }
}

void fl_region_lock(struct fl_region *r)
{
    fl_region_enter();
    fl_lock_acquire(&r->shards.of[0].lock);
    lock_rest(r);
}

static FL_INLINE bool lock_by(struct fl_region *r, bool (*acquire)(struct fl_lock *l))
{
    fl_region_enter();
    if (!acquire(&r->shards.of[0].lock)) {
        fl_region_leave();
        return false;
    }
    lock_rest(r);
    return true;
}

bool fl_region_lock_unless_forking(struct fl_region *r)
{
    return lock_by(r, fl_lock_acquire_unless_forking);
}

bool fl_region_lock_soon(struct fl_region *r)
{
    return lock_by(r, fl_lock_acquire_soon);
}

void fl_region_unlock(struct fl_region *r)
{
    bool several = fl_shards_open(&r->shards) != 1;
    bool deferred = atomic_load_explicit(&r->caches.deferred, memory_order_relaxed) != NULL;

    /* Else a handler has forked amid this, and this is the child. */
    fl_assert(fl_lock_is_busy(&r->shards.of[0].lock) || !fl_home_is_here());
    if (FL_UNLIKELY(deferred || several || r->settle.due)) {
        r->settle.end(r);
    }
    if (FL_UNLIKELY(several)) {
        unlock_others(r);
    }
    fl_lock_release(&r->shards.of[0].lock);
    fl_region_leave();
}

void fl_region_defer(struct fl_region *r, struct fl_extent *e)
{
    /* Without a region the block is the caller's alone, and no request gets its addresses again. */
    if (!fl_home_is_here()) {
        (void)fl_vspace_decommit(&r->space.window, fl_extent_range(e));
        return;
    }
    fl_assert(fl_extent_state(e) != FL_EXTENT_FREE);
    e->next = atomic_load_explicit(&r->caches.deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&r->caches.deferred, &e->next, e,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}
