/* Populating: pages come into memory before they are touched. Included by pages.h. */
#ifndef FL_PAGES_POPULATE_H
#define FL_PAGES_POPULATE_H

#include "core/core.h"

struct fl_pages;

/* How fast huge pages come. Relaxed: hints. */
struct fl_pace {
    _Atomic uint64_t backoff_until; /* monotonic; the kernel compacts: base pages until then */
    _Atomic bool left_base;         /* some came in base pages that may be collapsed one day */
    _Atomic bool *wants_worker;     /* raised then. The owner's; constant after the start */
};

enum { FL_POPULATE_HELPERS = 16 };
/* Bytes that come in by one call: some 1.5 ms. */
static const size_t fl_populate_piece = (size_t)32 << 20;

/* Brings `range` into memory by madvise, with help where it is long, else `step` bytes at a time. 0
 * or -errno. No lock needed. */
int fl_populate(struct fl_pages *p, struct fl_range range, size_t step);
/* The same with so many helpers at most.
 *   own  the part of `range`, or more, that surely lies in no other block: what is written to where
 *        the kernel has no call for it. */
int fl_populate_by(struct fl_pages *p, struct fl_range range, struct fl_range own, size_t step,
                   unsigned helpers);
/* The same without help, in pages as they are advised. */
int fl_populate_pieces(struct fl_pages *p, struct fl_range range, struct fl_range own, size_t step);

/* Compaction backoff: the kernel compacts memory for each huge page, so base pages do for now. No
 * lock needed. */
bool fl_populate_backs_off(const struct fl_pages *p);

#endif
