/* New blocks that the worker will look at. Lock: region. */
#ifndef FL_REGION_WATCH_H
#define FL_REGION_WATCH_H

#include "region/region.h"

/* It is handed out, or has grown, by `more` bytes: are they new, and enough to be worth a look? */
void fl_thin_watch(struct fl_region *r, struct fl_extent *e, size_t more);
static inline void fl_watch_new(struct fl_region *r, struct fl_extent *e)
{
    if (FL_UNLIKELY(e->len >= FL_THIN_FROM)) {
        fl_thin_watch(r, e, e->len);
    }
}
/* Is it of those that may become thin? */
bool fl_thin_may_watch(const struct fl_region *r, const struct fl_extent *e);
/* In that slot. */
void fl_thin_begin_watch(struct fl_thin *t, struct fl_thin_slot *s, struct fl_extent *e);
/* The block is no longer LIVE, or not thin any more: the mark goes, if it has one. */
void fl_thin_forget(struct fl_region *r, struct fl_extent *e);

#endif
