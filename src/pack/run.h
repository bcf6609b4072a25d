/* Shared by the files of the packer alone.
 *
 * pack.c     all together
 * setup.c    buffers -> blocks, sections, parts, bounds
 * skyline.c  places the best block that fits on the lowest segment
 *
 * Words. A *block* is a buffer that lives and has a size. A *section* is a stretch of time in
 * which nothing is born after something died: two blocks conflict just when they share one. A
 * *part* is a run of sections that no block crosses into or out of; parts are packed one by one,
 * and a layout is as high as the tallest. Sizes and offsets are in units: the smallest alignment of
 * any block. */
#ifndef FL_PACK_RUN_H
#define FL_PACK_RUN_H

#include "pack/pack.h"

struct fl_pack_block {
    uint64_t size, mask; /* mask: alignment - 1 */
    uint64_t offset;
    uint32_t id;         /* index in `buffer` */
    uint32_t start, end; /* sections [start, end) */
};

struct fl_pack_part {
    uint32_t lo, hi;   /* blocks */
    uint32_t from, to; /* sections */
};

struct fl_pack_run {
    struct fl_pack_buffer *buffer;
    size_t n;
    struct fl_bump room;

    struct fl_pack_block *block; /* in order of birth */
    uint32_t count, sections, parts;
    struct fl_pack_part *part;
    unsigned shift; /* bytes = units << shift */
    uint64_t bound; /* no layout is lower */
};

/* ---- setup.c ---- */

/* Checks the input, and fills everything in `r` from `block` to `bound`. 0, -EINVAL or -ENOMEM. */
int fl_pack_setup(struct fl_pack_run *r);

/* ---- skyline.c ---- */

/* A layout of part `p` in its blocks' offsets: its height. UINT64_MAX: too little scratch. */
uint64_t fl_pack_skyline(struct fl_pack_run *r, const struct fl_pack_part *p);

#endif
