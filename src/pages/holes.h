/* Holes: base pages of FREE extents that have gone back to the kernel one by one. Included by
 * pages.h.
 *
 * A table of bits, by address, made when the first piece goes back: which huge pages of the
 * window are split for that, which of their base pages are absent, and which of these are bare:
 * nothing is mapped there either. It says nothing of memory that is handed out, and nothing is lost
 * when extents are cut or merge. State: struct fl_holes, under the owner's lock but for what is
 * marked atomic.
 * H1  A page is absent only of a huge page that is split, and of an extent that is FREE, or
 * ISOLATED
 *     with memory, and hollow (see enum fl_left).
 * H2  No huge page of EMPTY addresses is split.
 * H3  A page that is bare is absent. */
#ifndef FL_PAGES_HOLES_H
#define FL_PAGES_HOLES_H

#include "core/core.h"

#include <stdatomic.h>

struct fl_holes {
    struct fl_range window; /* of which it tells. Constant after the start */
    /* Where the table is to lie, but where the window is reserved; and what is told of each part of
     * it that is made. Constant after the start */
    uintptr_t place;
    bool reserved;
    void (*mapped)(struct fl_range part);
    struct fl_vspace span; /* the table; len 0: there is none yet. Written by who is `making` */
    _Atomic bool making;   /* a thread makes it, or more of it, with no lock held */
    _Atomic size_t
        reach;    /* bytes of the window that it tells of; only grows. Written by who is `making` */
    size_t split; /* huge pages. 0: no bit is set, and none is looked at */
    size_t runs;  /* of neighbours among them: each may be two maps more */
    size_t absent; /* bytes */
    size_t bare;   /* bytes of those. 0: no such bit is set, and none is looked at */
};

/* Makes the table tell of all addresses below `end`. False: it cannot, or another thread is at it.
 * No lock held. */
bool fl_holes_reach(struct fl_holes *h, uintptr_t end);

/* The table that there is; len 0: none yet. No lock needed. */
struct fl_range fl_holes_table(const struct fl_holes *h);

/* Bytes of addresses that it takes for a window of that length. */
size_t fl_holes_table_len(size_t window);

/* Is the huge page of `addr` split? Without the lock it is a hint. */
bool fl_holes_is_split(const struct fl_holes *h, uintptr_t addr);
/* Notes it of a huge page that the table reaches. False: there would be too many maps. */
bool fl_holes_split(struct fl_holes *h, uintptr_t huge);
/* It has all its pages, and is one again. */
void fl_holes_join(struct fl_holes *h, uintptr_t huge);
/* `range`, whole huge pages, is EMPTY: no bit of it is left. */
void fl_holes_forget(struct fl_holes *h, struct fl_range range);
/* The first split huge page in `range`, whole huge pages; the end of `range`: there is none. */
uintptr_t fl_holes_first_split(const struct fl_holes *h, struct fl_range range);
/* The first run of split huge pages in `range`, whole huge pages; len 0: there is none. */
struct fl_range fl_holes_next_split(const struct fl_holes *h, struct fl_range range);

/* Absent bytes of `range`. */
size_t fl_holes_in(struct fl_holes *h, struct fl_range range);
/* All of it is absent, from split huge pages; all of it is there. Return bytes for which that is
 * new. */
size_t fl_holes_dig(struct fl_holes *h, struct fl_range range);
size_t fl_holes_fill(struct fl_holes *h, struct fl_range range);

/* Bare bytes of `range`. */
size_t fl_holes_bare_in(struct fl_holes *h, struct fl_range range);
/* All of it, which is absent, is bare. Returns bytes for which that is new. */
size_t fl_holes_strip(struct fl_holes *h, struct fl_range range);
/* Are there so many bare parts that one of `len` bytes more would be a map too much? */
bool fl_holes_is_too_short(const struct fl_holes *h, size_t len);
/* The first part of `range` that is bare, or is not, as a whole; len 0: there is none. No lock
 * needed where `range` is the caller's alone. */
struct fl_range fl_holes_next_bare(const struct fl_holes *h, struct fl_range range, bool bare);

#endif
