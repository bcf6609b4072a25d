/* What all shards' holder does for each: adds up what they did, takes what was left to them, says
 * what they may do by one lock. */
#include "region/free/fit.h"
#include "region/serve/shard.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

enum { SLACK_SHARE = 64 }; /* of what is in use, all of them together */
static const size_t slack_least = (size_t)1 << 20;

struct fl_extent *fl_shard_take_left(struct fl_shard *s)
{
    return atomic_load_explicit(&s->left, memory_order_relaxed) == NULL
               ? NULL
               : atomic_exchange_explicit(&s->left, NULL, memory_order_acquire);
}

void fl_shards_fork_child(struct fl_region *r)
{
    for (unsigned i = 0; i < fl_shards_open(&r->shards); i++) {
        for (struct fl_extent *e = fl_shard_take_left(&r->shards.of[i]), *next; e != NULL;
             e = next) {
            next = e->next;
            fl_region_defer(r, e);
        }
    }
}

void fl_shard_note_longest(struct fl_region *r, struct fl_shard *s)
{
    fl_assert(fl_region_is_locked(r));
    atomic_store_explicit(&s->longest, fl_tree_longest(&r->zones.of[s - r->shards.of].populated),
                          memory_order_relaxed);
}

/* So that all shards together pass the most that was in use by little: by a 64th, or by a MiB each.
 * What they take is in memory already. */
static size_t slack(const struct fl_region *r)
{
    size_t most = r->held.in_use_peak + r->depots.seen;
    size_t below = most - fl_min(most, r->held.in_use);
    size_t together = fl_max(below, r->held.in_use / SLACK_SHARE);

    return fl_max(together / fl_shards_open(&r->shards), slack_least);
}

void fl_shards_judge(struct fl_region *r)
{
    bool ordinary = !fl_region_is_tight(r) && !fl_region_is_scarce(r) && !r->fork.orphans &&
                    r->pressure.surplus == 0 && fl_tick_is_never_due(r);

    fl_assert(fl_region_is_locked(r));
    atomic_store_explicit(&r->shards.ordinary, ordinary, memory_order_relaxed);
    r->shards.slack = slack(r);
    for (unsigned i = 0; i < fl_shards_open(&r->shards); i++) {
        fl_shard_note_longest(r, &r->shards.of[i]);
    }
}

static void add_up(struct fl_region *r, struct fl_shard *s)
{
    const struct fl_shard_counts *c = &s->since;

    fl_assert(fl_region_is_locked(r));
    r->stats.takes += c->takes;
    r->stats.take_bytes += c->take_bytes;
    r->stats.kept += c->kept;
    r->stats.gives += c->gives;
    r->stats.locks += c->locks;
    r->held.in_use += c->in_use;
    r->pressure.since_look += c->came_back;
    r->pieces.since += c->came_back;
    r->depots.uses += (unsigned)(c->takes + c->gives);
    s->since = (struct fl_shard_counts){0};
}

void fl_shards_gather(struct fl_region *r)
{
    unsigned n = fl_shards_open(&r->shards);

    fl_assert(fl_region_is_locked(r));
    for (unsigned i = 0; i < n; i++) {
        add_up(r, &r->shards.of[i]);
    }
    fl_region_count_use(r, 0);
    for (unsigned i = n;
         i-- > 0;) { /* the first one's descriptors come last: others take of them */
        (void)fl_region_give_chain(r, fl_shard_take_left(&r->shards.of[i]));
        fl_extent_restock(&r->space, i);
    }
}
