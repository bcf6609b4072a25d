/* Who has which granules of an arena: one bit each. A plan may be wrong about what is
 * free; the bits are not. */
#include "plan/context.h"

enum { BITS = FL_BITMAP_BITS };

/* The bits of a range's first word and of its last one, which may be the same; all of those
 * between. */
struct ends {
    _Atomic uint64_t *first, *last;
    uint64_t head, tail;
};

static inline struct ends ends_of(const struct fl_bitmap *c, size_t first, size_t n)
{
    size_t last = first + n - 1;
    struct ends ends = {&c->word[first / BITS], &c->word[last / BITS], UINT64_MAX << first % BITS,
                        UINT64_MAX >> (BITS - 1 - last % BITS)};

    fl_assert(n != 0 && n <= c->granules && first <= c->granules - n);
    if (ends.first == ends.last) {
        ends.head = ends.tail &= ends.head;
    }
    return ends;
}

/* Those before `upto`. */
static void give_words(struct ends ends, _Atomic uint64_t *upto)
{
    _Atomic uint64_t *w = ends.first;

    if (w != upto) {
        fl_bits_give(w++, ends.head);
    }
    for (; w < upto; w++) { /* no other thread changes it. release: as fl_bits_give */
        atomic_store_explicit(w, 0, memory_order_release);
    }
}

bool fl_bitmap_take(struct fl_bitmap *c, size_t first, size_t n)
{
    if (n == 0 || n > c->granules || first > c->granules - n) {
        return false;
    }
    struct ends ends = ends_of(c, first, n);
    _Atomic uint64_t *w = ends.first;
    bool took = fl_bits_take(w, ends.head);

    while (took && ++w < ends.last) {
        uint64_t none = 0;
        took = atomic_compare_exchange_strong_explicit(w, &none, UINT64_MAX, memory_order_acquire,
                                                       memory_order_relaxed);
    }
    if (took && w == ends.last) {
        took = fl_bits_take(w, ends.tail);
    }
    if (!took) {
        give_words(ends, w);
    }
    return took;
}

/* acquire: pairs with fl_bits_give */
static bool has_none(const _Atomic uint64_t *w, uint64_t mask)
{
    return (atomic_load_explicit(w, memory_order_acquire) & mask) == 0;
}

bool fl_bitmap_are_free(const struct fl_bitmap *c, size_t first, size_t n)
{
    struct ends ends = ends_of(c, first, n);
    bool none = has_none(ends.first, ends.head) && has_none(ends.last, ends.tail);

    for (const _Atomic uint64_t *w = ends.first + 1; w < ends.last && none; w++) {
        none = has_none(w, UINT64_MAX);
    }
    return none;
}

void fl_bitmap_give(struct fl_bitmap *c, size_t first, size_t n)
{
    if (n != 0) {
        struct ends ends = ends_of(c, first, n);
        give_words(ends, ends.last);
        fl_bits_give(ends.last, ends.tail);
    }
}

size_t fl_bitmap_count(const struct fl_bitmap *c, size_t n)
{
    size_t count = 0;

    fl_assert(n <= c->granules);
    for (size_t at = 0; at < n; at += BITS) {
        uint64_t bits = atomic_load_explicit(&c->word[at / BITS], memory_order_relaxed);
        count += (size_t)__builtin_popcountll(bits & UINT64_MAX >> (BITS - fl_min(n - at, BITS)));
    }
    return count;
}
