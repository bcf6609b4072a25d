/* Requests and frees by one shard's lock: see shard.h.
 *
 * Under it a thread changes FREE extents of that zone, their tree and queues, the descriptors that
 * the zone has for itself, and the shard's figures. All else is constant meanwhile, since who
 * changes it has all locks. A neighbour of another zone may be changing: it is looked at, and its
 * state and zone say that it is none of ours; for that a zone's descriptors know their zone before
 * they are used (fl_extent_restock). So blocks of two zones never merge.
 *
 * Which zone a block lies in changes under all locks (shard_open.c): who has come by its zone
 * without one looks again. */
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"
#include "region/serve/shard.h"

enum { LOOKS = 8 }; /* all know of frees after such a part of what calls for a look, at least */

void fl_shards_start(struct fl_region *r)
{
    for (unsigned i = 0; i < FL_SHARDS; i++) {
        fl_lock_init(&r->shards.of[i].lock, (enum fl_rank)(FL_RANK_REGION + i));
    }
    atomic_store_explicit(&r->shards.n, 1, memory_order_relaxed);
}

_Static_assert(FL_SHARDS <= 32, "a bit for each in an unsigned");

static bool lock(struct fl_shard *s, bool (*acquire)(struct fl_lock *l))
{
    fl_region_enter();
    if (!acquire(&s->lock)) {
        fl_region_leave();
        return false;
    }
    s->since.locks++;
    return true;
}

/* And what a handler that interrupted the lock's holder has freed, as fl_region_unlock. */
static void unlock(struct fl_region *r, struct fl_shard *s)
{
    fl_assert(fl_region_is_locked(r));
    fl_shard_note_longest(r, s);
    fl_lock_release(&s->lock);
    fl_region_leave();
    if (FL_UNLIKELY(atomic_load_explicit(&r->caches.deferred, memory_order_relaxed) != NULL) &&
        fl_region_lock_unless_forking(r)) {
        fl_region_unlock(r);
    }
}

static void leave_to(struct fl_region *r, struct fl_extent *e)
{
    struct fl_shard *s = &r->shards.of[fl_extent_zone(e)];

    fl_assert(fl_shards_have(&r->shards, fl_extent_zone(e)));
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    e->next = atomic_load_explicit(&s->left, memory_order_relaxed);
    /* release: pairs with the exchange of who takes the chain; sequentially consistent: comes
     * before the caller's look at wants_worker, see fl_cache_put */
    while (!atomic_compare_exchange_weak(&s->left, &e->next, e)) {
    }
}

/* Is there but one way to give it back? */
static bool is_plain(const struct fl_region *r, const struct fl_extent *e)
{
    return e->content == FL_CONTENT_POPULATED && e->len < FL_SHARDED_BELOW &&
           fl_shards_have(&r->shards, fl_extent_zone(e)) &&
           (e->left & ~(FL_LEFT_HOLLOW | FL_LEFT_UNSEEN)) == 0 && !fl_extent_is_user_remapped(e);
}

/* A block that is not plain is deferred: it wants all locks. */
static void leave(struct fl_region *r, struct fl_extent *e)
{
    if (is_plain(r, e)) {
        leave_to(r, e);
    } else {
        fl_region_defer(r, e);
    }
}

static FL_COLD void leave_chain(struct fl_region *r, struct fl_extent *e)
{
    for (struct fl_extent *next; e != NULL; e = next) {
        next = e->next;
        leave(r, e);
    }
}

static bool is_ordinary(const struct fl_region *r)
{
    return atomic_load_explicit(&r->shards.ordinary, memory_order_relaxed);
}

/* `e` lies in the shard's zone. Lock: the shard's. */
static void count_back(struct fl_shard *s, struct fl_extent *e)
{
    e->unreclaimable = e->len;
    s->since.gives++;
    s->since.in_use -= e->len;
    s->since.came_back += e->len;
}

/* Does it lie here? Else it is left to the shard where it does. Lock: the shard's. */
static bool is_here(struct fl_region *r, const struct fl_shard *s, struct fl_extent *e)
{
    bool here = FL_LIKELY(is_plain(r, e)) && fl_extent_zone(e) == (unsigned)(s - r->shards.of);

    fl_assert(fl_region_is_locked(r));
    if (!here) {
        leave(r, e);
    }
    return here;
}

/* All of a chain. Lock: the shard's. */
static void put_down_chain(struct fl_region *r, struct fl_shard *s, struct fl_extent *e)
{
    struct fl_extent *run = NULL;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *next; e != NULL; e = next) {
        next = e->next;
        if (is_here(r, s, e)) {
            count_back(s, e);
            run = fl_fit_join(r, run, e);
        }
    }
    if (run != NULL) {
        (void)fl_fit_insert(r, run);
    }
}

static struct fl_extent *take_from(struct fl_region *r, struct fl_shard *s, struct fl_cache *own,
                                   size_t len)
{
    unsigned zone = (unsigned)(s - r->shards.of);

    fl_assert(fl_region_is_locked(r));
    put_down_chain(r, s, fl_shard_take_left(s));
    put_down_chain(r, s, fl_depot_trim(r, own));
    if (fl_extent_spare(&r->space, zone) == 0) {
        return NULL;
    }
    struct fl_extent *e = fl_fit_first(&r->zones.of[zone].populated, len, fl_page.base);
    if (e == NULL || !fl_carve_is_plain(e, e->base, len)) {
        return NULL;
    }
    unsigned n;
    e = fl_depot_carve(r, own, e, len, &n);
    s->since.takes++;
    s->since.take_bytes += len;
    s->since.kept += n - 1;
    s->since.in_use += n * len;
    return e;
}

