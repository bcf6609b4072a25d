/* HOW: steps of a loop, each of which asks for the same blocks, touches and frees them. With "each"
 * it calls malloc_trim at the end of each, with "never" it does not. Says how many steps
 * after the first ones took page faults, and what is in memory after two trims more. */
#include "victim.h"

enum { BLOCKS = 24, SMALL = 40, STEPS = 60, WARM = 12 };

static void *kept[BLOCKS / 4];

static size_t length(int i)
{
    return (size_t)(i % 8 + 1) * (i % 8 + 1) * 96 * KIB + (size_t)i * 4096;
}

static void step(void)
{
    void *block[BLOCKS], *small[SMALL];

    for (int i = 0; i < BLOCKS; i++) {
        block[i] = written(length(i), (uint64_t)i);
        if (i % 4 == 0) { /* some live on into the next step */
            free(kept[i / 4]);
            kept[i / 4] = malloc(length(i));
            CHECK(kept[i / 4] != NULL);
            memset(kept[i / 4], 1, length(i));
        }
    }
    for (int i = 0; i < SMALL; i++) {
        small[i] = taken(500);
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(is_stamped(block[(i * 5) % BLOCKS], length((i * 5) % BLOCKS),
                         (uint64_t)((i * 5) % BLOCKS)));
        free(block[(i * 5) % BLOCKS]);
    }
    FREE_ALL(small, SMALL);
}

int main(int argc, char **argv)
{
    int trims = argc > 1 && strcmp(argv[1], "each") == 0;
    long sum = 0;
    int with = 0;

    for (int i = 0; i < STEPS; i++) {
        long before = faults_of(RUSAGE_SELF);
        step();
        if (trims) {
            malloc_trim(0);
        }
        long took = faults_of(RUSAGE_SELF) - before;
        if (i >= WARM) {
            sum += took;
            with += took != 0;
        }
    }
    printf("faults in %d of %d steps, %ld in all\n", with, STEPS - WARM, sum);
    FREE_ALL(kept, BLOCKS / 4);
    malloc_trim(0);
    malloc_trim(0); /* nothing was asked for in between */
    printf("held %zu KiB\n", proc_number("/proc/self/status", "RssAnon:"));
    return 0;
}
