/* Pools: a pair of alloc and free, alone and with others; what a busy stream does to them. */
#include "gpu/bench.h"
#include "gpu/gpu_spin.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 8, SPIN_MS = 50 };

struct pair {
    struct fl_gpu_pool *pool;
    fl_CUstream stream;
    size_t n;
};

static struct fl_gpu_pool *pool_of(enum fl_gpu_strategy strategy)
{
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *p;

    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    o.strategy = strategy;
    o.chunk = MIB(64);
    fl_ok(fl_gpu_pool_create(gpu, &o, &p), "fl_gpu_pool_create");
    return p;
}

/* Lasts as long as the pool does, and nothing is freed on it while it is captured. */
static fl_CUstream stream_for(struct fl_gpu_pool *p)
{
    fl_CUstream s = cu_stream();

    fl_ok(fl_gpu_pool_stream_lasts(p, s), "fl_gpu_pool_stream_lasts");
    return s;
}

static double pool_pairs(void *arg)
{
    const struct pair *w = arg;
    double start = now_ns();

    for (size_t i = 0; i < w->n; i++) {
        uint64_t p;
        fl_ok(fl_gpu_pool_alloc(w->pool, KIB(64), w->stream, &p), "fl_gpu_pool_alloc");
        fl_ok(fl_gpu_pool_free(w->pool, p, w->stream), "fl_gpu_pool_free");
    }
    return (now_ns() - start) / (double)w->n;
}

static double driver_pairs(void *arg)
{
    const struct pair *w = arg;
    double start = now_ns();

    for (size_t i = 0; i < w->n; i++) {
        fl_CUdeviceptr p;
        cu_ok(cu.cuMemAllocAsync(&p, KIB(64), w->stream), "cuMemAllocAsync");
        cu_ok(cu.cuMemFreeAsync(p, w->stream), "cuMemFreeAsync");
    }
    cu_ok(cu.cuStreamSynchronize(w->stream), "cuStreamSynchronize");
    return (now_ns() - start) / (double)w->n;
}

static double plain_pairs(void *arg)
{
    const struct pair *w = arg;
    double start = now_ns();

    for (size_t i = 0; i < w->n; i++) {
        fl_CUdeviceptr p;
        cu_ok(cu.cuMemAlloc(&p, KIB(64)), "cuMemAlloc");
        cu_ok(cu.cuMemFree(p), "cuMemFree");
    }
    return (now_ns() - start) / (double)w->n;
}

static void *thread_pairs(void *arg)
{
    struct pair *w = arg;

    (void)pool_pairs(w);
    return NULL;
}

/* Each thread has its stream; the time of all, by the pairs of all. */
static double side_by_side(void *arg)
{
    struct pair *w = arg;
    pthread_t t[THREADS];
    double start = now_ns();

    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&t[i], NULL, thread_pairs, &w[i]) != 0) {
            fl_ok(-1, "pthread_create");
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    return (now_ns() - start) / (double)w->n / THREADS;
}

/* B3's own side. Calls of the driver that the pairs of a hit made, by the fake; on a device not to
 * be had. */
