/* The region's lock with its signal guard, giving back, and statistics. */
#include "region/check.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/fork.h"
#include "region/special/user_remapped.h"
#include "region/state/lock.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/serve/take.h"

#include <errno.h>
#include <string.h>

bool fl_region_is_outer(void)
{
    return fl_busy_depth == 1;
}

bool fl_region_is_closed(const struct fl_region *r)
{
    return fl_region_busy() || atomic_load_explicit(&r->fork.threads, memory_order_relaxed) != 0;
}

/* The lock is held. */
static void begin(struct fl_region *r)
{
    r->stats.locks++;
    if (FL_UNLIKELY(r->fork.orphans)) {
        fl_region_adopt_orphans(r);
    }
}

/* The first one is held: how many there are is known. */
static FL_COLD void lock_others(struct fl_region *r)
{
    for (unsigned i = 1; i < fl_shards_open(&r->shards); i++) {
        fl_lock_acquire_behind(&r->shards.of[i].lock);
    }
    fl_shards_gather(r);
}

static FL_COLD void unlock_others(struct fl_region *r)
{
    fl_shards_judge(r);
    for (unsigned i = fl_shards_open(&r->shards); --i != 0;) {
        fl_lock_release(&r->shards.of[i].lock);
    }
}

static FL_INLINE void lock_rest(struct fl_region *r)
{
    if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1)) {
        lock_others(r);
    }
    begin(r);
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

/* To disarm it would be to wait for the worker, which may want this lock: its map goes, and with it
 * what is armed. And how much of it is there is not looked at. */
static void drop_if_lazy(struct fl_region *r, struct fl_extent *e)
{
    if (e->content == FL_CONTENT_LAZY &&
        fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0) {
        e->content = FL_CONTENT_EMPTY;
    }
    e->armed = false;
}

static void take_over(struct fl_region *r, struct fl_extent *e)
{
    if (FL_UNLIKELY(fl_extent_is_user_remapped(e))) {
        if (fl_hugetlb_leave(r, e)) {
            fl_remapped_settle(r, e, fl_remapped_renew(r, e));
        }
    } else {
        drop_if_lazy(r, e);
        e->unreclaimable = e->len;
        fl_region_give_locked(r, e);
    }
}

/* What needs a system call the worker leaves to others: held up there, it would hold the lock. */
static bool may_take_over(const struct fl_extent *e)
{
    return fl_thread == FL_THREAD_PROGRAM ||
           (!fl_extent_is_user_remapped(e) && e->content != FL_CONTENT_LAZY);
}

static void take_over_deferred(struct fl_region *r)
{
    /* acquire: pairs with fl_region_defer */
    struct fl_extent *e = atomic_exchange_explicit(&r->caches.deferred, NULL, memory_order_acquire);

    fl_lock_permit_calls(true);
    while (e != NULL) {
        struct fl_extent *next = e->next;
        if (may_take_over(e)) {
            take_over(r, e);
        } else {
            fl_region_defer(r, e);
        }
        e = next;
    }
    fl_lock_permit_calls(false);
}

/* The whole structure, at FL_CHECK_LEVEL 3: each time would be quadratic. */
static void check_now_and_then(struct fl_region *r)
{
#if FL_CHECK_LEVEL >= 3
    static unsigned turn; /* Lock: region */
    const char *broken = r->zones.seeded && turn++ % 64 == 0 ? fl_region_check_locked(r) : NULL;
    if (broken != NULL) {
        fl_fatal(broken);
    }
#else
    (void)r;
#endif
}

