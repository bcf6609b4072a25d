/* What piles up while the lock is held, or before it is, is settled by who takes and releases it:
 * what shards and other threads have done meanwhile, frees of handlers, the accounts' peaks. */
#include "region/state/lock.h"
#include "region/serve/shard.h"
#include "region/check.h"
#include "region/fork.h"
#include "region/settle.h"
#include "region/special/user_remapped.h"
#include "region/state/counts.h"

/* To disarm it would be to wait for the worker, which may want this lock: its map goes, and with it
 * what is armed. And how much of it is there is not looked at. */
static void drop_if_lazy(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    if (e->content == FL_CONTENT_LAZY &&
        fl_vspace_decommit(&r->space.window, fl_extent_range(e)) == 0) {
        e->content = FL_CONTENT_EMPTY;
    }
    e->armed = false;
}

static void take_over(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
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
    fl_assert(fl_region_is_locked(r));
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
    fl_assert(fl_region_is_locked(r));
#if FL_CHECK_LEVEL >= 3
    static unsigned turn; /* Lock: region */
    const char *broken = r->zones.seeded && turn++ % 64 == 0 ? fl_region_check_locked(r) : NULL;
    if (broken != NULL) {
        fl_fatal(broken);
    }
#endif
}

/* The lock has just been taken. */
static void begin(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (fl_shards_open(&r->shards) != 1) {
        fl_shards_gather(r);
    }
    if (r->fork.orphans) {
        fl_region_adopt_orphans(r);
    }
}

static void settle_accounts(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    r->settle.due = FL_CHECK_LEVEL >= 3;
    if (r->depots.uses >= FL_DEPOT_USES) {
        fl_depot_resize(r);
    } else if (r->held.in_use > r->held.in_use_peak + r->depots.seen) {
        fl_depot_note_peak(r);
    }
}

/* It is about to be released. */
static void end(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (atomic_load_explicit(&r->caches.deferred, memory_order_relaxed) != NULL) {
        take_over_deferred(r);
    }
    settle_accounts(r);
    check_now_and_then(r);
    if (fl_shards_open(&r->shards) != 1) {
        fl_shards_judge(r);
    }
}

void fl_settle_start(struct fl_region *r)
{
    r->settle = (struct fl_settle){.begin = begin, .end = end, .due = FL_CHECK_LEVEL >= 3};
}
