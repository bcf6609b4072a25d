/* Arenas: addresses in granules, and huge pages that come and go under them. */
#ifndef FL_PLAN_SERVE_ARENA_H
#define FL_PLAN_SERVE_ARENA_H

#include "plan/serve/bitmap.h"

/* Bytes from which on a block begins at a huge page (measured: granules of 64 KiB inflate no
 * training step by more than 0.8 %, those of 2 MiB by up to 35 %). */
enum { FL_HUGE_FROM = 32 * FL_MIB };

/* How many hold `len` bytes. */
static inline size_t fl_granules(size_t len)
{
    return (len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;
}

/* Who has an arena, and since when it is idle. */
struct fl_arena_use {
    uint32_t opening;      /* which one it is of all that ever were. Lock: plan, or the owner */
    _Atomic bool owned;    /* by a context; else free, or draining. Lock: plan */
    _Atomic bool used;     /* since the worker looked */
    _Atomic unsigned idle; /* looks at which it was not. The thread that ages it */
    _Atomic unsigned held; /* times: nothing of it moves or goes back. Lock: plan, to write */
};

/* The memory that a context's planned blocks lie in: see arena.c.
 * Type-stable: never freed, so that a late look at one is harmless. Its owner is the thread of the
 * context that has it. */
struct fl_arena {
    struct fl_inner inner; /* first: fl_plan_give finds the arena by it */
    struct fl_bitmap claimed;
    struct fl_bitmap absent; /* not in memory, by whole huge pages. Who claimed the granules */
    uintptr_t base;
    size_t words;           /* of claimed.word */
    _Atomic size_t missing; /* huge pages below the limit that are not in memory. Its owner */
    _Atomic size_t height;  /* bytes of addresses; 0: none. Owner, or who claimed all of it */
    _Atomic size_t limit;   /* bytes that may be used. Its owner */
    _Atomic size_t lent;    /* huge pages, that are to come back. Relaxed */
    size_t moved;           /* that came back, or to where they are wanted, ever. Its owner */
    size_t budget;     /* huge pages to be in memory at most, while others can move. Its owner */
    size_t hand;       /* the huge page that was looked at last for one to move. Its owner */
    _Atomic bool cold; /* its tables are to come into memory. Lock: plan, to write */
    _Atomic bool draining;
    _Atomic bool thinned;  /* idle pages are claimed for a moment, to leave. Lock: plan, to write */
    struct fl_arena *next; /* every arena ever made. Lock: plan */
    struct fl_arena_use use;
};

/* Takes addresses for `height` bytes and a quarter more; the arena has none. False: not to be had.
 * The owner. */
bool fl_arena_open(struct fl_arena *a, size_t height);
/* What it needs of descriptors and of the pagemap comes into memory, so that its first steps take
 * no fault for that. The worker. */
void fl_arena_warm(struct fl_arena *a);
/* From now on `height` bytes may be used. False: it has not as many. The owner. */
bool fl_arena_raise(struct fl_arena *a, size_t height);
/* The huge pages that the granules lie in are in memory, each run of missing ones brought there at
 * once. The owner. */
bool fl_arena_bring(struct fl_arena *a, size_t granule, size_t n);
/* `most` bytes of it are expected to be in use at once: beyond that, and beyond what was needed at
 * once before, what is idle moves to where it is wanted. The owner. */
void fl_arena_expect(struct fl_arena *a, size_t most);
/* A block at `granule`, LIVE, that may grow to `room` bytes; NULL: some of it is taken. */
struct fl_extent *fl_arena_take(struct fl_arena *a, size_t granule, size_t len, size_t room);
/* A claim failed: may that be for idle pages that were about to leave it? They have left now. No
 * lock held. */
bool fl_arena_was_thinned(struct fl_arena *a);
/* Closes it if no block is in it: its memory is the region's, free. Any thread; takes the
 * region lock. */
void fl_arena_drop_if_empty(struct fl_arena *a);
/* All huge pages of it in which there is no block are the region's, free; the addresses stay.
 * Bytes. */
size_t fl_arena_trim(struct fl_arena *a);
/* The one or the other. Bytes. */
size_t fl_arena_hand_on(struct fl_arena *a);
/* The same, but the memory goes to the kernel. */
size_t fl_arena_give_up(struct fl_arena *a);
bool fl_arena_is_open(const struct fl_arena *a);
/* One that no context has, without addresses, for a context; NULL: no memory. */
struct fl_arena *fl_arena_new(void);
/* Nothing of it is handed out any more: it closes as soon as it is empty. */
void fl_arena_retire(struct fl_arena *a);

#endif
