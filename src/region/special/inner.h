/* Extents that are divided into blocks. Included by region.h. */
#ifndef FL_REGION_INNER_H
#define FL_REGION_INNER_H

#include "space/space.h"

struct fl_region;

/* Takes `len` bytes, whole huge pages, nothing of it populated. 0; -ENOMEM. `in` stays where it
 * is as long as any block may be looked up.  Threads: one at a time for one `in`.  Cost: O(log
 * n), whatever the length. */
int fl_inner_open(struct fl_region *r, struct fl_inner *in, size_t len);
/* Brings descriptors, and what the pagemap has of `part`, into memory, ahead of their use. They
 * may be of an extent that was closed meanwhile. No lock held: a system call for each. */
void fl_inner_warm(struct fl_region *r, struct fl_range blocks, struct fl_range part);
/* Populates `part`, whole huge pages that are not: from the reserve, by moves from what is free,
 * or by the kernel. False: memory is short. */
bool fl_inner_fill(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* Gives the memory of `part`, populated whole huge pages in which no block is, back to the
 * kernel. 0; -EBUSY: nothing has changed; -EEXIST: it is gone, and no block may have these
 * addresses any more. */
int fl_inner_empty(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* The same, but the region keeps the memory, free, where pages can be moved. */
int fl_inner_yield(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* Moves the memory of `from`, populated whole huge pages in which no block is, to others at `to`
 * that are not. Returns bytes, whole huge pages, from its start: less, or 0, where they do not
 * move. */
size_t fl_inner_shift(struct fl_region *r, struct fl_inner *in, struct fl_range from, uintptr_t to);
/* No block is LIVE any more, and none will be: gives the outer extent back. */
void fl_inner_close(struct fl_region *r, struct fl_inner *in);
/* fl_region_note_remapped for what of `range`, which begins in `outer`, lies there. Returns its
 * end. Lock-free. */
uintptr_t fl_inner_note_remapped(const struct fl_inner *in, const struct fl_extent *outer,
                                 struct fl_range range);
/* `e`, a block that was user-remapped and is CACHED, is new memory again; false: no block may have
 * these addresses any more. */
bool fl_inner_renew(struct fl_region *r, struct fl_extent *e);

#endif
