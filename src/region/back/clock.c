/* The clock by which free memory ages: the worker's, and the one of requests and frees where there
 * is none. */
#include "region/back/purge.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/state/tick.h"
#include "region/supply/look.h"

static bool anything_to_age(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    FL_EACH_ZONE(r, z)
    {
        bool pieces = !TAILQ_EMPTY(&z->pieces) && fl_pieces_may_go_one_day(r);
        if (!TAILQ_EMPTY(&z->by_age) || pieces || !TAILQ_EMPTY(&z->rough)) {
            return true;
        }
    }
    if (fl_reserve_is_mapped(&r->pages.reserve) || fl_depot_has_some(r) ||
        fl_shards_have_some(&r->shards)) {
        return true;
    }
    for (const struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        if (fl_cache_has_some(c)) {
            return true;
        }
    }
    return false;
}

bool fl_region_tick(struct fl_region *r, uint32_t age)
{
    struct fl_memory m;

    fl_assert(!fl_region_is_locked(r));
    atomic_fetch_add_explicit(&r->epoch, 1, memory_order_relaxed);
    /* No lock held: what holds us up there holds up no other thread. */
    fl_memory_look(&m, &r->look.worker_scratch);
    fl_region_lock(r);
    size_t surplus = fl_region_note_memory(r, &m);
    fl_pieces_note_tick(r);
    bool tight = fl_region_is_tight(r);
    fl_region_unlock(r);
    if (surplus != 0) {
        (void)fl_region_purge_some(r, 0, surplus);
    }
    /* What others could need does not wait for its age. */
    (void)fl_region_purge(r, tight ? 1 : age);
    fl_region_lock(r);
    /* Raised before the look: a free after the look sees it and calls. */
    bool wanted = atomic_exchange(&r->wants_worker, true);
    bool more = anything_to_age(r);
    if (more && !wanted) {
        atomic_store(&r->wants_worker, false);
    }
    fl_region_unlock(r);
    return more;
}

bool fl_tick_is_never_due(const struct fl_region *r)
{
    return FL_LIKELY(r->clock.has_worker) || r->config.tick_ns == 0;
}

bool fl_tick_is_due(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    if (fl_tick_is_never_due(r)) {
        return false;
    }
    uint64_t now = fl_sys.now_ns();
    if (r->clock.due_ns != 0 && now < r->clock.due_ns) {
        return r->clock.is_behind;
    }
    bool first = r->clock.due_ns == 0;
    r->clock.due_ns = now + r->config.tick_ns;
    if (!first) { /* one, however long no call came: a step that begins now keeps its memory */
        atomic_fetch_add_explicit(&r->epoch, 1, memory_order_relaxed);
        r->clock.ages_more = r->hooks.age_more != NULL;
    }
    return !first;
}

void fl_region_age_alone(struct fl_region *r)
{
    if (FL_LIKELY(r->clock.has_worker) || !fl_region_lock_unless_forking(r)) {
        return;
    }
    bool tick = fl_tick_is_due(r), more = r->clock.ages_more;
    fl_region_unlock(r);
    fl_tick_after(r, tick, more);
}

void fl_region_age_more(struct fl_region *r)
{
    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    bool mine = r->clock.ages_more && !r->clock.is_aging && !r->clock.has_worker;
    r->clock.ages_more = r->clock.ages_more && !mine;
    r->clock.is_aging |= mine;
    fl_region_unlock(r);
    if (mine) {
        (void)r->hooks.age_more(r);
        fl_region_lock(r);
        r->clock.is_aging = false;
        fl_region_unlock(r);
    }
}

void fl_region_set_worker(struct fl_region *r, bool there)
{
    fl_region_lock(r);
    r->clock.has_worker = there;
    atomic_store(&r->wants_worker, !there && fl_region_is_worth_worker(r));
    fl_region_unlock(r);
}
