/* A program that frees most of its blocks and keeps some: what is held for those.
 *
 *   kept [--mib N] [--kib N] [--one_of N] [--random 0|1] [--wait_ms N]
 *
 * --mib of blocks of --kib (up to twice that with --random), all of it touched; one of --one_of is
 * kept. What is held is looked at after malloc_trim(3), or, with --wait_ms, when that time has
 * passed without it. The last line is `SUMMARY {json}`: live_mib, held_mib (RSS less what it was
 * before), free_ms: all frees and the trim. */
#include "common.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long mib = 512, kib = 512, one_of = 4, is_random = 0, wait_ms = 0;
static uint64_t dice = 88172645463325252u;

static uint64_t next_random(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}

struct block {
    char *p;
    size_t len;
};

static size_t take_all(struct block *b, size_t most)
{
    size_t n = 0, len = (size_t)kib << 10;

    for (size_t sum = 0; sum < (size_t)mib << 20 && n < most; n++) {
        b[n].len = is_random != 0 ? len + next_random() % len : len;
        b[n].p = fl_bench_need(malloc(b[n].len));
        memset(b[n].p, 1, b[n].len);
        sum += b[n].len;
    }
    return n;
}

static size_t free_most(struct block *b, size_t n)
{
    size_t live = 0;

    for (size_t i = 0; i < n; i++) {
        if ((is_random != 0 ? next_random() >> 20 : i) % (size_t)one_of == 0) {
            live += b[i].len;
        } else {
            free(b[i].p);
            b[i].p = NULL;
        }
    }
    return live;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},         {"--kib", &kib},
                                              {"--one_of", &one_of},   {"--random", &is_random},
                                              {"--wait_ms", &wait_ms}, {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t most = ((size_t)mib << 10) / (size_t)kib + 1;
    struct block *b = fl_bench_need(calloc(most, sizeof *b));
    size_t before = fl_bench_rss(), n = take_all(b, most);
    double start = fl_bench_ms();
    size_t live = free_most(b, n);

    if (wait_ms == 0) {
        malloc_trim(0);
    }
    double free_ms = fl_bench_ms() - start;
    nanosleep(&(struct timespec){wait_ms / 1000, wait_ms % 1000 * 1000000}, NULL);
    printf("SUMMARY {\"live_mib\": %.1f, \"held_mib\": %.1f, \"free_ms\": %.1f}\n",
           (double)live / (1 << 20), (double)(fl_bench_rss() - before) / (1 << 20), free_ms);
    for (size_t i = 0; i < n; i++) {
        free(b[i].p);
    }
    return 0;
}
