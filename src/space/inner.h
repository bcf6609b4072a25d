/* Extents that are divided into blocks, and how a block is found by an address. Included by
 * space.h. */
#ifndef FL_SPACE_INNER_H
#define FL_SPACE_INNER_H

#include "space/extent.h"

struct fl_space;

/* A LIVE extent that is divided into blocks. A block begins at a granule and has that
 * granule's descriptor, which is LIVE while the block is, so that fl_region_find knows it; who
 * may have which granules is the divider's to say. Its huge pages come into memory as they are
 * wanted, so that it takes over what others leave. */
struct fl_inner {
    /* NULL: nothing is divided now. Lock: region, to write; read without it */
    _Atomic(struct fl_extent *) outer;
    /* Descriptors, one a granule, UNUSED where no block begins. Those of huge pages that were
     * never filled are not made. */
    struct fl_extent *block;
    size_t granules; /* of the outer extent */
    size_t room;     /* descriptors there are */
    unsigned
        shift; /* log2 of the granule's bytes; at least a base page's. The caller's, constant */
    struct fl_inner *next; /* every one that was ever open. Constant once it is */
    bool listed;           /* Lock: region */
};

/* The one whose outer extent `addr` lies in, now; NULL: none. And the block there, while it is
 * not free; NULL. Lock-free. */
struct fl_inner *fl_inner_around(struct fl_space *s, uintptr_t addr, struct fl_extent **out_outer);
struct fl_extent *fl_inner_block(const struct fl_inner *in, const struct fl_extent *outer,
                                 uintptr_t addr);
#endif
