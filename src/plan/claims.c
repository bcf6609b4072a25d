/* Who has which granules of an arena: one bit each. A plan, or anybody, may be wrong about what is free; the bits are not. */
#include "plan/internal.h"

enum { BITS = 64 };

/* The bits of word `w` that [first, first + n) covers. */
static uint64_t mask_of(size_t w, size_t first, size_t n)
{
    size_t from = fl_max(w * BITS, first), to = fl_min((w + 1) * BITS, first + n);
    size_t len = to - from;

    return (len == BITS ? UINT64_MAX : (UINT64_C(1) << len) - 1) << (from % BITS);
}

static void give_words(struct fl_claims *c, size_t first, size_t n, size_t upto)
{
    for (size_t w = first / BITS; w < upto; w++) {
        /* release: what the block's owner did comes before the next owner's claim */
        (void)atomic_fetch_and_explicit(&c->word[w], ~mask_of(w, first, n), memory_order_release);
    }
}

bool fl_claims_take(struct fl_claims *c, size_t first, size_t n)
{
    if (n == 0 || n > c->granules || first > c->granules - n) {
        return false;
    }
    for (size_t w = first / BITS; w * BITS < first + n; w++) {
        uint64_t mask = mask_of(w, first, n);
        uint64_t had = atomic_load_explicit(&c->word[w], memory_order_relaxed);
        if ((had & mask) == 0) {
            had = atomic_fetch_or_explicit(&c->word[w], mask, memory_order_acquire);
            if ((had & mask) == 0) {
                continue;
            }
            (void)atomic_fetch_and_explicit(&c->word[w], ~(mask & ~had), memory_order_release);
        }
        give_words(c, first, n, w);
        return false;
    }
    return true;
}

void fl_claims_give(struct fl_claims *c, size_t first, size_t n)
{
    give_words(c, first, n, (first + n + BITS - 1) / BITS);
}

/* The first granule at or after `at` whose bit is `set`; the number of granules when there is none. */
static size_t next_bit(const struct fl_claims *c, size_t at, bool set)
{
    while (at < c->granules) {
        uint64_t bits = atomic_load_explicit(&c->word[at / BITS], memory_order_relaxed);
        bits = (set ? bits : ~bits) >> (at % BITS);
        if (bits != 0) {
            return fl_min(at + (size_t)__builtin_ctzll(bits), c->granules);
        }
        at = (at / BITS + 1) * BITS;
    }
    return c->granules;
}

size_t fl_claims_fit(const struct fl_claims *c, size_t n, size_t align)
{
    size_t best = SIZE_MAX, best_len = SIZE_MAX;

    for (size_t from = next_bit(c, 0, false); from < c->granules && best_len != n;) {
        size_t to = next_bit(c, from, true), at = fl_align_up(from, align);
        if (at + n <= to && to - from < best_len) {
            best = at;
            best_len = to - from;
        }
        from = next_bit(c, to, false);
    }
    return best;
}

bool fl_claims_none(const struct fl_claims *c)
{
    return next_bit(c, 0, true) == c->granules;
}
