/* The huge-page reserve: huge pages that are populated, zero, and under no block. Requests take
 * them by a move. Included by pages.h.
 *
 * How full it is to be is the owner's to say (region/supply/refill.c). It is a span of its own, in
 * chunks of one length. A chunk is being filled or emptied by one thread (`isolated`), or it is
 * taken from; bytes below `ready` are there. Children of fork have none of it, and core dumps
 * neither. Lock: owner's, for each function that doesn't say otherwise.
 * S1  held == sum of held over chunks; held >= ready.
 * S2  a chunk with `moving` takers is not refilled. */
#ifndef FL_PAGES_RESERVE_H
#define FL_PAGES_RESERVE_H

#include "core/core.h"
#include "numa/numa.h"

struct fl_pages;

enum {
    FL_RESERVE_CHUNKS = 64,
    FL_RESERVE_PIECES = 24, /* that one request takes, at most */
};

struct fl_reserve_chunk {
    size_t ready, held;     /* bytes, from the chunk's start */
    size_t mapped;          /* likewise; what was ever wanted of it */
    unsigned moving;        /* requests that are taking pages which are no longer `ready` */
    bool isolated;          /* one thread fills or empties it, with no lock */
    uint8_t zone;           /* whose it is while anything of it is mapped */
    bool holed;             /* a move failed: what lies there is unknown */
    _Atomic uint32_t epoch; /* the owner's tick when it was filled */
};

struct fl_reserve {
    struct fl_vspace span;
    size_t chunk_len; /* bytes; 0: the span is not claimed yet */
    size_t ready;     /* bytes to be had */
    size_t held;      /* bytes that count as populated: ready, being filled, being emptied */
    size_t ready_of[FL_ZONES]; /* of `ready`, by class */
    uint64_t pause_until_ns;   /* monotonic; huge pages come too slowly. The worker alone */
    struct fl_reserve_chunk chunk[FL_RESERVE_CHUNKS];
};

/* S1, as far as one chunk tells. It is being filled or emptied, or all that it holds is ready. */
static inline bool fl_reserve_is_sound(const struct fl_reserve *s, const struct fl_reserve_chunk *c)
{
    return (c->isolated ? c->ready == 0 : c->ready == c->held) && c->held <= s->chunk_len &&
           c->ready <= c->mapped && c->held <= s->held && s->ready <= s->held &&
           c->ready <= s->ready_of[c->zone] && s->ready_of[c->zone] <= s->ready;
}

/* Bytes of it that go to one request. */
struct fl_reserve_piece {
    struct fl_range range;
    size_t moved; /* bytes, from its start. The taker's */
    unsigned chunk;
};

/* `want` bytes, as far as they are there, as pieces behind the first `*n`. Returns bytes, which are
 * held no more. give_back: after the move, which says `moved` of each; returns bytes that are held
 * again. */
size_t fl_reserve_take(struct fl_pages *p, size_t want, unsigned zone,
                       struct fl_reserve_piece piece[static FL_RESERVE_PIECES], unsigned *n);
size_t fl_reserve_give_back(struct fl_pages *p, const struct fl_reserve_piece *piece, unsigned n);

/* Filling, one chunk at a time: claim, fill without the lock, then filled.
 * claim: an empty chunk that holds `len` bytes from now on; NULL: there is none. */
struct fl_reserve_chunk *fl_reserve_claim(struct fl_pages *p, size_t len, unsigned zone);
/* Not under the lock. Returns bytes that are there now, from the chunk's start. */
size_t fl_reserve_fill(struct fl_pages *p, struct fl_reserve_chunk *c, size_t want);
/* Of `want` bytes that it was claimed for those are `there`; the rest is not held. */
void fl_reserve_filled(struct fl_pages *p, struct fl_reserve_chunk *c, size_t want, size_t there,
                       uint32_t epoch);

/* Emptying: may it be, as one that was filled `age` ticks before `epoch`? Then begin, empty without
 * the lock, and end, which returns bytes that are held no more. */
bool fl_reserve_may_empty(const struct fl_reserve_chunk *c, uint32_t age, uint32_t epoch);
size_t fl_reserve_empty_begin(struct fl_pages *p, struct fl_reserve_chunk *c);
bool fl_reserve_empty(struct fl_pages *p, const struct fl_reserve_chunk *c);
size_t fl_reserve_empty_end(struct fl_pages *p, struct fl_reserve_chunk *c, size_t had, bool gone);

/* Is there anything to empty, now or when it has aged? */
bool fl_reserve_is_mapped(const struct fl_reserve *s);
/* What is mapped of its i-th chunk. */
struct fl_range fl_reserve_mapped(const struct fl_reserve *s, unsigned i);
/* In a child of fork nothing of it is there. Returns bytes that were held. */
size_t fl_reserve_fork_child(struct fl_reserve *s);
/* Mapped for it: not for children, nor for core dumps. No lock needed. */
void fl_reserve_advise(struct fl_range range);

#endif
