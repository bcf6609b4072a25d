/* The packer: from lifetimes to offsets.
 *
 * A *buffer* has a size, an alignment and a *lifetime*, [birth, death) on any clock that orders
 * events; the packer gives it an *offset*. A *layout* is an offset for each buffer, its *height*
 * the highest end of any. The *bound* is the most bytes that live at once.
 *   two that live at once   a.offset + a.size <= b.offset, or the other way round
 *   each buffer             offset % align == 0, offset + size <= height
 *   a layout                bound <= height
 * A pure function: the only memory it touches is the caller's, buffers and scratch; it has no
 * state and includes base/ alone. plan/ packs steps with it, `faultplan pack` any table. */
#ifndef FL_PACK_PACK_H
#define FL_PACK_PACK_H

#include "base/base.h"

#define FL_PACK_NONE UINT64_MAX

struct fl_pack_buffer {
    uint64_t size;  /* bytes, below 2^47; 0: lies anywhere */
    uint64_t align; /* a power of two; 0 counts as 1 */
    /* A death at another's birth is no conflict. Equal: never lives. */
    uint64_t birth, death;
    uint64_t offset; /* out */
};

struct fl_pack_result {
    uint64_t bound, height; /* bytes, in whole units of the smallest alignment of any buffer */
};

/* Bytes of scratch that `n` buffers need. */
size_t fl_pack_scratch(size_t n);
/* Fills every `offset`. 0; -EINVAL when a buffer is malformed (an end before its birth, sizes
 * whose sum overflows); -ENOMEM when the scratch is too small. Never allocates.  Threads: any, each
 * with its own scratch. Cost: about a microsecond a buffer.
 *   scratch   page-aligned, zeroed or not */
int fl_pack(struct fl_pack_buffer *b, size_t n, void *scratch, size_t scratch_len,
            struct fl_pack_result *out);
#endif
