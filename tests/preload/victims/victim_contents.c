/* What blocks hold: zeroes after calloc, up to their usable size, as glibc has it and systemd needs
 * it; their bytes after realloc; room for all of their usable size. */
#include "victim.h"

static const size_t sizes[] = {
    60 * KIB, 64 * KIB - 1, 64 * KIB,       65 * KIB, 100 * KIB + 7,  MIB - 1,      MIB,
    2 * MIB,  2 * MIB + 1,  3 * MIB + 5000, 8 * MIB,  16 * MIB + 300, 32 * MIB + 7, 33 * MIB};
enum { NSIZES = sizeof sizes / sizeof sizes[0] };

MODE(calloc_same_size)
{
    for (size_t i = 0; i < NSIZES; i++) {
        for (int again = 0; again < 3; again++) {
            unsigned char *p = malloc(sizes[i]);
            memset(p, 0xff, malloc_usable_size(p));
            free(p);
            p = calloc(1, sizes[i]);
            CHECK(is_all(p, malloc_usable_size(p), 0));
            memset(p, 0xff, malloc_usable_size(p));
            free(p);
        }
    }
}

MODE(calloc_in_pieces)
{
    unsigned char *piece[16];
    for (int round = 0; round < 6; round++) {
        unsigned char *big = malloc(40 * MIB);
        memset(big, 0xff, 40 * MIB);
        free(big);
        if (round % 3 == 2) {
            malloc_trim(0);
        }
        for (size_t i = 0; i < 16; i++) {
            piece[i] = calloc(1, sizes[(i + (size_t)round) % NSIZES] / 4);
            CHECK(is_all(piece[i], malloc_usable_size(piece[i]), 0));
        }
        for (size_t i = 0; i < 16; i++) {
            memset(piece[i], 0xff, malloc_usable_size(piece[i]));
        }
        for (size_t i = 0; i < 16; i += 1) {
            free(piece[i * 7 % 16]);
        }
    }
}

/* Above eager_max: on touch. */
MODE(calloc_lazy)
{
    for (int i = 0; i < 3; i++) {
        unsigned char *p = calloc(1, 96 * MIB);
        CHECK(is_all(p, malloc_usable_size(p), 0));
        memset(p, 0xff, malloc_usable_size(p));
        free(p);
    }
}

MODE(realloc_walk)
{
    static const size_t walk[] = {100,      60 * KIB, 64 * KIB, 70 * KIB, MIB,
                                  50 * MIB, 51 * MIB, 20 * MIB, MIB,      70 * KIB,
                                  64 * KIB, 60 * KIB, 100,      5 * MIB,  1};
    char *p = NULL;
    size_t old = 0;
    for (uint64_t i = 0; i < sizeof walk / sizeof walk[0]; i++) {
        p = realloc(p, walk[i]);
        CHECK(p != NULL && malloc_usable_size(p) >= walk[i]);
        CHECK(old == 0 || is_stamped_part(p, old < walk[i] ? old : walk[i], old, i - 1));
        stamp(p, walk[i], i);
        old = walk[i];
    }
    free(p);
}

MODE(realloc_random)
{
    enum { BLOCKS = 8 };
    char *p[BLOCKS] = {NULL};
    size_t len[BLOCKS] = {0};
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 1500; i++) {
        size_t k = next_random(&seed) % BLOCKS,
               n = 1 + (next_random(&seed) >> (44 + next_random(&seed) % 12));
        p[k] = realloc(p[k], n);
        CHECK(p[k] != NULL);
        CHECK(len[k] == 0 || is_stamped_part(p[k], len[k] < n ? len[k] : n, len[k], k));
        stamp(p[k], n, k);
        len[k] = n;
    }
    for (size_t k = 0; k < BLOCKS; k++) {
        CHECK(len[k] == 0 || is_stamped(p[k], len[k], k));
        free(p[k]);
    }
}

MODE(alignment)
{
    static const size_t lens[] = {64 * KIB, MIB + 1, 5 * MIB};
    for (size_t align = 16; align <= 64 * MIB; align *= 2) {
        void *p[6] = {NULL};
        for (size_t i = 0; i < 6; i++) {
            CHECK(posix_memalign(&p[i], align, lens[i % 3]) == 0);
            CHECK((uintptr_t)p[i] % align == 0 && malloc_usable_size(p[i]) >= lens[i % 3]);
            stamp(p[i], lens[i % 3], align + i);
        }
        for (size_t i = 0; i < 6; i++) {
            CHECK(is_stamped(p[i], lens[i % 3], align + i));
            free(p[i]);
        }
    }
}

MODE(usable_in_full)
{
    unsigned char *p[NSIZES];
    for (size_t i = 0; i < NSIZES; i++) {
        p[i] = malloc(sizes[i]);
        memset(p[i], (int)i + 1, malloc_usable_size(p[i]));
    }
    for (size_t i = 0; i < NSIZES; i++) {
        size_t n = malloc_usable_size(p[i]);
        CHECK(p[i][0] == i + 1 && memcmp(p[i], p[i] + 1, n - 1) == 0);
        free(p[i]);
    }
}

static void *keep_errno(void *arg)
{
    for (size_t i = 0; i < NSIZES; i++) {
        errno = 1234;
        void *p = malloc(sizes[i]);
        CHECK(errno == 1234);
        void *q = calloc(1, sizes[i]);
        CHECK(errno == 1234);
        void *r = NULL;
        CHECK(posix_memalign(&r, 8192, sizes[i]) == 0 && errno == 1234);
        q = realloc(q, sizes[i] * 2);
        CHECK(errno == 1234);
        free(p);
        free(q);
        CHECK(errno == 1234);
        free(r);
        CHECK(errno == 1234);
    }
    return arg;
}

MODE(errno_kept)
{
    keep_errno(NULL);
    in_thread(keep_errno, NULL);
    void *p;
    errno = 1234;
    CHECK(posix_memalign(&p, 8192, PTRDIFF_MAX - 8192) == ENOMEM && errno == ENOMEM);
}

MAIN()
