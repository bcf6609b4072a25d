/* Blocks that know what they hold, of all sizes, by every function that makes large ones. */
#ifndef FAULTLESS_TESTS_PRELOAD_BLOCKS_H
#define FAULTLESS_TESTS_PRELOAD_BLOCKS_H

#include "victim.h"

#include <stdatomic.h>

struct block {
    char *p;
    size_t n;
    uint64_t seed;
};

static inline void check(const struct block *b)
{
    CHECK(is_stamped(b->p, b->n, b->seed));
}

static inline void drop(struct block *b)
{
    if (b->p != NULL) {
        check(b);
        free(b->p);
        b->p = NULL;
    }
}

static inline void drop_all(struct block b[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        drop(&b[i]);
    }
}

/* 64 KiB to 64 MiB, the small ones more often. */
static inline size_t some_size(uint64_t *seed)
{
    uint64_t a = next_random(seed) % 10, b = next_random(seed) % 10;
    size_t from = 64 * KIB << (a < b ? a : b);
    return from + next_random(seed) % from;
}

static inline void check_zero(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i += 512) {
        CHECK(p[i] == 0);
    }
    CHECK(p[n - 1] == 0);
}

static inline void refill(struct block *b, uint64_t *seed)
{
    void *q = NULL;
    size_t n = some_size(seed);
    uint64_t how = next_random(seed) % 4;

    if (how == 0 && b->p != NULL) {
        size_t kept = n < b->n ? n : b->n;
        q = realloc(b->p, n);
        CHECK(q != NULL && is_stamped_part(q, kept, b->n, b->seed));
    } else {
        drop(b);
        if (how == 1) {
            q = calloc(1, n);
            CHECK(q != NULL);
            check_zero(q, malloc_usable_size(q));
        } else if (how == 2) {
            CHECK(posix_memalign(&q, 64 * KIB, n) == 0);
        } else {
            q = taken(n);
        }
    }
    *b = (struct block){q, n, next_random(seed)};
    stamp(b->p, b->n, b->seed);
}

static atomic_bool stop_churn;

static inline void *churn(void *arg)
{
    uint64_t seed = (uintptr_t)arg + 4321;
    struct block b[3] = {{NULL, 0, 0}};
    while (!stop_churn) {
        refill(&b[next_random(&seed) % 3], &seed);
    }
    drop_all(b, 3);
    return NULL;
}

/* Threads that allocate until they are told to end. */
static inline void start_churn(pthread_t t[], size_t n)
{
    stop_churn = 0;
    start_threads(t, n, churn);
}

static inline void end_churn(const pthread_t t[], size_t n)
{
    stop_churn = 1;
    join_threads(t, n);
}

#endif
