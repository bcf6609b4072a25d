/* Looks at the memory: reads of procfs and of control groups' files, which take from 10 us to as
 * long as the kernel likes. So no lock of the region's is held meanwhile, and who needs no look
 * waits for none.
 *
 * A thread that needs one leaves the region's lock, looks or waits for the look of another thread,
 * comes back, and decides anew. One thread looks at a time. Those that wait share its answer if the
 * look began after they had asked; else one of them looks again. What was granted since the look
 * began is taken off the answer: its pages may not have been counted yet. The worker looks for
 * itself.
 * State: r->look, under r->pages.asking; it comes before the region's. */
#include "region/state/budget.h"
#include "region/state/lock.h"

static void forget_held(struct fl_region *r)
{
    r->look.worker_scratch.held = NULL;
    r->look.worker_scratch.promises = false;
}

void fl_look_fork_child(struct fl_region *r)
{
    forget_held(r); /* the worker, which may have been writing there, is not here */
    r->look.worker_scratch.looks = 0;
    if (!fl_lock_release_in_child(
            &r->pages.asking)) { /* who had taken it over is not here, and was writing there */
        fl_lock_init(&r->pages.asking, FL_RANK_LOOK);
        r->look.scratch.looks = 0;
    }
}

void fl_look_make_table(struct fl_region *r)
{
    if (!fl_sys_is_confined()) {
        (void)fl_holes_reach(&r->pages.holes, r->space.first + fl_page.huge);
    }
}

/* What a request may be granted, and what was at that time. Lock: look. */
static void look_now(struct fl_region *r, size_t held)
{
    struct fl_look *l = &r->look;

    fl_assert(fl_lock_is_held(FL_RANK_LOOK, 1) && !fl_region_is_locked(r));
    atomic_fetch_add_explicit(&l->begun, 1, memory_order_relaxed);
    l->granted = atomic_load_explicit(&r->budget.granted, memory_order_relaxed);
    r->look.scratch.held = &held;
    fl_memory_look(&l->seen, &r->look.scratch);
    r->look.scratch.held = NULL;
    if (l->seen.keep != UINT64_MAX) {
        fl_look_make_table(r);
    }
}

static void take_off(uint64_t *room, uint64_t bytes)
{
    *room -= bytes < *room ? bytes : *room;
}

/* Of what was seen nothing is left that others were granted since. */
static void note(struct fl_region *r, const struct fl_memory *seen, size_t granted_then)
{
    struct fl_memory *m = &r->look.noted;
    size_t now = atomic_load_explicit(&r->budget.granted, memory_order_relaxed);
    size_t since = now - granted_then;

    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_lock_is_busy(&r->shards.of[0].lock));
    *m = *seen;
    if (since <= SIZE_MAX / 2) { /* else more was given up than granted */
        take_off(&m->headroom, since);
        take_off(&m->eager, since);
    }
    r->pressure.surplus = fl_max(r->pressure.surplus, fl_region_note_memory(r, m));
}

/* The worker's look, with no lock held: no other thread waits while it is held up there. */
static FL_APART void look_by_worker(struct fl_region *r)
{
    struct fl_memory seen;
    size_t granted = atomic_load_explicit(&r->budget.granted, memory_order_relaxed);
    size_t held = r->held.populated;

    fl_assert(fl_region_is_locked(r));
    fl_region_unlock(r);
    r->look.worker_scratch.held = &held;
    r->look.worker_scratch.promises = r->look.scratch.promises;
    fl_memory_look(&seen, &r->look.worker_scratch);
    forget_held(r);
    fl_region_lock(r);
    note(r, &seen, granted);
}

bool fl_look_unlocking(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (fl_thread != FL_THREAD_PROGRAM) {
        look_by_worker(r);
        return true;
    }
    uint32_t begun = atomic_load_explicit(&r->look.begun, memory_order_relaxed);
    size_t held = r->held.populated;

    if (atomic_load_explicit(&r->fork.threads, memory_order_relaxed) != 0) {
        return false; /* a fork has the region's lock next: not to be had until it is done */
    }
    fl_region_unlock(r);
    fl_region_enter(); /* a handler must not come here while the lock is held */
    bool looked = fl_lock_acquire_unless_forking(&r->pages.asking);
    if (looked && atomic_load_explicit(&r->look.begun, memory_order_relaxed) == begun) {
        look_now(r, held);
    }
    fl_region_lock(r);
    if (looked) { /* under both locks, so that looks are noted in their order */
        note(r, &r->look.seen, r->look.granted);
        fl_lock_release(&r->pages.asking);
    }
    fl_region_leave();
    return looked;
}

void fl_look_after_take(struct fl_region *r, size_t on_touch)
{
    fl_assert(!fl_region_is_locked(r));
    if (!fl_region_lock_unless_forking(r)) {
        return; /* the next one looks */
    }
    if (fl_look_unlocking(r) && on_touch > r->look.noted.headroom / 2) {
        atomic_store_explicit(&r->starved, true, memory_order_relaxed);
    }
    fl_region_unlock(r);
}

bool fl_region_counts_maps(struct fl_region *r)
{
    fl_region_lock(r); /* amid another thread's fork: as if they were counted */
    bool counts = !fl_look_unlocking(r) || r->look.noted.keep != UINT64_MAX;
    fl_region_unlock(r);
    return counts;
}
