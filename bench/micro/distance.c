/* How the distance between two streams changes the time of a loop that reads one and writes the
 * other.
 *
 *   distance [--mib N] [--rounds N]
 *
 * Both lie in one mapping of huge pages that is in memory, the first at its begin. Distances take
 * turns. A line for each: KiB, and ms of the loop, the median. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MIB = 1 << 20, KIB = 1 << 10, MOST = 101, FAR_MIB = 1030 };

static const size_t distance[] = {64 * MIB,
                                  66 * MIB,
                                  80 * MIB,
                                  96 * MIB,
                                  100 * MIB,
                                  256 * MIB,
                                  256 * MIB + 4 * KIB,
                                  256 * MIB + 16 * KIB,
                                  256 * MIB + 32 * KIB,
                                  256 * MIB + 64 * KIB,
                                  1024 * MIB,
                                  1024 * MIB + 64 * KIB};
enum { DISTANCES = sizeof distance / sizeof *distance };

static double time_of(const float *from, float *to, size_t n)
{
    double begin = fl_bench_ms();

    for (size_t i = 0; i < n; i++) {
        to[i] = from[i] > 0 ? from[i] : 0;
    }
    return fl_bench_ms() - begin;
}

int main(int argc, char **argv)
{
    static double ms[DISTANCES][MOST];
    long mib = 64, rounds = 15;

    fl_bench_options(argc, argv,
                     (const struct fl_option[]){{"mib", &mib}, {"rounds", &rounds}, {NULL, NULL}});
    if (mib < 1 || mib > 64 || rounds < 1 || rounds > MOST) {
        fprintf(stderr, "usage: distance [--mib 1..64] [--rounds 1..%d]\n", MOST);
        return 2;
    }
    size_t len = (size_t)(FAR_MIB + mib + 2) * MIB;
    char *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        perror("distance: mmap");
        return 1;
    }
    (void)madvise(map, len, MADV_HUGEPAGE);
    memset(map, 1, len);
    char *base = (char *)(((uintptr_t)map + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));
    for (long r = 0; r < rounds; r++) {
        for (int d = 0; d < DISTANCES; d++) {
            ms[d][r] = time_of((float *)base, (float *)(base + distance[d]),
                               (size_t)mib * MIB / sizeof(float));
        }
    }
    for (int d = 0; d < DISTANCES; d++) {
        fl_bench_sort(ms[d], (size_t)rounds);
        printf("%8zu KiB %7.2f ms\n", distance[d] / KIB, ms[d][rounds / 2]);
    }
    return 0;
}
