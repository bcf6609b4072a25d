/* Layouts: where each request of a step lies. */
#ifndef FL_PLAN_SERVE_LAYOUT_H
#define FL_PLAN_SERVE_LAYOUT_H

#include "plan/plan.h"

enum { FL_SIGNATURE = 3 }; /* requests that a step is recognised by: README.md, Constants */

#define FL_ENTRY_NONE UINT32_MAX

/* Constant once made, but for what `marked` says. */
struct fl_layout {
    uint32_t n;
    uint64_t hash;   /* of the record it was made from */
    uint64_t begins; /* of its first FL_SIGNATURE requests; 0: their sizes vary */
    uint64_t height;
    uint64_t largest;     /* bytes that any one step held at once */
    struct fl_slot *slot; /* what it was made from */
    bool marked;          /* some slot has another zone since */
    uint32_t serial;      /* no other has it */
    uint64_t served_at;   /* the context's count of served steps, when it served one last */
    struct fl_plan_zone zone[FL_PLAN_ZONES + 1];
    /* One for each slot, and one more, that nothing fits. The slots lie behind them. */
    struct fl_plan_entry entry[] __attribute__((aligned(FL_CACHE_LINE)));
};

/* Bytes of what is in zones, both places of it. */
static inline uint64_t fl_layout_in_zones(const struct fl_layout *l)
{
    uint64_t bytes = 0;

    for (unsigned z = 1; z <= FL_PLAN_ZONES; z++) {
        bytes += 2 * l->zone[z].len;
    }
    return bytes;
}

/* Bytes of memory at once: as many as it is high, unless its sizes belong to different steps. Then
 * what the largest one of them took, and a 64th for granules of which blocks have a part. */
static inline size_t fl_layout_needs(const struct fl_layout *l)
{
    uint64_t most = l->largest != 0 ? l->largest + l->largest / 64 : l->height;
    uint64_t needs = most + fl_layout_in_zones(l);

    /* A page or two less than all would go round in it. */
    return needs + 2 * fl_page.huge >= l->height ? l->height : needs;
}

struct fl_layout *fl_layout_new(size_t n);
struct fl_layout *fl_layout_copy(const struct fl_layout *from);
/* Entries and zones from slots. */
void fl_layout_make_entries(struct fl_layout *l);
void fl_layout_free(struct fl_layout *l);
/* Its zones, and its serial: see zone.c. */
void fl_layout_zones(struct fl_layout *l);

#endif
