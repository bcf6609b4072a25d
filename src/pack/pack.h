/* The packer: from lifetimes to offsets.
 *
 * A *buffer* has a size, an alignment and a *lifetime*, [birth, death) on any clock that orders events; the packer gives it an
 * *offset*. A *layout* is an offset for each buffer. Its *height* is the highest end of any; the *bound* is the most that lives at once,
 * and no layout is lower.
 *   two that live at once:  a.offset + a.size <= b.offset, or the other way round
 *   each:                   offset % align == 0, offset + size <= height;  bound <= height
 *   zones:                  one that is not 0 is a band without gaps; bands lie at the bottom, the lowest number lowest
 * A pure function: no pointer of the caller's is looked through but the arrays he hands over, no memory but his scratch, no state.
 * Includes base/ alone. plan/ packs steps with it, gpu/ those of its pools, `faultplan pack` any table. */
#ifndef FL_PACK_PACK_H
#define FL_PACK_PACK_H

#include "base/base.h"

#define FL_PACK_NONE UINT64_MAX

struct fl_pack_buffer {
    uint64_t size;  /* below 2^47; 0: lies anywhere */
    uint64_t align; /* a power of two; 0 counts as 1 */
    uint64_t birth,
        death; /* [birth, death): a death at another's birth is no conflict; equal: never live */
    uint64_t
        previous;    /* offset in an earlier layout, kept where that costs nothing; FL_PACK_NONE */
    uint64_t offset; /* out */
    uint32_t
        zone; /* buffers of one zone lie side by side, those of the lowest zone at the bottom; 0: anywhere */
};

/* How far a search has come; zeros: it has not begun. The packer's own, but for `done`. */
struct fl_pack_progress {
    uint64_t random, bound, limit[2], work[2];
    uint32_t part, key;
    bool begun;
    bool done; /* no more is to be found */
};

struct fl_pack_how {
    /* Where none is set, only what constructs a first layout is done; that is always done to its end. */
    uint64_t budget_ns; /* by `now_ns`; 0: no bound by time */
    uint64_t
        budget_work; /* in placements, so that the same seed gives the same layout anywhere; 0: no such bound */
    uint64_t
        budget_cost;   /* likewise, in microseconds as each method reckons them; 0: no such bound */
    uint64_t capacity; /* bytes: stop at a layout that is no taller; 0: at the lower bound */
    uint64_t seed;
    uint64_t (*now_ns)(void); /* not called without budget_ns */
    const _Atomic bool *stop; /* NULL, or: end as soon as it is true */
    /* Called with each better layout, which is in `offset`, before the search goes on; NULL: nobody wants to know. */
    void (*better)(void *arg, uint64_t height);
    void *arg;
    /* NULL, or where to go on the next time. One that has begun: `offset` is the best layout so far, and better ones are looked for;
     * without a budget none are, but what can be is put back to where it was before. */
    struct fl_pack_progress *progress;
    void *scratch; /* page-aligned, zeroed or not */
    size_t scratch_len;
};

struct fl_pack_result {
    /* Both in whole units of the smallest alignment of any buffer. */
    uint64_t
        bound; /* the most bytes that live at once, or of all zones added up: no layout is lower */
    uint64_t height;
    const char *by; /* which method found it */
};

/* Bytes of scratch that `n` buffers need at least; more, up to 64 MiB, lets the search go deeper. */
size_t fl_pack_scratch(size_t n);
/* Fills every `offset`. 0; -EINVAL when a buffer is malformed (an end before its birth, sizes whose sum overflows);
 * -ENOMEM when the scratch is too small; -EDOM when a layout failed its own check (a bug; nothing may be used).
 * Never allocates.  Threads: any, each with its own scratch. */
int fl_pack(struct fl_pack_buffer *b, size_t n, const struct fl_pack_how *how,
            struct fl_pack_result *out);
/* Does no pair that lives at once overlap, is every offset aligned, every zone in one piece, and nothing above `height`?
 * O(n log n), in scratch of fl_pack_scratch(n). */
bool fl_pack_is_valid(const struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                      size_t scratch_len);

#endif
