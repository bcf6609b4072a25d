/* What a thread's slots displace waits in a depot; what is too much there goes back. */
#include "region/serve/shard.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

/* The claimed blocks of a chain. No lock is held. */
static void give_chain(struct fl_region *r, struct fl_extent *e)
{
    if (fl_shards_open(&r->shards) != 1 && fl_shard_give_chain(r, e)) {
        fl_shards_look_if_due(r, &r->shards);
        return;
    }
    if (fl_region_lock_unless_forking(r)) {
        fl_region_give_chain(r, e);
        fl_region_unlock_and_look(r, 0);
        return;
    }
    for (struct fl_extent *next; e != NULL; e = next) {
        next = e->next;
        fl_region_defer(r, e);
    }
}

bool fl_region_keep(struct fl_region *r, struct fl_cache *c, struct fl_extent *e)
{
    struct fl_extent *evicted;
    bool waits = fl_depot_put(r, c, e, &evicted);

    if (FL_UNLIKELY(evicted != NULL)) {
        give_chain(r, evicted);
    }
    return waits;
}
