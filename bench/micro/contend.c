/* What a request and a free cost where several threads make them at once.
 *
 *   contend [--threads N] [--path 0|1|2] [--ops N] [--kib N] [--most_kib N] [--live N]
 *
 * --path: 0 each thread frees what it has just asked for; 1 it replaces one of its own blocks,
 * chosen at random; 2 it replaces one of all threads' blocks, so that most are freed by another
 * thread than the one that asked for them. --live blocks of --kib to --most_kib KiB, over all
 * threads, are there before; --ops is over all threads, too. A byte of each block is touched.
 * The last line is `SUMMARY {json}`, of those ops alone: cpu_ns and wall_ns an op; sleeps: times in
 * 1,000 ops that a thread waited for something; locks: times in 1,000 ops that the region's lock
 * was taken, 0 under other allocators; rss_mib at the end. */
#include "common.h"

#include <dlfcn.h>
#include <faultless/faultless.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum path { PAIR, OWN, FOREIGN };
static long threads = 1, path = OWN, ops = 2000000, kib = 64, most_kib = 400, live = 1024;
static _Atomic(char *) *blocks;    /* those of a thread side by side */
static size_t each_live, each_ops; /* of a thread */
static pthread_barrier_t ready, done;

/* One of n, by the upper bits: the lower ones would come again after some thousands. */
static size_t any_of(size_t n, uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((*dice >> 32) * n >> 32);
}

static char *ask(uint64_t *dice)
{
    size_t least = (size_t)kib << 10, range = (size_t)(most_kib - kib) << 10;
    char *p = fl_bench_need(malloc(least + any_of(range + 1, dice)));

    *(volatile char *)p = 1;
    return p;
}

/* The block of number `n` in its place, and what was there is freed. */
static void replace(size_t n, uint64_t *dice)
{
    char *p = ask(dice);

    free(atomic_exchange(&blocks[n], p));
}

static void *run(void *arg)
{
    size_t first = (size_t)(long)arg * each_live;
    uint64_t dice = (uint64_t)(long)arg * 7919u + 1u;

    for (size_t i = 0; i < each_live; i++) {
        replace(first + i, &dice);
    }
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    for (size_t i = 0; i < each_ops; i++) {
        switch ((enum path)path) {
        case PAIR:
            free(ask(&dice));
            break;
        case OWN:
            replace(first + any_of(each_live, &dice), &dice);
            break;
        case FOREIGN:
            replace(any_of(each_live * (size_t)threads, &dice), &dice);
            break;
        }
    }
    pthread_barrier_wait(&done);
    return NULL;
}

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static long sleeps(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return u.ru_nvcsw;
}

static long locks(void)
{
    int (*read)(struct fl_stats *) = NULL;
    struct fl_stats s = {.size = sizeof s};

    *(void **)&read = dlsym(RTLD_DEFAULT, "fl_stats_read");
    return read != NULL && read(&s) == 0 ? (long)s.region_locks : 0;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--threads", &threads},   {"--path", &path}, {"--ops", &ops}, {"--kib", &kib},
        {"--most_kib", &most_kib}, {"--live", &live}, {NULL, NULL}};

    fl_bench_options(argc, argv, option);
    if (threads < 1 || live < threads || most_kib < kib) {
        return 2;
    }
    each_live = (size_t)(live / threads);
    each_ops = (size_t)(ops / threads);
    blocks = fl_bench_need(calloc((size_t)live, sizeof *blocks));
    pthread_t *t = fl_bench_need(calloc((size_t)threads, sizeof *t));
    pthread_barrier_init(&ready, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&t[i], NULL, run, (void *)i) != 0) {
            return 1;
        }
    }
    pthread_barrier_wait(&ready);
    double cpu = cpu_ms(), wall = fl_bench_ms();
    long slept = sleeps(), locked = locks();
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
    double n = (double)each_ops * (double)threads;
    cpu = (cpu_ms() - cpu) * 1e6 / n;
    wall = (fl_bench_ms() - wall) * 1e6 / n;
    /* Each thread but the last one waits at the end, which is none of the allocator's. */
    double waited = (double)(sleeps() - slept - threads) * 1e3 / n;
    printf("SUMMARY {\"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"sleeps\": %.2f, \"locks\": %.1f, "
           "\"rss_mib\": %zu}\n",
           cpu, wall, waited > 0 ? waited : 0, (double)(locks() - locked) * 1e3 / n,
           fl_bench_rss() >> 20);
    for (long i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
    }
    return 0;
}
