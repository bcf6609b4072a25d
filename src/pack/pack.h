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

struct fl_pack_how {
    /* Without both, only a first layout is made. That is always done to its end. */
    uint64_t budget_ns; /* by `now_ns`; 0: no bound by time */
    /* In microseconds as each method reckons them, so that a seed gives the same layout on any
     * machine; 0: no such bound. To place a buffer by the skyline is one. */
    uint64_t budget_cost;
    uint64_t capacity; /* bytes: end at a layout that is no taller; 0: at the bound */
    uint64_t seed;
    uint64_t (*now_ns)(void); /* not called without budget_ns */
    /* NULL, or called with each better layout, which is in `offset`, before the search goes on. */
    void (*better)(void *arg, uint64_t height);
    void *arg;
    void *scratch; /* page-aligned, zeroed or not */
    size_t scratch_len;
};

struct fl_pack_result {
    uint64_t bound, height; /* bytes, in whole units of the smallest alignment of any buffer */
    const char *by;         /* which method found it */
};

/* Bytes of scratch that `n` buffers need at least; more lets the search go deeper. */
size_t fl_pack_scratch(size_t n);
/* Fills every `offset`. 0; -EINVAL when a buffer is malformed (an end before its birth, sizes
 * whose sum overflows); -ENOMEM when the scratch is too small; -EDOM when a layout failed its
 * own check (a bug; nothing may be used). Never allocates.  Threads: any, each with its own
 * scratch. */
int fl_pack(struct fl_pack_buffer *b, size_t n, const struct fl_pack_how *how,
            struct fl_pack_result *out);
/* Does no pair that lives at once overlap, is every offset aligned, and nothing above `height`?
 * O(n log n), in scratch of fl_pack_scratch(n). */
bool fl_pack_is_valid(const struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                      size_t scratch_len);
/* Turns a valid layout into another, no taller, in which more buffers lie where one of their size
 * has just died, so that caches have what they write to. At most some 50 ms. In scratch of
 * fl_pack_scratch(n). */
void fl_pack_warm(struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                  size_t scratch_len);

#endif
