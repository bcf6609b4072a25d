/* How long the requests of one thread wait while another grows by 900 MiB, frees it and trims,
 * again and again.
 *
 *   waits [--seconds N] [--kib N] [--pause_us N]
 *
 * A request is a free and a malloc of a block of --kib to four times that, one in 32 that are live.
 * The last line is `SUMMARY {json}`: p50_us, p99_us, worst_us. */
#include "common.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIVE = 32, MOST = 200000, GROWN = 3 };
static const size_t grown_len = (size_t)300 << 20;
static long seconds = 8, kib = 64, pause_us = 50;
static atomic_bool stop;

static void *grow(void *arg)
{
    while (!stop) {
        void *block[GROWN];
        for (int i = 0; i < GROWN; i++) {
            block[i] = fl_bench_need(malloc(grown_len));
            *(volatile char *)block[i] = 1;
        }
        for (int i = 0; i < GROWN; i++) {
            free(block[i]);
        }
        malloc_trim(0);
    }
    return arg;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--seconds", &seconds}, {"--kib", &kib}, {"--pause_us", &pause_us}, {NULL, NULL}};
    static double us[MOST];
    void *block[LIVE] = {NULL};
    unsigned random = 1;
    size_t n = 0;
    pthread_t t;

    fl_bench_options(argc, argv, option);
    if (pthread_create(&t, NULL, grow, NULL) != 0) {
        return 1;
    }
    for (double end = fl_bench_ms() + (double)seconds * 1e3; fl_bench_ms() < end && n < MOST; n++) {
        random = random * 1664525u + 1013904223u;
        size_t len = ((size_t)kib << 10) + random % ((size_t)kib * 3 << 10);
        double start = fl_bench_ms();
        free(block[random >> 27]);
        block[random >> 27] = malloc(len);
        us[n] = (fl_bench_ms() - start) * 1e3;
        *(volatile char *)fl_bench_need(block[random >> 27]) = 1;
        usleep((useconds_t)pause_us);
    }
    stop = true;
    pthread_join(t, NULL);
    fl_bench_sort(us, n);
    printf("SUMMARY {\"p50_us\": %.1f, \"p99_us\": %.1f, \"worst_us\": %.1f}\n", us[n / 2],
           us[n * 99 / 100], us[n - 1]);
    return 0;
}
