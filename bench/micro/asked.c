/* A program that asks for much and touches little: what is held, and how long the requests take.
 *
 *   asked [--mib N] [--blocks N] [--percent N] [--how 0|1|2|3]
 *
 * --how: where the touched pages lie: 0 the front of each block, 1 its back, 2 at equal distances,
 * 3 at random. The last line is `SUMMARY {json}`: malloc_us: the longest request, touch_ms: all
 * touches, held_mib: RSS less what it was before, touched_mib: the huge pages that were touched,
 * pages_mib: the base pages. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum how { FRONT, BACK, EQUAL, RANDOM };
static long mib = 512, blocks = 6, percent = 2, how = FRONT;

/* A bit for each huge page that the blocks may lie in: the first one's number, and one more. */
static unsigned char *seen;
static uintptr_t lowest, highest;

static size_t page_of(size_t i, size_t touched, size_t pages)
{
    static uint64_t random = 88172645463325252u;

    switch ((enum how)how) {
    case BACK:
        return pages - 1 - i;
    case EQUAL:
        return i * pages / touched;
    case RANDOM:
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random % pages;
    case FRONT:
        break;
    }
    return i;
}

static size_t touch(char *base, size_t len)
{
    size_t pages = len / FL_BASE_PAGE, touched = pages * (size_t)percent / 100;

    touched = touched == 0 ? 1 : touched;
    for (size_t i = 0; i < touched; i++) {
        char *p = base + page_of(i, touched, pages) * FL_BASE_PAGE;
        *(volatile char *)p = 1;
        seen[((uintptr_t)p - lowest) / FL_HUGE_PAGE] = 1;
    }
    return touched;
}

static char **ask(size_t len, double *out_worst_us)
{
    char **block = fl_bench_need(calloc((size_t)blocks, sizeof *block));

    lowest = UINTPTR_MAX;
    *out_worst_us = 0;
    for (long i = 0; i < blocks; i++) {
        double start = fl_bench_ms();
        block[i] = fl_bench_need(malloc(len));
        double us = (fl_bench_ms() - start) * 1e3;
        *out_worst_us = us > *out_worst_us ? us : *out_worst_us;
        lowest = (uintptr_t)block[i] < lowest ? (uintptr_t)block[i] : lowest;
        highest = (uintptr_t)block[i] + len > highest ? (uintptr_t)block[i] + len : highest;
    }
    lowest -= lowest % FL_HUGE_PAGE;
    seen = fl_bench_need(calloc((highest - lowest) / FL_HUGE_PAGE + 1, 1));
    return block;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},
                                              {"--blocks", &blocks},
                                              {"--percent", &percent},
                                              {"--how", &how},
                                              {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t len = (size_t)mib << 20, pages = 0, huge = 0, before = fl_bench_rss() >> 20;
    double worst_us;
    char **block = ask(len, &worst_us);

    double start = fl_bench_ms();
    for (long i = 0; i < blocks; i++) {
        pages += touch(block[i], len);
    }
    double touch_ms = fl_bench_ms() - start;
    size_t held = (fl_bench_rss() >> 20) - before;
    for (size_t i = 0; i <= (highest - lowest) / FL_HUGE_PAGE; i++) {
        huge += seen[i];
    }
    printf("SUMMARY {\"malloc_us\": %.1f, \"touch_ms\": %.3f, \"held_mib\": %zu, \"touched_mib\": "
           "%zu, "
           "\"pages_mib\": %zu}\n",
           worst_us, touch_ms, held, huge * (FL_HUGE_PAGE >> 20), pages * FL_BASE_PAGE >> 20);
    for (long i = 0; i < blocks; i++) {
        free(block[i]);
    }
    return 0;
}
