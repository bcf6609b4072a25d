/* Blocks in a row: a thread that asks for one length again and again, and gets none back meanwhile,
 * gets several at once; the others wait in its cache. */
#ifndef FL_REGION_ROW_H
#define FL_REGION_ROW_H

#include "region/region.h"

/* Blocks of `len` bytes to take at once from the front of the FREE `e`, which is long enough for
 * one: one more for so many requests of that length in a row as found nothing in the cache `own`,
 * which is empty now; NULL: one. Lock: that of the extent's zone. */
unsigned fl_row_of(struct fl_region *r, struct fl_cache *own, const struct fl_extent *e,
                   size_t len);
/* A request of the thread has put so many back out of its cache: they were freed meanwhile, or
 * taken along in vain; or others took them. Each ends four of the row. The owner. */
void fl_row_note_back(struct fl_cache *own, size_t blocks);
/* Puts all back out of the cache `own`; NULL: there is none. Lock: region. */
void fl_row_put_back(struct fl_region *r, struct fl_cache *own);
/* `e` waits in the thread's cache for a request of its row. */
void fl_row_keep(struct fl_region *r, struct fl_cache *own, struct fl_extent *e);
/* Takes them. Returns the first, LIVE; the others are in the cache. The same lock. */
struct fl_extent *fl_row_take(struct fl_region *r, struct fl_cache *own, struct fl_extent *e,
                              size_t len, unsigned n);

#endif
