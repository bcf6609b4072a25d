/* Declared steps in which sizes vary by 3 %, each on its own, and half of which begin with one
 * request more, so that each request meets the place of another.
 *
 *   victim_optional STEPS
 *
 * All blocks of a step live to its end. Prints "peak KIB", the most that was live at once. */
#include "api.h"
#include "worker.h"

#include <stdbool.h>

enum { REQUESTS = 40 };

static size_t size_of(int request, uint64_t *random)
{
    size_t most = (16 * MIB) >> 2 * (request % 4);

    return most - next_random(random) % 2 * (most / 32);
}

/* Bytes that were live at once. */
static size_t step(uint64_t *random)
{
    char *block[REQUESTS + 1];
    size_t live = 0, n;
    int made = 0;

    if (next_random(random) % 2 == 0) {
        block[made++] = malloc(16 * MIB);
        stamp(block[0], 16 * MIB, 1);
        live = 16 * MIB;
    }
    for (int i = 0; i < REQUESTS; i++, live += n) {
        n = size_of(i, random);
        block[made] = taken(n);
        stamp(block[made++], n, 1);
    }
    while (made > 0) {
        free(block[--made]);
    }
    return live;
}

int main(int argc, char **argv)
{
    size_t peak = 0, live;
    uint64_t random = 7;

    CHECK(argc == 2);
    for (long i = 0, steps = strtol(argv[1], NULL, 10); i < steps; i++) {
        bool declared = CALL(fl_step_begin)(NULL) == 0; /* not where plans are off */
        live = step(&random);
        peak = live > peak ? live : peak;
        CHECK(!declared || CALL(fl_step_end)(NULL) == 0);
        wait_until_worker_sleeps(); /* it makes the plan */
    }
    printf("peak %zu\n", peak / KIB);
    return 0;
}
