/* Addresses: one span of them, what it is divided into, and who is found by one.
 *
 * window      the span. It is one line, cut into extents without gaps, from `first` on.
 * extent      a run of base pages of the window; the descriptor (struct fl_extent) says who has it.
 *             Descriptors are out of band and type-stable: once made, their memory stays readable
 *             for ever, so a stale pointer to one may be read (never trusted) without the lock.
 * pagemap     from an address to a descriptor, an entry a base page. No entry is believed: the
 *             reader checks base, len and state.
 * waypoint    an entry amid a LIVE extent, by which it is found from any of its pages.
 * divided     of a LIVE extent: its blocks have descriptors of their own (inner.h).
 * tree        free extents by address (tree.h); first fit is one way down.
 *
 * What lies behind addresses is no matter of this folder: descriptors have fields for it, which
 * are region/'s. Nothing here takes a lock, or brings in memory but for the tables. The owner's
 * lock is held in each call, unless it says otherwise; tables grow by program threads alone, since
 * that is a system call.
 *
 * Invariants, which fl_region_check walks:
 * R1  extents tile the window: each ends where the next begins; no address is in two.
 * R2  pagemap[first page] and, below the frontier, pagemap[last page] of an extent name its
 *     descriptor; a LIVE one's waypoints too, but where it is divided: there each granule's first
 *     page names its block. */
#ifndef FL_SPACE_SPACE_H
#define FL_SPACE_SPACE_H

#include "core/core.h"
#include "space/extent.h"
#include "space/inner.h"
#include "space/tree.h"

/* UNUSED descriptors. */
struct fl_stash {
    struct fl_extent_stack spare;
    size_t n;
};

/* Descriptors: a span that is filled from the front, and those that are free again. */
struct fl_descriptors {
    struct fl_vspace span;
    struct fl_stash stash;
    /* Zones behind the first one may have a lock of their own: what their extents become, and are
     * made from, under that. Each knows its zone already, for others look at it. */
    struct fl_stash of_zone[FL_SHARDS];
    unsigned behind; /* zones of that kind */
    /* Others, side by side: the first of each row, whose `len` is that of the row; a chain by
     * `next` */
    struct fl_extent *rows;
    size_t ready; /* bytes that are in memory */
    size_t used;  /* count; index 0 is never used */
    size_t plain; /* those of extents, not of caches or an arena's blocks */
    uint8_t rest; /* calls until room for the worker is asked for again */
};

/* Waypoints that are multiples of FL_COARSE_PAGES, of the window's first 64 GiB. In the pagemap
 * each would lie on a page of its own: so many faults for the first block of its length. */
enum { FL_COARSE_PAGES = 1024, FL_COARSE_ENTRIES = 16384 };

struct fl_space {
    /* From an address to its descriptor: see fl_space_look. Constant after the start. */
    uintptr_t base;               /* the window's */
    _Atomic uint32_t *map;        /* the pagemap: index of a descriptor, by base page */
    struct fl_extent *descriptor; /* by index; 0 is none, and never LIVE */
    _Atomic size_t mapped;        /* entries of the pagemap; only grows. Lock: owner's, to write */
    uintptr_t first;              /* where extents begin. Constant */
    struct fl_vspace window, pagemap;
    struct fl_descriptors descriptors;
    _Atomic(struct fl_inner *) inners; /* every one that was ever open. Lock: owner's, to add */
    _Atomic uint32_t coarse[FL_COARSE_ENTRIES]; /* as `map`, an entry FL_COARSE_PAGES pages */
};

/* Claims the window's addresses: eight times the memory, 4 to 8 TiB, less where that is refused;
 * and those of the tables. Brings in nothing. `huge`: the pagemap may have huge pages. 0; -ENOMEM:
 * no window of 64 MiB is to be had. The owner sets `first`.  Context: early, boot only. */
int fl_space_start(struct fl_space *s, size_t memory, bool huge);
/* Gives all of that back. */
void fl_space_end(struct fl_space *s);

/* What the pagemap names for the page of `addr`, which is anything: to be trusted for nothing,
 * s->descriptor is none. False: the pagemap does not reach so far. Lock-free. */
static FL_INLINE bool fl_space_look(const struct fl_space *s, uintptr_t addr,
                                    struct fl_extent **out)
{
    size_t page = (addr - s->base) >> fl_page.shift;

