/* A program without a mistake: random requests of all kinds in several threads, and a fork in
 * between. What a block holds, how long and how aligned it is, and that calloc's are zero, is
 * looked at all the time. */
#include "blocks.h"

#include <stdbool.h>

enum { THREADS = 3, SLOTS = 24, ROUNDS = 1500 };

static size_t any_size(uint64_t *seed)
{
    static const size_t most[] = {2 * KIB, 70 * KIB, 300 * KIB, 3 * MIB, 20 * MIB};
    uint64_t r = next_random(seed);

    return 1 + next_random(seed) % most[r % 64 == 0 ? 4 : r % 16 == 0 ? 3 : r % 3];
}

static void fill(struct block *s, uint64_t *seed, void *p, size_t n)
{
    CHECK(p != NULL && (uintptr_t)p % 16 == 0);
    *s = (struct block){p, n, next_random(seed)};
    /* what it says is usable is: all of it may be written */
    size_t usable = malloc_usable_size(p);
    CHECK(usable >= n);
    ((volatile char *)p)[usable - 1] = 1;
    stamp(p, n, s->seed);
}

static void take_zeroed(struct block *s, uint64_t *seed)
{
    size_t n = any_size(seed);
    const char *p = calloc(1, n);

    CHECK(p != NULL);
    for (size_t i = 0; i < n; i++) {
        CHECK(p[i] == 0);
    }
    fill(s, seed, (void *)(uintptr_t)p, n);
}

static void take_aligned(struct block *s, uint64_t *seed)
{
    size_t align = (size_t)16 << next_random(seed) % 18, n = any_size(seed);
    void *p = NULL;

    CHECK(posix_memalign(&p, align, n) == 0 && (uintptr_t)p % align == 0);
    fill(s, seed, p, n);
}

static void take_resized(struct block *s, uint64_t *seed)
{
    size_t n = any_size(seed);

    if (s->p == NULL) {
        fill(s, seed, realloc(NULL, n), n);
        return;
    }
    check(s);
    char *p = realloc(s->p, n);
    CHECK(p != NULL && is_stamped_part(p, n < s->n ? n : s->n, s->n, s->seed));
    fill(s, seed, p, n);
}

static void round_of(struct block *slots, uint64_t *seed)
{
    struct block *s = &slots[next_random(seed) % SLOTS];

    switch (next_random(seed) % 5) {
    case 0:
        drop(s);
        take_zeroed(s, seed);
        break;
    case 1:
        drop(s);
        take_aligned(s, seed);
        break;
    case 2:
        take_resized(s, seed);
        break;
    case 3:
        drop(s);
        break;
    default:
        drop(s);
        size_t n = any_size(seed);
        fill(s, seed, malloc(n), n);
    }
}

static void *work(void *arg)
{
    struct block slots[SLOTS] = {{NULL, 0, 0}};
    uint64_t seed = 0x9e3779b97f4a7c15u * ((uintptr_t)arg + 1);

    for (long i = 0; i < at_most(ROUNDS); i++) {
        round_of(slots, &seed);
    }
    drop_all(slots, SLOTS);
    return NULL;
}

/* The child has the parent's blocks, and goes on with them. */
static void go_on_in_child(struct block *slots, uint64_t *seed)
{
    IN_CHILD
    {
        for (int i = 0; i < 200; i++) {
            round_of(slots, seed);
        }
        drop_all(slots, SLOTS);
    }
}

int main(void)
{
    struct block slots[SLOTS] = {{NULL, 0, 0}};
    uint64_t seed = 88172645463325252u;
    pthread_t t[THREADS];

    start_threads(t, THREADS, work);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 100; j++) {
            round_of(slots, &seed);
        }
        go_on_in_child(slots, &seed);
    }
    join_threads(t, THREADS);
    drop_all(slots, SLOTS);
    malloc_trim(0);
    return 0;
}
