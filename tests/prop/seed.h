/* The seed of a property test: FL_TEST_SEED, else a fresh one; and the generator that it starts. */
#ifndef FL_TESTS_PROP_SEED_H
#define FL_TESTS_PROP_SEED_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* splitmix64 (Steele, Lea, Flood 2014): every 64-bit state is a good one. */
static inline uint64_t seed_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline uint64_t seed_read(void)
{
    const char *given = getenv("FL_TEST_SEED");
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec;
    if (given != NULL) {
        seed = strtoull(given, NULL, 0);
    }
    fprintf(stderr, "seed: FL_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

#endif
