/* Requests that are not served by the front of free memory. Lock: region, but where it says
 * otherwise. */
#ifndef FL_REGION_TAKE_H
#define FL_REGION_TAKE_H

#include "region/region.h"

struct fl_fill_plan;

/* Places tried where others have mapped something in the window. */
enum { FL_FOREIGN_TRIES = 4 };

/* The front of free memory, or what waits in a depot. NULL: it takes more than that. */
struct fl_extent *fl_take_plain(struct fl_region *r, struct fl_cache *own, size_t len,
                                size_t align);
/* fl_region_take where there is more to be decided than which free extent it is. */
struct fl_extent *fl_take_long(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                               bool zero);
/* In g->asked.zone, and where touches decide first from what is free in zonelist->touched. Sets
 * g->supply.sparse. NULL: g->supply.refusal says why. */
struct fl_extent *fl_take_in_zone_unlocking(struct fl_region *r, struct fl_fill_plan *g);
/* Carved from EMPTY addresses alone. */
struct fl_extent *fl_take_grown_unlocking(struct fl_region *r, struct fl_fill_plan *g);
/* Has the zone's node room for it? Of a giant little may be touched. */
bool fl_take_has_room(const struct fl_region *r, unsigned zone, size_t len);
/* Huge pages from which on a request may be handed out unpopulated. */
enum { FL_LAZY_FROM_HUGE = 8 };
/* The first request makes the window one EMPTY extent. 0; -ENOMEM. */
int fl_take_seed(struct fl_region *r, size_t len);
/* LIVE, LAZY, not counted yet: at least `len` bytes, in whole huge pages. NULL when addresses or
 * maps do not allow it.
 *   sparse  it may never be touched: its pagemap is not brought into memory. */
struct fl_extent *fl_take_lazy(struct fl_region *r, size_t len, size_t align, unsigned zone,
                               bool sparse);
/* The same by base pages, with FL_LEFT_SPARSE. */
struct fl_extent *fl_take_sparse(struct fl_region *r, size_t len, size_t align, unsigned zone);

#endif