void fl_region_unlock(struct fl_region *r)
{
    /* Else a handler has forked amid this, and this is the child. */
    fl_assert(fl_lock_is_busy(&r->shards.of[0].lock) || !fl_home_is_here());
    if (FL_UNLIKELY(atomic_load_explicit(&r->caches.deferred, memory_order_relaxed) != NULL)) {
        take_over_deferred(r);
    }
    check_now_and_then(r);
    if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1)) {
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
    e->next = atomic_load_explicit(&r->caches.deferred, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&r->caches.deferred, &e->next, e,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

/* The kernel's own rule (overcommit_memory=0) refuses one map of more than all RAM and swap
 * (__vm_enough_memory() in mm/util.c), and the window is not under that rule: the next allocator
 * maps such a block, or is refused it. */
bool fl_region_is_absurd(const struct fl_region *r, size_t len)
{
    return len > r->pressure.absurd_above;
}

/* What waits in depots is no need of the program's. */
void fl_region_note_peak(struct fl_region *r)
{
    r->depots.seen = fl_min(fl_depot_bytes(r), r->stats.in_use);
    r->stats.in_use_peak = fl_max(r->stats.in_use_peak, r->stats.in_use - r->depots.seen);
}

void fl_region_count_use(struct fl_region *r, int64_t in_use)
{
    fl_assert(in_use >= 0 || r->stats.in_use >= (uint64_t)-in_use);
    r->stats.in_use += (uint64_t)in_use;
    r->stats.in_use_most = fl_max(r->stats.in_use_most, r->stats.in_use);
    if (r->stats.in_use > r->stats.in_use_peak + r->depots.seen) {
        fl_region_note_peak(r);
    }
    if (++r->depots.uses % FL_DEPOT_USES == 0) {
        fl_depot_resize(r);
    }
    if (fl_region_counted(r) > r->stats.populated_peak) {
        r->stats.populated_peak = fl_region_counted(r);
    }
    if (!r->clock.has_worker && fl_region_is_worth_worker(r)) {
        atomic_store_explicit(&r->wants_worker, true, memory_order_relaxed);
    }
}

void fl_region_count_given(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED || fl_extent_state(e) == FL_EXTENT_LIVE);
    fl_left_note_gone(r, e);
    if (e->content == FL_CONTENT_LAZY) { /* whatever of it is there: the purge will tell */
        e->content = FL_CONTENT_POPULATED;
        e->left = FL_LEFT_HOLLOW;
        r->held.populated += e->len;
    }
    r->stats.gives++;
    fl_region_count_use(r, -(int64_t)e->len);
}

void fl_region_give_locked(struct fl_region *r, struct fl_extent *e)
{
    fl_region_count_given(r, e);
    (void)fl_fit_insert(r, e);
}

size_t fl_region_give_chain(struct fl_region *r, struct fl_extent *e)
{
    struct fl_extent *run = NULL;
    size_t before = r->stats.in_use, n = 0;

    for (struct fl_extent *next; e != NULL; e = next, n++) {
        next = e->next;
        e->unreclaimable = e->len;
        fl_region_count_given(r, e);
        run = fl_fit_join(r, run, e);
    }
    if (run != NULL) {
        (void)fl_fit_insert(r, run);
    }
    fl_region_note_back(r, before - r->stats.in_use);
    return n;
}

/* May a LAZY extent be kept? Else it goes back to the kernel at once. */
static bool is_worth_keeping(struct fl_region *r, const struct fl_extent *e)
{
    bool locked = atomic_load_explicit(&r->locked, memory_order_relaxed); /* and so all there */

    if (!locked &&
        ((e->left & FL_LEFT_SPARSE) != 0 || !fl_residency_is_dense(fl_extent_range(e)))) {
        return false;
    }
    fl_pagemap_populate(&r->space, fl_extent_range(e)); /* it will be cut into others */
    fl_region_lock(r);
    bool fits = r->config.limit == 0 || fl_region_counted(r) + e->len <= r->config.limit;
    fl_region_unlock(r);
    return fits;
}

static void give_handled(struct fl_region *r, struct fl_extent *e)
{
    fl_region_lock(r);
    bool may = fl_hugetlb_leave(r, e);
    fl_region_unlock(r);
    if (!may) {
        return;
    }
    bool renewed = fl_remapped_renew(r, e);
    fl_region_lock(r);
    fl_remapped_settle(r, e, renewed);
    fl_region_unlock(r);
}

/* While it is the caller's alone: what is written later stays. Returns bytes. */
static size_t leave_to_kernel(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_range part = fl_extent_range(e);
    bool scarce = fl_region_is_scarce(r);

    if (!scarce && !atomic_load_explicit(&r->tight, memory_order_relaxed)) {
        return 0;
    }
    part = scarce ? part : fl_range_inner(part, fl_page.huge);
    return part.len != 0 && fl_region_soften_part(r, part) ? part.len : 0;
}

void fl_region_give(struct fl_region *r, struct fl_extent *e)
{
    if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1) && fl_shard_give(r, e)) {
        fl_shards_look_if_due(r, &r->shards);
        return;
    }
    size_t len = e->len, unreclaimable = len;
    bool disarmed = fl_touch_disarm(r, e);

    if (FL_UNLIKELY(fl_extent_is_user_remapped(e))) {
        give_handled(r, e);
        fl_region_look_after(r, len);
        return;
    }
    bool gone = e->content == FL_CONTENT_LAZY && !(disarmed && is_worth_keeping(r, e)) &&
                fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0;

    if (FL_UNLIKELY(!gone && r->zones.placing.nodes != 0 && e->content == FL_CONTENT_LAZY)) {
        fl_zone_find(r, e);
    }
    if (!gone) {
        unreclaimable -= leave_to_kernel(r, e);
    }
    if (!fl_region_lock_unless_forking(r)) {
        fl_region_defer(r, e); /* LAZY counts as populated then, until a purge */
        return;
    }
    if (gone) {
        e->content = FL_CONTENT_EMPTY;
    }
    e->unreclaimable = unreclaimable;
    fl_region_give_locked(r, e);
    fl_region_unlock_and_look(r, len);
}

