/* What the kernel has been told of an extent. Lock: region. */
#ifndef FL_REGION_ADVISED_H
#define FL_REGION_ADVISED_H

#include "region/region.h"

/* Do core dumps go without some of it? */
static inline bool fl_advice_is_hidden(const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_NO_DUMP) != 0;
}
/* What is advised of a part of an extent. */
uint8_t fl_advice_of_part(uint8_t advised, struct fl_range part);
/* Bytes in whole huge pages, where all of them are hidden; else 0. note_merged: the sum of that of
 * the two that became `e`. */
size_t fl_advice_all_hidden(const struct fl_extent *e);
void fl_advice_note_merged(struct fl_extent *e, size_t hidden);
/* A1: no LIVE, CACHED or EMPTY extent is hidden. In checks. */
bool fl_advice_is_sound(const struct fl_extent *e);
/* Before a FREE extent is used: children of later forks have it again. The worker, which must
 * not hold others up, never does it. */
void fl_fork_undo(struct fl_region *r, struct fl_extent *e);

#endif