    /* acquire: pairs with fl_pagemap_reach */
    if (FL_UNLIKELY(page >= atomic_load_explicit(&s->mapped, memory_order_acquire))) {
        return false;
    }
    *out = &s->descriptor[atomic_load_explicit(&s->map[page], memory_order_relaxed)];
    return true;
}

/* Makes the pagemap usable up to the entry of `end`; `ahead`: brings what is new of it into memory.
 * -ENOMEM when the kernel refuses. */
int fl_pagemap_reach(struct fl_space *s, uintptr_t end, bool ahead);
/* Brings the pagemap of that part of the window into memory. No lock needed. */
void fl_pagemap_populate(struct fl_space *s, struct fl_range window);

/* At least `n` spare descriptors, of no zone's own; -ENOMEM when no more are to be had. */
int fl_extent_reserve(struct fl_space *s, size_t n);
/* Are the descriptors up to that one mapped by now? The program's threads map what the worker may
 * need, too, which maps none. */
bool fl_extent_map(struct fl_space *s, size_t index);
/* Brings those in use into memory, and as many more. */
void fl_extent_populate_ahead(struct fl_space *s);
/* The next `n`, side by side, are the caller's own: not among the spare ones, nor brought into
 * memory. They are mapped. And such a row back: they become spare ones, one by one. */
void fl_extent_skip(struct fl_space *s, size_t n);
void fl_extent_drop_row(struct fl_space *s, struct fl_extent *first, size_t n);
/* A descriptor for `range`, from the reserved ones; in the pagemap, in no tree, state FREE, of any
 * age. */
struct fl_extent *fl_extent_new(struct fl_space *s, struct fl_range range, enum fl_content content,
                                unsigned zone);
void fl_extent_drop(struct fl_space *s, struct fl_extent *e);
/* Descriptors for fl_extent_new in that zone, by its lock alone. */
size_t fl_extent_spare(struct fl_space *s, unsigned zone);
/* The zone's stash gets some where it has few; its own gives up what is too much. */
void fl_extent_restock(struct fl_space *s, unsigned zone);
/* Writes the pagemap after base or len changed. */
void fl_extent_publish(struct fl_space *s, struct fl_extent *e);
/* The same where its end is as it was. */
void fl_extent_publish_base(struct fl_space *s, const struct fl_extent *e);

/* Numbers of pages, from the window's start: the first waypoint of an extent that begins there, and
 * the one after it, in or behind the extent. See pagemap.c. */
enum { FL_WAYPOINT_PAGES = 32 };
static inline size_t fl_waypoint_first(size_t page)
{
    return fl_align_up(page, FL_WAYPOINT_PAGES);
}
static inline size_t fl_waypoint_next(size_t page)
{
    return page + (page & -page);
}
/* The extent is found from any of its pages in O(log n). Of each that is LIVE, after it was made or
 * became longer. Never of one that is divided: the entries inside are its blocks'. */
void fl_extent_lay_waypoints(struct fl_space *s, const struct fl_extent *e);
/* The entry of the waypoint at that page. */
static inline _Atomic uint32_t *fl_waypoint_entry(struct fl_space *s, size_t page)
{
    bool coarse = page % FL_COARSE_PAGES == 0 && page / FL_COARSE_PAGES < FL_COARSE_ENTRIES;

    return coarse ? &s->coarse[page / FL_COARSE_PAGES] : &s->map[page];
}

/* The extent that begins at `addr`, whatever its state; NULL beyond the last one in the pagemap. */
struct fl_extent *fl_extent_at(struct fl_space *s, uintptr_t addr);
/* The extent that begins at, or ends at, `addr`, when it is FREE and of that zone; NULL else. */
struct fl_extent *fl_extent_free_at(struct fl_space *s, uintptr_t addr, unsigned zone);
struct fl_extent *fl_extent_free_before(struct fl_space *s, uintptr_t addr, unsigned zone);
/* The extent that `addr` lies in, whatever its state; sure only of a block that is the caller's.
 * NULL: none, or others are changing it. No lock needed.  Cost: O(log n) where there are waypoints,
 * else a walk over the pagemap. */
struct fl_extent *fl_extent_around(struct fl_space *s, uintptr_t addr);
/* The same, or NULL where that would be a walk: of what is in use none is. */
struct fl_extent *fl_extent_in_use_around(struct fl_space *s, uintptr_t addr);

#endif
