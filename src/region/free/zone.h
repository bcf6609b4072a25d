/* Zones: what is free of each placement class. Included by region.h. Lock: region,
 * unless it says otherwise. */
#ifndef FL_REGION_ZONE_H
#define FL_REGION_ZONE_H

#include "numa/numa.h"
#include "space/space.h"

struct fl_region;

/* FREE extents. */
struct fl_free {
    size_t bytes;  /* populated */
    size_t huge;   /* part of that in whole huge pages, none of them split: those in by_age */
    size_t hidden; /* extents that dumps leave out, at least in part */
};

/* Lock: region; with several shards that of the zone's. */
struct fl_zone {
    _Alignas(FL_CACHE_LINE) struct fl_extent_tree populated; /* FREE with memory */
    struct fl_extent_tree empty;                             /* FREE without */
    /* FREE with memory; oldest first: see enum fl_queue. */
    struct fl_extent_list by_age, pieces, seen, rough;
    struct fl_free free;
    size_t demand; /* its share of refill.demand */
};

/* Constant after the first request, but for what is in `of`. */
struct fl_zones {
    struct fl_placing placing; /* where blocks are to lie */
    unsigned n;
    bool seeded; /* the window is one EMPTY extent or more: done by the first request */
    struct fl_zone of[FL_ZONES];
};

/* Descriptors that one carve makes, at most. */
enum { FL_CARVE_DESCRIPTORS = 5 };

/* Whose addresses are no zone's yet. */
unsigned fl_zone_of_none(const struct fl_region *r);
/* Where the memory of that zone comes from: all shards' from the same. */
unsigned fl_zone_class(const struct fl_region *r, unsigned zone);
/* Shards whose memory serves any request, whichever it is looked for in first: from number 0 on.
 * Relaxed without a lock: a hint. */
unsigned fl_zones_alike(const struct fl_region *r);
/* Of that class: bytes in whole huge pages of FREE extents, and the oldest of these; NULL. */
size_t fl_zone_donors(const struct fl_region *r, unsigned class);
struct fl_extent *fl_zone_oldest(struct fl_region *r, unsigned class);

/* Has the node of that zone room for so many bytes? */
static inline bool fl_zone_has_room(const struct fl_zones *z, unsigned zone, size_t bytes)
{
    return z->placing.nodes == 0 || z->placing.has_room(zone, bytes);
}
/* Has a divided extent of that zone memory that may be lent? */
bool fl_zone_may_lend(const struct fl_region *r, unsigned zone);

/* Walks all zones; `z` is declared here, which tidy cannot see. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define FL_EACH_ZONE(r, z)                                                                         \
    for (struct fl_zone *z = (r)->zones.of; z < (r)->zones.of + (r)->zones.n; z++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Where nothing EMPTY of the zone holds `len` bytes at a multiple of `align`: addresses that are
 * no node's yet. */
void fl_zone_extend(struct fl_region *r, unsigned zone, size_t len, size_t align);
/* A LIVE, LAZY extent comes back: where does it lie? No lock held. */
void fl_zone_find(struct fl_region *r, struct fl_extent *e);

#endif
