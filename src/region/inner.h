/* Extents that somebody divides into blocks. Included by region.h. */
#ifndef FL_REGION_INNER_H
#define FL_REGION_INNER_H

#include "core/core.h"

struct fl_extent;
struct fl_region;

/* A LIVE extent that somebody divides into blocks. A block begins at a granule and has that granule's descriptor, which is
 * LIVE while the block is, so that fl_region_find knows it; who may have which granules is the divider's to say. Its huge pages come
 * into memory as they are wanted, so that it takes over what others leave. */
struct fl_inner {
    /* NULL: nothing is divided now. Lock: region, to write; read without it */
    _Atomic(struct fl_extent *) outer;
    /* Descriptors, one a granule, UNUSED where no block begins. Those of huge pages that were never filled are not made. */
    struct fl_extent *block;
    size_t granules; /* of the outer extent */
    size_t room;     /* descriptors there are */
    unsigned
        shift; /* log2 of the granule's bytes; at least a base page's. The caller's, constant */
    struct fl_inner *next; /* every one that was ever open. Constant once it is */
    bool listed;           /* Lock: region */
};

/* Takes `len` bytes, whole huge pages, nothing of it populated. 0; -ENOMEM. `in` stays where it is as long as any block may be looked
 * up.  Threads: one at a time for one `in`.  Cost: O(log n), whatever the length. */
int fl_inner_open(struct fl_region *r, struct fl_inner *in, size_t len);
/* Brings descriptors, and what the pagemap has of `part`, into memory, ahead of their use. They may be of an extent that was closed
 * meanwhile. No lock held: a system call for each. */
void fl_inner_warm(struct fl_region *r, struct fl_range blocks, struct fl_range part);
/* Populates `part`, whole huge pages that are not: from the stock, by moves from what is free, or by the kernel. False: memory
 * is short. */
bool fl_inner_fill(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* Gives the memory of `part`, populated whole huge pages in which no block is, back to the kernel. 0; -EBUSY: nothing has changed;
 * -EEXIST: it is gone, and nobody may have these addresses any more. */
int fl_inner_empty(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* The same, but the region keeps the memory, free, where pages can be moved. */
int fl_inner_yield(struct fl_region *r, struct fl_inner *in, struct fl_range part);
/* Moves the memory of `from`, populated whole huge pages in which no block is, to others at `to` that are not. Returns bytes, whole huge
 * pages, from its start: less, or 0, where they do not move. */
size_t fl_inner_shift(struct fl_region *r, struct fl_inner *in, struct fl_range from, uintptr_t to);
/* Has any that is open some of that zone's memory? Lock: region. */
bool fl_inner_has_memory(const struct fl_region *r, unsigned zone);
/* No block is LIVE any more, and none will be: gives the outer extent back. */
void fl_inner_close(struct fl_region *r, struct fl_inner *in);
/* The one whose outer extent `addr` lies in, now; NULL: none. And the block there, while it is not free; NULL. Lock-free. */
struct fl_inner *fl_inner_around(struct fl_region *r, uintptr_t addr, struct fl_extent **out_outer);
struct fl_extent *fl_inner_block(const struct fl_inner *in, const struct fl_extent *outer,
                                 uintptr_t addr);
/* fl_region_note_hands for what of `range`, which begins in `outer`, lies there. Returns its end. Lock-free. */
uintptr_t fl_inner_note_hands(const struct fl_inner *in, const struct fl_extent *outer,
                              struct fl_range range);
/* `e`, a block that was handled and is CACHED, is new memory again; false: nobody may have these addresses any more. */
bool fl_inner_renew(struct fl_region *r, struct fl_extent *e);

#endif
