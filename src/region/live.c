/* Where the region's figures lie. They are summed from outside, without the lock: each is a word
 * that is read whole; all together are no snapshot. */
#include "region/region.h"
#include "stats/stats.h"

#define COUNTER(what, field) FL_LIVE_WORD(what, struct fl_region_stats, field)
#define OF_CACHE(what, field) FL_LIVE_WORD(what, struct fl_cache, field)
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void add_counters(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {COUNTER(FL_LIVE_REQUESTS, takes)},
        {COUNTER(FL_LIVE_SERVED_BYTES, take_bytes)},
        {COUNTER(FL_LIVE_STALLS, stalls)},
        {COUNTER(FL_LIVE_LAZY, lazy)},
        {COUNTER(FL_LIVE_REFUSED, refused)},
        {COUNTER(FL_LIVE_POPULATE_BYTES, populate_bytes)},
        {COUNTER(FL_LIVE_PURGE_BYTES, purge_bytes)},
        {COUNTER(FL_LIVE_MOVE_BYTES, move_bytes)},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(&r->stats),
                                      .count = 1,
                                      .size = sizeof(struct fl_region_stats)},
                term, COUNT(term));
}

static void add_words(const struct fl_region *r, struct fl_live_page *p)
{
    fl_live_add_word(p, FL_LIVE_LIVE_BYTES, &r->held.in_use, sizeof r->held.in_use);
    fl_live_add_word(p, FL_LIVE_HELD_BYTES, &r->held.populated, sizeof r->held.populated);
    fl_live_add_word(p, FL_LIVE_RESERVE_BYTES, &r->pages.reserve.held,
                     sizeof r->pages.reserve.held);
    fl_live_add_word(p, FL_LIVE_STOCK_BYTES, &r->pages.reserve.held, sizeof r->pages.reserve.held);
    fl_live_add_word(p, FL_LIVE_RUNG, &r->pages.move.method, sizeof r->pages.move.method);
    fl_live_add_word(p, FL_LIVE_UNPROVEN, &r->pages.move.unproven, sizeof r->pages.move.unproven);
}

static void add_window(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {FL_LIVE_WORD(FL_LIVE_WINDOW, struct fl_range, base)},
        {FL_LIVE_WORD(FL_LIVE_WINDOW_BYTES, struct fl_range, len)},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(&r->space.window.all),
                                      .count = 1,
                                      .size = sizeof(struct fl_range)},
                term, COUNT(term));
}

/* What waits in slot `i` is in use for the region, and with no thread. */
#define SLOT(what, i)                                                                              \
    OF_CACHE(what, slot[i].len), .when = offsetof(struct fl_cache, slot[i].extent),                \
                                 .when_width = sizeof(void *)

/* Every cache ever made: the chain never gets shorter. */
static void add_caches(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {OF_CACHE(FL_LIVE_REQUESTS, stats.cache_hits)},
        {OF_CACHE(FL_LIVE_CACHE_HITS, stats.cache_hits)},
        {OF_CACHE(FL_LIVE_SERVED_BYTES, stats.hit_bytes)},
        {SLOT(FL_LIVE_RESERVE_BYTES, 0)},
        {SLOT(FL_LIVE_RESERVE_BYTES, 1)},
        {SLOT(FL_LIVE_RESERVE_BYTES, 2)},
        {SLOT(FL_LIVE_RESERVE_BYTES, 3)},
        {SLOT(FL_LIVE_LIVE_BYTES, 0), .subtracts = 1},
        {SLOT(FL_LIVE_LIVE_BYTES, 1), .subtracts = 1},
        {SLOT(FL_LIVE_LIVE_BYTES, 2), .subtracts = 1},
        {SLOT(FL_LIVE_LIVE_BYTES, 3), .subtracts = 1},
    };
    _Static_assert(FL_CACHE_SLOTS == 4, "each slot has its terms");

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(&r->caches.all),
                                      .size = sizeof(struct fl_cache),
                                      .shape = FL_LIVE_CHAIN,
                                      .next = offsetof(struct fl_cache, next)},
                term, COUNT(term));
}

static void add_depots(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {FL_LIVE_WORD(FL_LIVE_RESERVE_BYTES, struct fl_depot, bytes)},
        {FL_LIVE_WORD(FL_LIVE_LIVE_BYTES, struct fl_depot, bytes), .subtracts = 1},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(r->depots.depot),
                                      .count = FL_DEPOTS,
                                      .size = offsetof(struct fl_depot, some),
                                      .next = sizeof(struct fl_depot)},
                term, COUNT(term));
}

static void add_zones(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {FL_LIVE_WORD(FL_LIVE_RESERVE_BYTES, struct fl_zone, free.bytes)},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(r->zones.of),
                                      .count = FL_ZONES,
                                      .size = sizeof(struct fl_zone),
                                      .next = sizeof(struct fl_zone)},
                term, COUNT(term));
}

/* What was done by their locks alone, and is not among the region's figures yet. */
static void add_shards(const struct fl_region *r, struct fl_live_page *p)
{
    static const struct fl_live_term term[] = {
        {FL_LIVE_WORD(FL_LIVE_REQUESTS, struct fl_shard, since.takes)},
        {FL_LIVE_WORD(FL_LIVE_SERVED_BYTES, struct fl_shard, since.take_bytes)},
        {FL_LIVE_WORD(FL_LIVE_LIVE_BYTES, struct fl_shard, since.in_use)},
    };

    fl_live_add(p,
                (struct fl_live_list){.at = fl_live_at(r->shards.of),
                                      .count = FL_SHARDS,
                                      .size = offsetof(struct fl_shard, left),
                                      .next = sizeof(struct fl_shard)},
                term, COUNT(term));
}

void fl_region_live(const struct fl_region *r, struct fl_live_page *p)
{
    add_counters(r, p);
    add_words(r, p);
    add_window(r, p);
    add_caches(r, p);
    add_depots(r, p);
    add_zones(r, p);
    add_shards(r, p);
}