/* Has so much come back that all are to know? As much may have to each of the others. */
static bool is_due(const struct fl_region *r, const struct fl_shard *s)
{
    size_t every = r->pressure.look_after;
    size_t rest = every - fl_min(r->pressure.since_look, every);
    unsigned n = fl_shards_open(&r->shards);

    fl_assert(fl_region_is_locked(r));
    return s->since.came_back >= fl_max(rest / n, every / LOOKS / n);
}

static void unlock_as_due(struct fl_region *r, struct fl_shard *s)
{
    fl_assert(fl_region_is_locked(r));
    if (FL_UNLIKELY(is_ordinary(r) && is_due(r, s))) {
        atomic_store_explicit(&r->shards.due, true, memory_order_relaxed);
    }
    unlock(r, s);
}

/* NULL, and no *more: no other shard may serve it either. The lock is held; it is released. */
static struct fl_extent *try(struct fl_region *r, struct fl_shard *s, struct fl_cache *own,
                             size_t len, bool *more)
{
    struct fl_extent *e = NULL;

    fl_assert(fl_region_is_locked(r));
    /* May it take more before all know of it? Fewer bytes than all know of are no peak. */
    bool has_slack = (int64_t)s->since.in_use < (int64_t)r->shards.slack;
    *more = is_ordinary(r) && has_slack && !fl_left_is_sparse(r, len);
    if (*more) {
        e = take_from(r, s, own, len);
    }
    unlock_as_due(r, s);
    return e;
}

/* From one that has had as much lately, and need not be waited for. *busy: those that would have to
 * be, a bit each. */
static struct fl_extent *take_from_others(struct fl_region *r, unsigned here, struct fl_cache *own,
                                          size_t len, bool *more, unsigned *busy)
{
    unsigned n = fl_shards_open(&r->shards);
    struct fl_extent *e = NULL;

    for (unsigned i = 1; i < n && e == NULL && *more; i++) {
        unsigned at = (here + i) % n;
        struct fl_shard *s = &r->shards.of[at];
        if (atomic_load_explicit(&s->longest, memory_order_relaxed) < len) {
            continue;
        }
        if (!fl_lock_is_busy(&s->lock) && lock(s, fl_lock_acquire_soon)) {
            e = try(r, s, own, len, more);
        } else {
            *busy |= 1u << at;
        }
    }
    return e;
}

/* One is waited for sooner than all. */
static struct fl_extent *take_waiting(struct fl_region *r, struct fl_cache *own, size_t len,
                                      bool *more, unsigned busy)
{
    struct fl_extent *e = NULL;

    for (; busy != 0 && e == NULL && *more; busy &= busy - 1) {
        struct fl_shard *s = &r->shards.of[__builtin_ctz(busy)];
        if (lock(s, fl_lock_acquire_unless_forking)) {
            e = try(r, s, own, len, more);
        }
    }
    return e;
}

struct fl_extent *fl_shard_take(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                                unsigned here)
{
    struct fl_shard *s = &r->shards.of[here];
    struct fl_extent *e = NULL;
    bool more = true;

    fl_assert(fl_shards_have(&r->shards, here));
    if (len >= FL_SHARDED_BELOW || align > fl_page.base || !is_ordinary(r)) {
        return NULL;
    }
    fl_shard_look(r, s);
    bool had = lock(s, fl_lock_acquire_soon);
    if (had) {
        e = try(r, s, own, len, &more);
    } else if (own != NULL) {
        e = fl_depot_take_longer(r, own, len);
    }
    unsigned busy = had ? 0 : 1u << here;
    if (e == NULL && r->zones.placing.nodes == 0) { /* no request crosses nodes */
        e = take_from_others(r, here, own, len, &more, &busy);
    }
    return e != NULL ? e : take_waiting(r, own, len, &more, busy);
}

/* The lock of the shard where it lies. NULL: it is busy. */
static struct fl_shard *lock_around(struct fl_region *r, const struct fl_extent *e)
{
    for (;;) {
        unsigned zone = fl_extent_zone(e);
        struct fl_shard *s = &r->shards.of[zone];
        if (!lock(s, fl_lock_acquire_soon)) {
            return NULL;
        }
        if (FL_LIKELY(fl_extent_zone(e) == zone)) {
            return s;
        }
        unlock(r, s);
    }
}

bool fl_shard_give(struct fl_region *r, struct fl_extent *e)
{
    if (!is_plain(r, e) || !is_ordinary(r)) {
        return false;
    }
    struct fl_shard *s = lock_around(r, e);
    if (s == NULL) {
        leave_to(r, e);
        return true;
    }
    bool may = is_ordinary(r);
    if (may) {
        put_down_chain(r, s, fl_shard_take_left(s));
        count_back(s, e);
        (void)fl_fit_insert(r, e);
    }
    unlock_as_due(r, s);
    return may;
}

bool fl_shard_give_chain(struct fl_region *r, struct fl_extent *e)
{
    unsigned zone = fl_extent_zone(e); /* another shard's would do, too */
    struct fl_shard *s = &r->shards.of[zone];

    if (!is_ordinary(r) || !fl_shards_have(&r->shards, zone)) {
        return false;
    }
    if (!lock(s, fl_lock_acquire_soon)) {
        leave_chain(r, e);
        return true;
    }
    bool may = is_ordinary(r);
    if (may) {
        put_down_chain(r, s, fl_shard_take_left(s));
        put_down_chain(r, s, e);
    }
    unlock_as_due(r, s);
    return may;
}
