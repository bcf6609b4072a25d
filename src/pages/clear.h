/* Clearing of memory of which some may never have been touched. Included by pages.h. */
#ifndef FL_PAGES_CLEAR_H
#define FL_PAGES_CLEAR_H

#include "core/core.h"

struct fl_pages;

typedef void fl_clear(void *base, size_t len);

/* Bytes; less is sooner cleared as a whole than looked at. */
static const size_t fl_clear_looked_at = (size_t)256 << 10;

/* Clears what of `range`, whole base pages, holds anything; the rest is not brought into memory.
 * Returns bytes cleared. `range` is the caller's alone. No lock of the owner's, nor `asking`, is
 * held.
 *   coming  pages are on their way to ranges of which `range` may have a part. */
size_t fl_clear_touched(struct fl_pages *p, struct fl_range range, bool coming, fl_clear *clear);
/* May the calling thread look for that? A guest that shares the program's descriptors may not: held
 * up there, it would hold up the program. */
bool fl_clear_may_look(void);
fl_clear fl_clear_plainly;

#endif
