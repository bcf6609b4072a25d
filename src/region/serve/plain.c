/* A request that is served by the front of free memory, as most are: the same first fit as in
 * take.c, where nothing else is to be decided or done. So it needs no fill plan, and the lock is
 * held for a third of the time. Whatever is out of the ordinary is left to take.c. */
#include "region/serve/shard.h"
#include "region/supply/carve.h"
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"
#include "region/serve/take.h"
#include "region/state/tick.h"

enum { NO_ZONE = FL_ZONES, ASKS = 64 /* misses at home, one of which asks where home is */ };

/* The zone of its requests; NO_ZONE: it has to ask. No lock held. */
static unsigned zone_of(struct fl_region *r, struct fl_cache *own, size_t len)
{
    if (FL_LIKELY(r->zones.placing.nodes == 0)) {
        return fl_shards_open(&r->shards) == 1 ? 0 : fl_shard_here(r, own);
    }
    bool home = own != NULL && len < r->zones.placing.alike_below && fl_cache_is_home(own);
    if (home && ++own->asks % ASKS == 0) {
        fl_cache_recall(r, own, len);
        home = fl_cache_is_home(own);
    }
    return home ? own->zone : NO_ZONE;
}

/* Is there but one way to serve it? Holes elsewhere are none of its business. Lock: region. */
static bool is_ordinary(const struct fl_region *r, size_t len)
{
    return r->zones.seeded && r->space.descriptors.stash.n != 0 && !fl_region_is_tight(r) &&
           !fl_left_is_sparse(r, len);
}

static struct fl_extent *first(struct fl_region *r, size_t len, size_t align, unsigned zone)
{
    struct fl_extent *e = fl_fit_first(&r->zones.of[zone].populated, len, align);

    return e != NULL && fl_carve_is_plain(e, fl_align_up(e->base, align), len) ? e : NULL;
}

static struct fl_extent *take(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                              unsigned zone)
{
    struct fl_extent *e;
    unsigned n;

    fl_assert(fl_region_is_locked(r));
    (void)fl_region_give_chain(r, fl_depot_trim(r, own));
    e = first(r, len, align, zone);
    if (e == NULL && own != NULL && fl_cache_drain(r, own, 0) != 0) {
        e = first(r, len, align, zone); /* merged, what waited there may do */
    }
    if (e == NULL) {
        return NULL;
    }
    e = fl_depot_carve(r, align <= fl_page.base ? own : NULL, e, len, &n);
    r->stats.takes++;
    r->stats.take_bytes += len;
    r->stats.kept += n - 1;
    fl_region_count_use(r, (int64_t)(n * len));
    fl_watch_new(r, e);
    return e;
}

struct fl_extent *fl_take_plain(struct fl_region *r, struct fl_cache *own, size_t len, size_t align)
{
    unsigned zone = zone_of(r, own, len);

    if (zone == NO_ZONE || fl_region_is_tight(r)) {
        return NULL;
    }
    if (FL_UNLIKELY(fl_shards_open(&r->shards) != 1) && fl_shards_have(&r->shards, zone)) {
        struct fl_extent *e = fl_shard_take(r, own, len, align, zone);
        fl_shards_look_if_due(r, &r->shards);
        if (e != NULL || r->zones.placing.nodes == 0) {
            return e;
        }
    }
    struct fl_shard *s = &r->shards.of[0];
    fl_shard_look(r, s);
    if (own != NULL && align <= fl_page.base) {
        if (!fl_region_lock_soon(r)) {
            return fl_depot_take_longer(r, own, len);
        }
    } else if (!fl_region_lock_unless_forking(r)) {
        return NULL;
    }
    struct fl_extent *e = is_ordinary(r, len) ? take(r, own, len, align, zone) : NULL;
    bool tick = e != NULL && fl_tick_is_due(r), more = e != NULL && r->clock.ages_more;
    bool look = r->pressure.since_look > r->pressure.look_after; /* by what waited in the cache */
    fl_region_unlock(r);
    fl_tick_after(r, tick, more);
    if (FL_UNLIKELY(look)) {
        fl_region_look_after(r, 0);
    }
    return e;
}
