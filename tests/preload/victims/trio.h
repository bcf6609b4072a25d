/* A block between two others; what a scenario does to whole pages inside it, and what must hold
 * afterwards. */
#ifndef FAULTLESS_TESTS_PRELOAD_TRIO_H
#define FAULTLESS_TESTS_PRELOAD_TRIO_H

#include "blocks.h"

#include <sys/mman.h>

struct trio {
    struct block before, it, after;
    char *part; /* whole pages in the middle of `it` */
    size_t part_len;
};

/* glibc maps and unmaps these, whatever it has learnt of the program: no other block's pages were
 * or will be theirs. */
static const size_t always_mapped = 40 * MIB;

static inline struct block stamped(size_t n, uint64_t seed)
{
    struct block b = {malloc(n), n, seed};
    CHECK(b.p != NULL);
    stamp(b.p, n, seed);
    return b;
}

static inline void make_trio(struct trio *t, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    t->before = stamped(n, 11);
    t->it = stamped(n, 22);
    t->after = stamped(n, 33);
    t->part = (char *)(((uintptr_t)t->it.p + n / 3 + page - 1) / page * page);
    t->part_len = n / 3 / page * page;
}

/* So much of the part that RLIMIT_MEMLOCK lets every user lock it. */
static inline size_t lockable(const struct trio *t)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    size_t n = limit.rlim_cur / 2 / page * page;
    return n < t->part_len ? n : t->part_len;
}

static inline void renew(struct block *b, uint64_t seed)
{
    b->seed = seed;
    stamp(b->p, b->n, seed);
}

/* Every page of the part holds what it was given, or, where `may_be_zero`, nothing but zeros. */
static inline void check_part(const struct trio *t, int may_be_zero)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t at = 0; at < t->part_len; at += page) {
        const char *p = t->part + at;
        size_t from_start = (size_t)(p - t->it.p), first = (512 - from_start % 512) % 512;
        uint64_t v;
        memcpy(&v, p + first, sizeof v);
        CHECK(v == t->it.seed + from_start + first || (may_be_zero && v == 0));
    }
}

/* All of the block but the part. */
static inline void check_rest(struct trio *t)
{
    size_t head = (size_t)(t->part - t->it.p), tail = head + t->part_len;
    CHECK(is_stamped_part(t->it.p, head, t->it.n, t->it.seed));
    for (size_t at = (tail + 511) / 512 * 512; at + 8 <= t->it.n; at += 512) {
        uint64_t v;
        memcpy(&v, t->it.p + at, sizeof v);
        CHECK(v == t->it.seed + at || at + 8 == t->it.n);
    }
}

/* The block can be written, grown, freed; those that come after it hold what they are given, and
 * calloc's are zero. */
static inline void end_trio(struct trio *t)
{
    check(&t->before);
    check(&t->after);
    renew(&t->it, 44);
    char *p = realloc(t->it.p, t->it.n * 2);
    CHECK(p != NULL && is_stamped_part(p, t->it.n, t->it.n, 44));
    t->it = (struct block){p, t->it.n * 2, 55};
    renew(&t->it, 55);
    drop(&t->it);
    drop(&t->before);
    struct block next = stamped(t->after.n, 66);
    p = calloc(3, t->after.n);
    CHECK(p != NULL);
    check_zero(p, 3 * t->after.n);
    free(p);
    drop(&next);
    drop(&t->after);
}

static inline void while_others_allocate(void (*f)(void))
{
    pthread_t t[2];
    start_churn(t, 2);
    f();
    end_churn(t, 2);
}

/* A child that judges for itself. */
static inline void in_child(void (*f)(struct trio *), struct trio *t)
{
    IN_CHILD
    {
        f(t);
    }
}

#endif
