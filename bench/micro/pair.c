/* Nanoseconds for malloc + free of a repeated large size, beside other live blocks and on several
 * threads.
 *
 *   pair [--size BYTES] [--pairs N] [--threads N] [--live N] [--live-size BYTES] [--sizes N]
 *        [--touch 0|1]
 *
 * --sizes N: N different sizes in turn, all allocated before the first is freed, so that a thread's
 * cache of a few blocks cannot serve them.
 * --touch 1: one byte of each base page is written before the free. Prints one line: the median
 * over 9 batches of the mean time of a pair on one thread. */
#include "common.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 9, MAX_THREADS = 64, MAX_SIZES = 64 };

static size_t size = 1 << 20, live_size = 65536;
static long pairs = 200000, live;
static int threads = 1, sizes = 1, touch;
static double median[MAX_THREADS];
static pthread_barrier_t together;

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void touch_pages(char *p, size_t len)
{
    for (size_t at = 0; at < len; at += FL_BASE_PAGE) {
        p[at] = 1;
    }
}

static void batch(void)
{
    void *p[MAX_SIZES];

    for (long i = 0; i < pairs / sizes; i++) {
        for (int k = 0; k < sizes; k++) {
            p[k] = malloc(size + (size_t)k * 65536);
            if (touch != 0 && p[k] != NULL) {
                touch_pages(p[k], size + (size_t)k * 65536);
            }
            __asm__ volatile("" : : "r"(p[k]) : "memory");
        }
        for (int k = 0; k < sizes; k++) {
            free(p[k]);
        }
    }
}

static void *worker(void *arg)
{
    double ns[BATCHES];

    batch();
    for (int b = 0; b < BATCHES; b++) {
        pthread_barrier_wait(&together);
        double start = now_ns();
        batch();
        ns[b] = (now_ns() - start) / (double)(pairs / sizes * sizes);
    }
    fl_bench_sort(ns, BATCHES);
    *(double *)arg = ns[BATCHES / 2];
    return NULL;
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        long v = atol(argv[i + 1]);
        if (strcmp(argv[i], "--size") == 0) {
            size = (size_t)v;
        } else if (strcmp(argv[i], "--pairs") == 0) {
            pairs = v;
        } else if (strcmp(argv[i], "--threads") == 0 && v > 0 && v <= MAX_THREADS) {
            threads = (int)v;
        } else if (strcmp(argv[i], "--live") == 0) {
            live = v;
        } else if (strcmp(argv[i], "--live-size") == 0) {
            live_size = (size_t)v;
        } else if (strcmp(argv[i], "--sizes") == 0 && v > 0 && v <= MAX_SIZES) {
            sizes = (int)v;
        } else if (strcmp(argv[i], "--touch") == 0) {
            touch = v != 0;
        } else {
            fprintf(stderr, "pair: bad argument %s\n", argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    pthread_t id[MAX_THREADS];

    parse(argc, argv);
    for (long i = 0; i < live; i++) {
        if (malloc(live_size) == NULL) {
            fprintf(stderr, "pair: only %ld live blocks\n", i);
            return 1;
        }
    }
    pthread_barrier_init(&together, NULL, (unsigned)threads);
    for (int t = 1; t < threads; t++) {
        pthread_create(&id[t], NULL, worker, &median[t]);
    }
    worker(&median[0]);
    for (int t = 1; t < threads; t++) {
        pthread_join(id[t], NULL);
    }
    fl_bench_sort(median, (size_t)threads);
    printf("pair %zu bytes, %d thread(s), %ld live, %d size(s): %.1f ns\n", size, threads, live,
           sizes, median[threads / 2]);
    return 0;
}