static double hit_pairs(size_t n)
{
    struct pair w[THREADS];
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    for (int i = 0; i < THREADS; i++) {
        w[i] = (struct pair){.pool = p, .stream = stream_for(p), .n = n};
        w[i].n = 1;
        (void)pool_pairs(&w[i]); /* its stream has a block */
        w[i].n = n;
    }
    uint64_t before = fake != NULL ? fake->calls(NULL) : 0;
    double alone = median_of(pool_pairs, &w[0]);
    for (int i = 0; i < THREADS; i++) {
        w[i].n = (n + THREADS - 1) / THREADS;
    }
    double many = median_of(side_by_side, w);
    uint64_t calls = fake != NULL ? fake->calls(NULL) - before : 0;
    row("B3", "pool, alloc and free", alone, NULL, 0, "ns");
    bar("ns", alone, AT_MOST, 60);
    row("B3", "the same, 8 threads, by all their pairs", many, NULL, 0, "ns");
    bar("ns", many, AT_MOST, 200);
    if (fake != NULL) {
        row("B3", "driver calls in all of these", (double)calls, NULL, 0, "");
        bar("calls", (double)calls, AT_MOST, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        fl_ok(fl_gpu_pool_stream_retire(p, w[i].stream), "fl_gpu_pool_stream_retire");
        cu_ok(cu.cuStreamDestroy(w[i].stream), "cuStreamDestroy");
    }
    fl_ok(fl_gpu_pool_destroy(p), "fl_gpu_pool_destroy");
    return alone;
}

/* Calls of the driver that `n` pairs of pinned hits make on average, each freed on `stream`. */
static double pinned_calls(void *stream, bool lasts)
{
    enum { PAIRS = 1000 };
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *p;
    uint64_t x;

    fl_gpu_pool_defaults(&o, FL_GPU_PINNED);
    o.initial = o.regrow = MIB(4);
    fl_ok(fl_gpu_pool_create(gpu, &o, &p), "fl_gpu_pool_create");
    if (lasts) {
        fl_ok(fl_gpu_pool_stream_lasts(p, stream), "fl_gpu_pool_stream_lasts");
    }
    fl_ok(fl_gpu_pool_alloc(p, KIB(4), stream, &x), "fl_gpu_pool_alloc");
    fl_ok(fl_gpu_pool_free(p, x, stream), "fl_gpu_pool_free");
    uint64_t before = fake->calls(NULL);
    for (int i = 0; i < PAIRS; i++) {
        fl_ok(fl_gpu_pool_alloc(p, KIB(4), stream, &x), "fl_gpu_pool_alloc");
        fl_ok(fl_gpu_pool_free(p, x, stream), "fl_gpu_pool_free");
    }
    uint64_t calls = fake->calls(NULL) - before;
    fl_ok(fl_gpu_pool_destroy(p), "fl_gpu_pool_destroy");
    return (double)calls / PAIRS;
}

/* B3, pinned: what a free says decides what it costs. On a device not to be had. */
static void pinned_pairs(void)
{
    fl_CUstream lasting = cu_stream(), plain = cu_stream();

    row("B3", "driver calls a pinned pair, freed by the host", pinned_calls(FL_GPU_HOST, false),
        NULL, 0, "");
    bar("calls", pinned_calls(FL_GPU_HOST, false), AT_MOST, 0);
    row("B3", "the same, freed on the legacy stream", pinned_calls(NULL, false), NULL, 0, "");
    row("B3", "the same, freed on a stream that lasts", pinned_calls(lasting, true), NULL, 0, "");
    row("B3", "the same, freed on another stream", pinned_calls(plain, false), NULL, 0, "");
    cu_ok(cu.cuStreamDestroy(lasting), "cuStreamDestroy");
    cu_ok(cu.cuStreamDestroy(plain), "cuStreamDestroy");
}

static void against_the_driver(double ours)
{
    struct pair w = {.stream = cu_stream(), .n = smoke ? 10 : 10000};

    if (cu.cuMemAllocAsync != NULL) {
        double theirs = median_of(driver_pairs, &w);
        row("B3", "pool, alloc and free", ours, "cuMemAllocAsync", theirs, "ns");
        bar("ratio", theirs / ours, AT_LEAST, 20);
    }
    w.n = smoke ? 2 : 100;
    double plain = median_of(plain_pairs, &w);
    row("B3", "pool, alloc and free", ours, "cuMemAlloc", plain, "ns");
    bar("ratio", plain / ours, AT_LEAST, 100);
    cu_ok(cu.cuStreamDestroy(w.stream), "cuStreamDestroy");
}

/* The slowest alloc or free on the two streams while a kernel keeps the first busy, in us. */
static double slowest(struct fl_gpu_pool *pool, const fl_CUstream stream[static 2])
{
    double worst = 0;

    for (int i = 0; i < 100; i++) {
        uint64_t p;
        double start = now_ns();
        fl_ok(fl_gpu_pool_alloc(pool, KIB(64), stream[i % 2], &p), "fl_gpu_pool_alloc");
        double mid = now_ns();
        fl_ok(fl_gpu_pool_free(pool, p, stream[i % 2]), "fl_gpu_pool_free");
        double end = now_ns(), longer = mid - start > end - mid ? mid - start : end - mid;
        worst = i >= 2 && longer > worst ? longer : worst; /* from the second round on: hits */
    }
    return worst / 1e3;
}

static void spin(fl_CUstream stream)
{
    if (fake == NULL) {
        cu_ok(gpu_spin(cu_library, stream, SPIN_MS), "a kernel that spins");
    }
}

/* B7. */
static void beside_a_busy_stream(void)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    fl_CUstream stream[2] = {stream_for(p), stream_for(p)};
    struct fl_gpu_pool_stats stats = {.size = sizeof stats};
    fl_CUdeviceptr q;

    spin(stream[0]); /* the first loads the kernel */
    (void)slowest(p, stream);
    cu_ok(cu.cuCtxSynchronize(), "cuCtxSynchronize");
    spin(stream[0]);
    double ours = slowest(p, stream);
    fl_ok(fl_gpu_pool_stats(p, &stats), "fl_gpu_pool_stats");
    cu_ok(cu.cuCtxSynchronize(), "cuCtxSynchronize");
    cu_ok(cu.cuMemAlloc(&q, KIB(64)), "cuMemAlloc");
    spin(stream[0]);
    double start = now_ns();
    cu_ok(cu.cuMemFree(q), "cuMemFree");
    double theirs = (now_ns() - start) / 1e3;
    row("B7", "slowest of 100 pool calls beside a 50 ms kernel", ours, "cuMemFree", theirs, "us");
    bar("us", ours, AT_MOST, 10);
    row("B7", "implicit synchronisations", (double)stats.implicit_syncs, NULL, 0, "");
    bar("calls", (double)stats.implicit_syncs, AT_MOST, 0);
    for (int i = 0; i < 2; i++) {
        fl_ok(fl_gpu_pool_stream_retire(p, stream[i]), "fl_gpu_pool_stream_retire");
        cu_ok(cu.cuStreamDestroy(stream[i]), "cuStreamDestroy");
    }
    fl_ok(fl_gpu_pool_destroy(p), "fl_gpu_pool_destroy");
}

void bench_pools(void)
{
    double ours = hit_pairs(smoke ? 100 : 200000);

    if (fake != NULL) {
        pinned_pairs();
    }
    if (!cpu) {
        against_the_driver(ours);
    }
    if (!cpu) {
        beside_a_busy_stream();
    }
}
