/* What a realloc that grows costs beside threads that hold free blocks and sleep.
 *
 *   crowd [--threads N] [--rounds N]
 *
 * The last line is `SUMMARY {json}`: realloc_us. */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long threads = 1, rounds = 2000;
static pthread_barrier_t there;

static void *sleep_on(void *arg)
{
    free(fl_bench_need(malloc(70000)));
    pthread_barrier_wait(&there);
    pause();
    return arg;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--threads", &threads}, {"--rounds", &rounds}, {NULL, NULL}};
    pthread_attr_t attr;
    pthread_t t;

    fl_bench_options(argc, argv, option);
    pthread_barrier_init(&there, NULL, (unsigned)threads + 1);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 65536);
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&t, &attr, sleep_on, NULL) != 0) {
            return 1;
        }
    }
    pthread_barrier_wait(&there);
    char *block = fl_bench_need(malloc(100000));
    double start = fl_bench_ms();
    for (long i = 0; i < rounds; i++) {
        block = fl_bench_need(realloc(block, 100000 + 8192 * ((size_t)i % 2 + 1)));
        block = fl_bench_need(realloc(block, 100000));
    }
    double us = (fl_bench_ms() - start) * 1e3 / (2.0 * (double)rounds);
    printf("SUMMARY {\"realloc_us\": %.2f}\n", us);
    (void)fflush(stdout);
    _exit(0); /* the others sleep for good */
}
