/* Clearing of memory of which some may never have been touched. Included by pages.h. */
#ifndef FL_PAGES_CLEAR_H
#define FL_PAGES_CLEAR_H

#include "core/core.h"

struct fl_pages;

/* Bytes; less is sooner cleared as a whole than looked at. */
static const size_t fl_clear_looked_at = (size_t)256 << 10;

/* Clears what of `range`, whole base pages, holds anything; the rest is not brought into memory.
 * Returns bytes cleared. `range` is the caller's alone. No lock of the owner's, nor `asking`, is
 * held.
 *   coming  pages are on their way to ranges of which `range` may have a part. */
size_t fl_clear_touched(struct fl_pages *p, struct fl_range range, bool coming);

#endif
