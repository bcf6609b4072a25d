/* What a request and a free cost where several threads make them at once.
 *
 *   contend [--threads N] [--path 0..6] [--ops N] [--kib N] [--most_kib N] [--live N]
 *
 * --path: 0 each thread frees what it has just asked for; 1 it replaces one of its own blocks,
 * chosen at random; 2 it replaces one of all threads' blocks, so that most are freed by another
 * thread than the one that asked for them; 3 it asks for 256 blocks and frees them all; 4 the same
 * with 32, whose lengths are the same each time, in a step that is declared where the library is
 * there; 5 nothing is asked for: what the machine's processors take from each other; 6 the same,
 * and a line of memory goes from thread to thread, once an op. --live blocks of --kib to --most_kib
 * KiB, over all threads, are there before; --ops is over all threads, too. A byte of each block is
 * touched.
 * The last line is `SUMMARY {json}`, of those ops alone: cpu_ns and wall_ns an op; sleeps: times in
 * 1,000 ops that a thread waited for something; locks: times in 1,000 ops that the region's lock
 * was taken, 0 under other allocators; rss_mib at the end; with libheld.so (held.c) in place of the
 * library, ns that locks are held: held_mean, held_p999, held_worst (held_worst_rank says which: 1
 * of plans, 3 and more of the region); of an op held_shard (one shard's lock) and held_one (those
 * of which there is one, and all shards' at once); and how many in 1,000,000 are not counted there,
 * held_lost, since the thread lost its processor. */
#include "common.h"
#include "held.h"

#include <dlfcn.h>
#include <faultless/faultless.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum path { PAIR, OWN, FOREIGN, BATCH, STEP, NOTHING, PASS };
enum { BATCH_BLOCKS = 256, STEP_BLOCKS = 32, FIRST_STEPS = 64 };
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

/* What one thread has. */
struct worker {
    unsigned number;
    size_t first; /* of its blocks, in `blocks` */
    uint64_t dice;
    struct fl_step_context *step; /* NULL: steps are not declared */
    int (*begin)(struct fl_step_context *), (*end)(struct fl_step_context *);
};

static void *find(const char *call)
{
    return dlsym(RTLD_DEFAULT, call);
}

static void declare(struct worker *w)
{
    int (*make)(struct fl_step_context **) = NULL;

    *(void **)&make = find("fl_step_new");
    *(void **)&w->begin = find("fl_step_begin");
    *(void **)&w->end = find("fl_step_end");
    if (make != NULL && make(&w->step) != 0) {
        w->step = NULL;
    }
}

static void ask_and_free(unsigned n, uint64_t dice)
{
    char *p[BATCH_BLOCKS];

    for (unsigned i = 0; i < n; i++) {
        p[i] = ask(&dice);
    }
    for (unsigned i = 0; i < n; i++) {
        free(p[i]);
    }
}

static void step(const struct worker *w)
{
    if (w->step != NULL) {
        (void)w->begin(w->step);
    }
    ask_and_free(STEP_BLOCKS, w->dice);
    if (w->step != NULL) {
        (void)w->end(w->step);
    }
}

/* Its turn, and then the next one's. */
static void pass(unsigned number)
{
    static _Alignas(256) _Atomic unsigned turn;
    unsigned now;

    while ((now = atomic_load(&turn)) % (unsigned)threads != number) {
    }
    atomic_store(&turn, now + 1);
}

/* How many blocks were asked for and freed. */
static size_t once(struct worker *w)
{
    switch ((enum path)path) {
    case PAIR:
        free(ask(&w->dice));
        break;
    case OWN:
        replace(w->first + any_of(each_live, &w->dice), &w->dice);
        break;
    case FOREIGN:
        replace(any_of(each_live * (size_t)threads, &w->dice), &w->dice);
        break;
    case BATCH:
        ask_and_free(BATCH_BLOCKS, w->dice);
        return BATCH_BLOCKS;
    case STEP:
        step(w);
        return STEP_BLOCKS;
    case NOTHING:
        *(volatile char *)blocks[w->first + any_of(each_live, &w->dice)] = 1;
        break;
    case PASS:
        pass(w->number);
        break;
    }
    return 1;
}

static void *run(void *arg)
{
    struct worker w = {.number = (unsigned)(long)arg,
                       .first = (size_t)(long)arg * each_live,
                       .dice = (uint64_t)(long)arg * 7919u + 1u};

    for (size_t i = 0; i < each_live; i++) {
        replace(w.first + i, &w.dice);
    }
    if (path == STEP) {
        declare(&w);
        for (int i = 0; i < FIRST_STEPS; i++) {
            step(&w);
            fl_bench_sleep_ms(1);
        }
    }
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&ready);
    for (size_t i = 0; i < each_ops; i += once(&w)) {
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

    *(void **)&read = find("fl_stats_read");
    return read != NULL && read(&s) == 0 ? (long)s.region_locks : 0;
}

static void begin_held(void)
{
    void (*begin)(void) = NULL;

    *(void **)&begin = find("fl_held_begin");
    if (begin != NULL) {
        begin();
    }
}

static void print_held(double n)
{
    void (*read)(struct fl_held *) = NULL;
    struct fl_held h;

    *(void **)&read = find("fl_held_read");
    if (read != NULL) {
        read(&h);
        printf("\"held_mean\": %.0f, \"held_p999\": %.0f, \"held_worst\": %.0f, "
               "\"held_shard\": %.3f, \"held_one\": %.3f, "
               "\"held_worst_rank\": %u, \"held_lost\": %.1f, ",
               h.mean_ns, h.p999_ns, h.worst_ns, h.shard_ns / n, h.one_ns / n, h.worst_rank,
               (double)h.lost * 1e6 / (double)(h.holds + h.lost + 1));
    }
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
    begin_held();
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&done);
    double n = (double)each_ops * (double)threads;
    cpu = (cpu_ms() - cpu) * 1e6 / n;
    wall = (fl_bench_ms() - wall) * 1e6 / n;
    /* Each thread but the last one waits at the end, which is none of the allocator's. */
    double waited = (double)(sleeps() - slept - threads) * 1e3 / n;
    printf("SUMMARY {");
    print_held(n);
    printf("\"cpu_ns\": %.1f, \"wall_ns\": %.1f, \"sleeps\": %.2f, \"locks\": %.1f, "
           "\"rss_mib\": %zu}\n",
           cpu, wall, waited > 0 ? waited : 0, (double)(locks() - locked) * 1e3 / n,
           fl_bench_rss() >> 20);
    for (long i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
    }
    return 0;
}
