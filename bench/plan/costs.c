/* costs: what the planner costs programs that have no use for it, and where it could make one wait.
 *
 *   costs threads N REQUESTS    N threads, each of which made so many large requests: RSS before
 *                               there was one, while all live, after all ended. KiB
 *   costs pair N                a random malloc and free of 64 to 316 KiB, no steps: ns of CPU time
 *   costs open GIB              steps of small blocks and of GIB GiB that are not touched: the
 *                               worst malloc of the step in which the arena opens, of the others,
 *                               us; RSS that it adds, KiB
 *   costs exit REQUESTS         threads that end while their steps, of so many requests each, are
 *                               packed: the worst time from there to the end of pthread_join, us
 * bench/plan/costs judges them. The last line is `SUMMARY {json}`. */
#include "faultless/faultless.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 256, SMALL = 10, GIANTS = 16, LEAST = 64 * 1024, PAGE = 4096 };

static int (*step_begin)(void *), (*step_end)(void *);
static int (*read_stats)(struct fl_stats *);

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random >> 8;
}

static double now_us(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *must(void *p)
{
    if (p == NULL) {
        abort();
    }
    return p;
}

/* Exact, other than VmRSS, which the kernel counts up in batches. */
static long rss_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = must(fopen("/proc/self/smaps_rollup", "re"));

    while (fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "Rss:", 4) == 0) {
            kib = atol(line + 4);
        }
    }
    fclose(f);
    return kib;
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void ensure(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void join(pthread_t t)
{
    ensure(pthread_join(t, NULL) == 0);
}

/* ---- threads ---- */

static long requests;
static pthread_barrier_t made, gone;

/* At most two blocks live, and none when it is done. */
static void *ask(void *arg)
{
    uint64_t random = (uintptr_t)arg * 7919 + 13;
    char *p[2] = {NULL, NULL};

    for (long i = 0; i < requests; i++) {
        free(p[i % 2]);
        p[i % 2] = must(malloc(LEAST + next(&random) % 13 * PAGE));
    }
    free(p[0]);
    free(p[1]);
    pthread_barrier_wait(&made);
    pthread_barrier_wait(&gone);
    return NULL;
}

static void *wait_only(void *arg)
{
    pthread_barrier_wait(&made);
    pthread_barrier_wait(&gone);
    return arg;
}

/* RSS while `n` threads live, and after they ended. */
static void crowd(int n, void *(*task)(void *), long *live, long *ended)
{
    pthread_t *t = must(calloc((size_t)n, sizeof *t));

    pthread_barrier_init(&made, NULL, (unsigned)n + 1);
    pthread_barrier_init(&gone, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        ensure(pthread_create(&t[i], NULL, task, (void *)(intptr_t)(i + 1)) == 0);
        pause_ms(1); /* one after the other: what is free, and stays, is the same each time */
    }
    pthread_barrier_wait(&made);
    pause_ms(100);
    *live = rss_kib();
    pthread_barrier_wait(&gone);
    for (int i = 0; i < n; i++) {
        join(t[i]);
    }
    pause_ms(100);
    *ended = rss_kib();
    free(t);
}

/* The first crowd brings what threads have without us: stacks, which glibc keeps, and its heaps. */
static void threads(int n)
{
    long before, live, after;

    crowd(n, wait_only, &live, &before);
    crowd(n, ask, &live, &after);
    printf("SUMMARY {\"before_kib\": %ld, \"live_kib\": %ld, \"ended_kib\": %ld}\n", before, live,
           after);
}

/* ---- pair ---- */

static void pair(long n)
{
    static char *p[SLOTS];
    uint64_t random = UINT64_C(88172645463325252);
    double from = 0;

    for (long i = -n / 4; i < n; i++) { /* a fifth of it unmeasured */
        uint64_t r = next(&random);
        free(p[r % SLOTS]);
        p[r % SLOTS] = must(malloc(LEAST + (r >> 20) % SLOTS / 4 * PAGE));
        if (i == 0) {
            from = now_us(CLOCK_THREAD_CPUTIME_ID);
        }
    }
    printf("SUMMARY {\"pair_ns\": %.2f}\n",
           (now_us(CLOCK_THREAD_CPUTIME_ID) - from) * 1e3 / (double)n);
}

/* ---- open ---- */

static uint64_t plan_bytes(void)
{
    struct fl_stats s = {.size = sizeof s};

    if (read_stats != NULL) {
        (void)read_stats(&s);
    }
    return s.plan_bytes;
}

struct opening {
    double step_us, worst_us; /* the longest call of the step in which it opened; of all others */
    long rss_kib;
    bool open;
};

static void note(struct opening *o, double us, size_t bytes, long before)
{
    if (!o->open && plan_bytes() >= bytes) {
        o->open = true;
        o->rss_kib = rss_kib() - before;
        o->step_us = us;
    } else if (o->open) {
        o->step_us = us > o->step_us ? us : o->step_us;
    } else {
        o->worst_us = us > o->worst_us ? us : o->worst_us;
    }
}

/* Small blocks first: by these a layout is known, and with them its arena opens. Then those that
 * make it tall; not any more in the step in which it is there. The first two steps take memory. */
static void one_step(struct opening *o, size_t bytes, bool counts)
{
    struct opening unseen = {.open = false};
    char *small[SMALL], *giant[GIANTS];
    long before = rss_kib();
    double from = now_us(CLOCK_MONOTONIC);

    ensure(step_begin == NULL || step_begin(NULL) == 0);
    note(counts ? o : &unseen, now_us(CLOCK_MONOTONIC) - from, bytes, before);
    for (int i = 0; i < SMALL; i++) {
        from = now_us(CLOCK_MONOTONIC);
        small[i] = must(malloc(LEAST * 2 + (size_t)i * 64 * 1024));
        note(counts ? o : &unseen, now_us(CLOCK_MONOTONIC) - from, bytes, before);
    }
    for (int i = 0; i < GIANTS && !o->open; i++) {
        giant[i] = must(malloc(bytes / GIANTS));
    }
    for (int i = 0; i < GIANTS && !o->open; i++) {
        free(giant[i]);
    }
    for (int i = 0; i < SMALL; i++) {
        free(small[i]);
    }
    ensure(step_end == NULL || step_end(NULL) == 0);
}

static void open_tall(size_t bytes)
{
    struct opening o = {.open = false};
    int steps = 0;

    while (steps < 200 && !o.open) {
        one_step(&o, bytes, steps >= 2);
        steps++;
        pause_ms(5); /* the worker packs */
    }
    printf("SUMMARY {\"open\": %d, \"steps\": %d, \"step_us\": %.0f, \"worst_us\": %.0f, "
           "\"rss_kib\": %ld}\n",
           o.open, steps, o.step_us, o.worst_us, o.rss_kib);
}

/* ---- exit ---- */

enum { LIVE_AT_ONCE = 512 };

static double left_us; /* when the thread left its function */
static long waits_ms, steps_made;

/* Steps with random lifetimes, which take the packer long. */
static void *learn(void *arg)
{
    static char *p[LIVE_AT_ONCE];

    for (long s = 0; s < steps_made; s++) {
        uint64_t random = UINT64_C(88172645463325252);
        ensure(step_begin == NULL || step_begin(NULL) == 0);
        for (long i = 0; i < requests; i++) {
            uint64_t r = next(&random);
            free(p[r % LIVE_AT_ONCE]);
            p[r % LIVE_AT_ONCE] = must(malloc(LEAST + (r >> 20) % 64 * PAGE));
        }
        for (int i = 0; i < LIVE_AT_ONCE; i++) {
            free(p[i]);
            p[i] = NULL;
        }
        ensure(step_end == NULL || step_end(NULL) == 0);
    }
    pause_ms(waits_ms);
    left_us = now_us(CLOCK_MONOTONIC);
    return arg;
}

/* Threads that leave at once after the step with which packing begins, and some time later: amid
 * the first layout, and amid the search for better ones. */
static void exits(void)
{
    static const long later_ms[] = {0, 1, 2, 5, 10, 20, 40, 80, 160};
    double worst = 0;
    pthread_t t;

    for (size_t i = 0; i < sizeof later_ms / sizeof later_ms[0]; i++) {
        for (steps_made = 3; steps_made <= 5; steps_made++) {
            waits_ms = later_ms[i];
            ensure(pthread_create(&t, NULL, learn, NULL) == 0);
            join(t);
            double took = now_us(CLOCK_MONOTONIC) - left_us;
            worst = took > worst ? took : worst;
        }
    }
    printf("SUMMARY {\"worst_exit_us\": %.0f}\n", worst);
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0;

    *(void **)&step_begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
    *(void **)&step_end = dlsym(RTLD_DEFAULT, "fl_step_end");
    *(void **)&read_stats = dlsym(RTLD_DEFAULT, "fl_stats_read");
    if (getenv("FAULTLESS_STEPS") != NULL && strcmp(getenv("FAULTLESS_STEPS"), "off") == 0) {
        step_begin = step_end = NULL; /* off: they answer -ENOSYS */
    }
    if (strcmp(what, "threads") == 0 && argc > 3) {
        requests = atol(argv[3]);
        threads((int)n);
    } else if (strcmp(what, "pair") == 0) {
        pair(n);
    } else if (strcmp(what, "open") == 0) {
        open_tall((size_t)n << 30);
    } else if (strcmp(what, "exit") == 0) {
        requests = n;
        exits();
    } else {
        fprintf(stderr, "costs: threads N REQUESTS, pair N, open GIB or exit REQUESTS\n");
        return 2;
    }
    return 0;
}
