/* Blocks of which every word that is checked says whose it is, so that a byte given away twice is
 * found, and by whom it was written.
 *
 * A word is the block's mark mixed with the word's address. Marked are the first and the last word,
 * and one word in each 64 KiB of addresses; in one block of 32 one word in each page. Where it lies
 * depends on the address alone: two blocks that share 64 KiB, or a page, write the same word. */
#ifndef FAULTLESS_TESTS_PRELOAD_OWNED_H
#define FAULTLESS_TESTS_PRELOAD_OWNED_H

#include "victim.h"

#include <stdbool.h>

enum { OWNED_THOROUGH = 32, OWNED_SPAN = 1 << 16, OWNED_PAGE = 4096, OWNED_SERIAL_BITS = 48 };

struct owned {
    char *p;       /* NULL: none */
    size_t n;      /* bytes */
    uint64_t mark; /* owner, from 1, and serial number below it */
};

/* Said when a check fails. */
extern uint64_t owned_seed;
extern long (*owned_operations)(void);

static inline uint64_t owned_mark(unsigned owner, uint64_t serial)
{
    return (uint64_t)owner << OWNED_SERIAL_BITS | serial;
}

static inline uint64_t owned_mix(uintptr_t at)
{
    return at * UINT64_C(0x9e3779b97f4a7c15);
}

/* The word that is marked in the span of addresses that begins at `from`. */
static inline uintptr_t owned_spot(uintptr_t from, uintptr_t span)
{
    return from + ((owned_mix(from >> 12) >> 40) & (span - 8));
}

/* The next marked word of the block after the one at `at`; 0: that was the last. */
static inline uintptr_t owned_next(const struct owned *b, uintptr_t at)
{
    uintptr_t span = b->mark % OWNED_THOROUGH == 0 ? OWNED_PAGE : OWNED_SPAN;
    uintptr_t last = ((uintptr_t)b->p + b->n - 8) & ~(uintptr_t)7, spot = 0;

    for (uintptr_t from = at & ~(span - 1); spot <= at; from += span) {
        spot = owned_spot(from, span);
    }
    return at >= last ? 0 : spot < last ? spot : last;
}

static inline void owned_write(const struct owned *b)
{
    for (uintptr_t at = (uintptr_t)b->p; at != 0; at = owned_next(b, at)) {
        *(uint64_t *)at = b->mark ^ owned_mix(at);
    }
}

/* Says which word of which block is not its own, whose it is, and ends the process. */
_Noreturn void owned_wrong(const struct owned *b, const char *when, size_t at, uint64_t has);

/* Ends the process unless the first `n` bytes are the block's own. They lie at `p`; they were
 * marked at b->p. */
static inline void owned_check_at(const struct owned *b, const char *p, size_t n, const char *when)
{
    for (uintptr_t at = (uintptr_t)b->p; at != 0; at = owned_next(b, at)) {
        size_t off = at - (uintptr_t)b->p;
        if (off + 8 > n) {
            break;
        }
        uint64_t has = *(const uint64_t *)(p + off);
        if (has != (b->mark ^ owned_mix(at))) {
            owned_wrong(b, when, off, has);
        }
    }
}

static inline void owned_check(const struct owned *b, const char *when)
{
    if (b->p != NULL) {
        owned_check_at(b, b->p, b->n, when);
    }
}

/* The words that are going to be marked, and the last byte, are zero. */
static inline void owned_check_zero(const struct owned *b)
{
    for (uintptr_t at = (uintptr_t)b->p; at != 0; at = owned_next(b, at)) {
        if (*(const uint64_t *)at != 0) {
            owned_wrong(b, "calloc", at - (uintptr_t)b->p, *(const uint64_t *)at);
        }
    }
    CHECK(b->p[b->n - 1] == 0);
}

static inline void owned_drop(struct owned *b, const char *when)
{
    owned_check(b, when);
    free(b->p);
    b->p = NULL;
}

#endif