void fl_region_stats_read(struct fl_region *r, struct fl_stats_values *out)
{
    uint64_t hits = 0, hit_bytes = 0;

    fl_region_lock(r);
    struct fl_cached in = {fl_depot_blocks(r), fl_depot_bytes(r)};
    fl_region_note_peak(r);
    r->stats.in_use_most = fl_max(r->stats.in_use_most, r->stats.in_use);
    r->stats.populated_peak = fl_max(r->stats.populated_peak, r->held.populated);
    for (struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        hits += atomic_load_explicit(&c->stats.cache_hits, memory_order_relaxed);
        hit_bytes += atomic_load_explicit(&c->stats.hit_bytes, memory_order_relaxed);
        fl_cache_count(c, &in);
    }
    out->cached_bytes = in.bytes;
    out->requests = r->stats.takes + hits;
    out->cache_hits = hits;
    out->live_extents = r->stats.takes + r->stats.kept - r->stats.gives - in.blocks;
    out->frees = out->requests - out->live_extents;
    out->stalls = r->stats.stalls;
    out->lazy = r->stats.lazy;
    out->lazy_bytes = r->stats.lazy_bytes;
    out->served_bytes = r->stats.take_bytes + hit_bytes;
    out->refused = r->stats.refused;
    out->in_use_bytes = r->stats.in_use;
    out->in_use_peak_bytes = r->stats.in_use_most;
    out->populated_bytes = r->held.populated;
    out->populated_peak_bytes = r->stats.populated_peak;
    out->populate_bytes = __atomic_load_n(&r->stats.populate_bytes, __ATOMIC_RELAXED);
    out->populate_errors = __atomic_load_n(&r->stats.populate_errors, __ATOMIC_RELAXED);
    out->purge_bytes = r->stats.purge_bytes;
    out->move_bytes = __atomic_load_n(&r->stats.move_bytes, __ATOMIC_RELAXED);
    out->free_held_bytes = fl_region_free(r).bytes;
    out->stock_bytes = r->pages.reserve.held;
    out->rezero_bytes = r->stats.rezero_bytes;
    out->repair_bytes = __atomic_load_n(&r->stats.repair_bytes, __ATOMIC_RELAXED);
    out->releases = r->stats.releases;
    out->compactions = __atomic_load_n(&r->stats.compactions, __ATOMIC_RELAXED);
    out->rung = atomic_load_explicit(&r->pages.move.method, memory_order_relaxed);
    out->window_bytes = r->space.window.all.len;
    out->region_locks = r->stats.locks;
    fl_region_unlock(r);
}
