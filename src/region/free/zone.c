/* Zones: addresses divided by where the memory behind them comes from. With one node there is one
 * zone, and nothing here is done. */
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"

/* Bytes of addresses that a zone takes at once: few maps, and a pagemap that stays short; less of a
 * small window. */
static const size_t block_most = (size_t)1 << 30;
enum { BLOCK_SHARE = 64 };

void fl_region_divide(struct fl_region *r, const struct fl_placing *p)
{
    fl_assert(p->nodes <= FL_ZONE_NODES);
    r->zones.placing = *p;
    r->pages.holes.mapped = p->mapped_own;
    r->zones.n = 2 * p->nodes + 2 + FL_SPREADS;
    fl_assert(r->zones.n <= FL_ZONES);
    FL_EACH_ZONE(r, z)
    {
        fl_fit_start(z);
    }
    atomic_store_explicit(&r->cache_max, fl_min(FL_CACHED_MOST, p->alike_below - fl_page.base),
                          memory_order_relaxed);
    r->space.pagemap.mapped = r->space.descriptors.span.mapped = p->mapped_own;
}

unsigned fl_zone_first(struct fl_region *r, size_t len)
{
    struct fl_zonelist zonelist = {.zone = {0}};

    if (r->zones.placing.nodes != 0) {
        r->zones.placing.zonelist(len, &zonelist);
    }
    return zonelist.zone[0];
}

unsigned fl_zone_of_none(const struct fl_region *r)
{
    return r->zones.placing.nodes != 0 ? r->zones.n - 1 : 0;
}

unsigned fl_zone_class(const struct fl_region *r, unsigned zone)
{
    return r->zones.placing.nodes != 0 ? zone : 0;
}

unsigned fl_zones_alike(const struct fl_region *r)
{
    return r->zones.placing.nodes != 0 ? 1 : fl_shards_open(&r->shards);
}

size_t fl_zone_donors(const struct fl_region *r, unsigned class)
{
    return r->zones.placing.nodes != 0 ? r->zones.of[class].free.huge : fl_region_free(r).huge;
}

struct fl_extent *fl_zone_oldest(struct fl_region *r, unsigned class)
{
    struct fl_extent *oldest = TAILQ_FIRST(&r->zones.of[class].by_age);

    for (unsigned i = 1; i < fl_zones_alike(r); i++) {
        struct fl_extent *head = TAILQ_FIRST(&r->zones.of[i].by_age);
        bool older = head != NULL && (oldest == NULL || fl_extent_is_older(head, oldest));
        oldest = older ? head : oldest;
    }
    return oldest;
}

bool fl_zone_may_lend(const struct fl_region *r, unsigned zone)
{
    for (const struct fl_inner *in = r->space.inners; in != NULL && r->hooks.lend != NULL;
         in = in->next) {
        const struct fl_extent *outer = in->outer;
        if (outer != NULL && outer->zone == zone && outer->filled != 0) {
            return true;
        }
    }
    return false;
}

/* What shards have left of theirs is the first one's again, and merges. Lock: region. */
static void take_back_empty(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r));
    for (struct fl_zone *z = r->zones.of + 1; z < r->zones.of + fl_zones_alike(r); z++) {
        for (struct fl_extent *e; (e = fl_tree_lowest(&z->empty)) != NULL;) {
            (void)fl_fit_change_zone(r, e, 0);
        }
    }
}

static struct fl_extent *first_empty(struct fl_region *r, unsigned zone, size_t len, size_t align)
{
    return fl_fit_first(&r->zones.of[zone].empty, len, align);
}

/* The addresses that a zone takes at once. */
static size_t block_of(const struct fl_region *r)
{
    size_t most = r->zones.placing.nodes != 0 ? block_most : FL_SHARD_BLOCK;

    return fl_align_up(fl_min(most, r->space.window.all.len / BLOCK_SHARE), fl_page.huge);
}

void fl_zone_extend(struct fl_region *r, unsigned zone, size_t len, size_t align)
{
    unsigned no_zone = fl_zone_of_none(r);
    size_t huge_len = fl_align_up(len, fl_page.huge), huge_align = fl_max(align, fl_page.huge);
    size_t least = fl_align_up(len + huge_align, fl_page.huge);
    size_t want = fl_max(least, block_of(r));

    fl_assert(fl_region_is_locked(r));
    if (least < len || (zone == no_zone && fl_zones_alike(r) == 1) ||
        first_empty(r, zone, huge_len, huge_align) != NULL ||
        fl_extent_reserve(&r->space, FL_CARVE_DESCRIPTORS + 1) != 0) {
        return;
    }
    struct fl_extent *e = first_empty(r, no_zone, want, fl_page.huge);
    if (e == NULL) {
        take_back_empty(r);
        want = least;
        e = first_empty(r, no_zone, want, fl_page.huge);
    }
    if (zone == no_zone || e == NULL ||
        fl_pagemap_reach(&r->space, e->base + want, true) != 0) { /* the last of the window, or of
                                                                     the memory */
        return;
    }
    struct fl_range part = {e->base, want};
    fl_fit_remove(r, e);
    if (e->len == want) {
        fl_extent_drop(&r->space, e);
    } else {
        e->base += want;
        e->len -= want;
        e->unreclaimable = e->len;
        e->zeroed = (struct fl_range){e->base, 0};
        (void)fl_fit_insert(r, e);
    }
    (void)fl_fit_insert(r, fl_extent_make(r, part, FL_CONTENT_EMPTY, zone));
}

void fl_zone_find(struct fl_region *r, struct fl_extent *e)
{
    if (e->zone == fl_placing_touch(&r->zones.placing)) {
        unsigned node = r->zones.placing.found(fl_extent_range(e));
        fl_extent_set_zone(e,
                           node < r->zones.placing.nodes ? r->zones.placing.nodes + node : e->zone);
    }
}

/* Lock: region. */
static void add_extent(struct fl_region *r, const struct fl_extent *e, struct fl_stats_nodes *out)
{
    unsigned nodes = r->zones.placing.nodes;
    size_t there = fl_extent_populated(e) - fl_holes_in(&r->pages.holes, fl_extent_range(e));

    fl_assert(fl_region_is_locked(r));
    if (e->zone >= fl_placing_touch(&r->zones.placing)) {
        out->several += there;
        return;
    }
    struct fl_stats_node *node = &out->node[e->zone % nodes];
    node->extents += there;
    node->free += fl_extent_state(e) == FL_EXTENT_FREE ? there : 0;
}

void fl_region_nodes_read(struct fl_region *r, struct fl_stats_nodes *out)
{
    *out = (struct fl_stats_nodes){.n = r->zones.placing.nodes};
    if (out->n == 0) {
        return;
    }
    fl_region_lock(r);
    for (const struct fl_extent *e = r->zones.seeded ? fl_extent_at(&r->space, r->space.first)
                                                     : NULL;
         e != NULL; e = fl_extent_at(&r->space, e->base + e->len)) {
        add_extent(r, e, out);
    }
    for (unsigned i = 0; i < out->n; i++) {
        out->node[i].stock = r->pages.reserve.ready_of[i];
    }
    fl_region_unlock(r);
}
