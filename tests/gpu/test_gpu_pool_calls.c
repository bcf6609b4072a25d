/* What a pair of alloc and free costs in calls of the driver, on streams of every kind; and that
 * what costs none is right all the same. */
#include "gpu/pool_fixture.h"

#include <errno.h>

enum { BLOCKS = 16 };

enum kind { HOST, LEGACY, LEGACY_HANDLE, LASTING, PER_THREAD, PLAIN, BLOCKING, KINDS };

/* Most calls of a free: current context, number, capture, event. */
static const unsigned most_of_free[KINDS] = {
    [HOST] = 0,       [LEGACY] = 0, [LEGACY_HANDLE] = 0, [LASTING] = 0,
    [PER_THREAD] = 4, [PLAIN] = 4,  [BLOCKING] = 4,
};
static const char *const name_of[KINDS] = {
    [HOST] = "host",         [LEGACY] = "legacy",         [LEGACY_HANDLE] = "legacy handle",
    [LASTING] = "lasting",   [PER_THREAD] = "per thread", [PLAIN] = "plain",
    [BLOCKING] = "blocking",
};

static const enum fl_gpu_strategy pooled[] = {FL_GPU_NAIVE, FL_GPU_ROUND, FL_GPU_NAIVE_BEST_FIT,
                                              FL_GPU_AUTO_GROWTH};

static bool is_default(enum kind kind)
{
    return kind == LEGACY || kind == LEGACY_HANDLE || kind == PER_THREAD;
}

static void *stream_of(enum kind kind)
{
    fl_CUstream s = NULL;

    switch (kind) {
    case HOST:
        return FL_GPU_HOST;
    case LEGACY:
        return NULL;
    case LEGACY_HANDLE:
        return (void *)(uintptr_t)FL_STREAM_LEGACY; /* NOLINT(performance-no-int-to-ptr) */
    case PER_THREAD:
        return (void *)(uintptr_t)FL_STREAM_PER_THREAD; /* NOLINT(performance-no-int-to-ptr) */
    case BLOCKING:
        assert_int_equal(fl_cuda.cuStreamCreate(&s, 0), 0);
        return s;
    default:
        return gpu_stream();
    }
}

static void stream_end(enum kind kind, void *stream)
{
    if (kind >= LASTING && kind != PER_THREAD) {
        gpu_stream_end(stream);
    }
}

static struct fl_gpu_pool *pool_for(enum fl_gpu_strategy strategy, enum fl_gpu_target target,
                                    enum kind kind, void *stream)
{
    struct fl_gpu_pool *p =
        POOL(strategy, o.target = target, o.initial = o.regrow = o.chunk = MIB(8));
    if (kind == LASTING) {
        assert_int_equal(fl_gpu_pool_stream_lasts(p, stream), 0);
    }
    return p;
}

/* Events are made once, and recorded again. */
static uint64_t calls_of_pairs(void)
{
    return fake->calls(NULL) - fake->calls("cuEventCreate");
}

/* Blocks that nothing uses: from here on a request of one is a hit. */
static void warm(struct fl_gpu_pool *p, void *stream, uint64_t x[static BLOCKS])
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        x[i] = pool_take(p, KIB(64), stream);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        pool_give(p, x[i], p->is_pinned ? FL_GPU_HOST : stream);
    }
}

static void count_pinned(enum fl_gpu_strategy strategy, enum kind kind)
{
    void *s = stream_of(kind);
    struct fl_gpu_pool *p = pool_for(strategy, FL_GPU_PINNED, kind, s);
    struct fl_gpu_pool *device = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x[BLOCKS], to = pool_take(device, KIB(64), NULL);

    gpu_wait_all();
    warm(p, s, x);
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint64_t before = gpu_driver_calls();
        x[i] = pool_take(p, KIB(64), s);
        if (gpu_driver_calls() != before) {
            fail_msg("%s: a pinned hit calls the driver", name_of[kind]);
        }
        if (kind != HOST) { /* queued: nothing of it has run at the free */
            (void)fl_cuda.cuMemcpyHtoDAsync(to, (void *)(uintptr_t)x[i], KIB(64), s); // NOLINT
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint64_t before = calls_of_pairs();
        pool_give(p, x[i], s);
        uint64_t calls = calls_of_pairs() - before;
        /* Whose default stream it is: of the current context. The first looks at the stream. */
        unsigned most = most_of_free[kind] + is_default(kind);
        if (i > 0 && calls > most) {
            fail_msg("%s: a pinned free makes %u calls", name_of[kind], (unsigned)calls);
        }
    }
    for (unsigned i = 0; i < BLOCKS; i++) { /* the host's at once, or not to be had yet */
        uint64_t y = pool_take(p, KIB(64), s);
        fake->host_access((void *)(uintptr_t)y, KIB(64), true); /* NOLINT */
        pool_give(p, y, FL_GPU_HOST);
    }
    gpu_wait_all();
    pool_give(device, to, NULL);
    pool_end(device);
    pool_end(p);
    stream_end(kind, s);
}

GPU_TEST(a_pinned_hit_makes_no_driver_call)
{
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++) {
        for (enum kind kind = HOST; kind < KINDS; kind++) {
            fake->schedule(FAKE_CUDA_LATE, 0);
            count_pinned(pooled[i], kind);
        }
    }
}

/* A thousand pairs, as a loader of data makes them: not one call. */
GPU_TEST(pairs_of_the_host_call_nothing)
{
    struct fl_gpu_pool_options o;

    fl_gpu_pool_defaults(&o, FL_GPU_PINNED);
    o.initial = o.regrow = MIB(4);
    struct fl_gpu_pool *p = pool_with(&o);
    pool_give(p, pool_take(p, KIB(4), NULL), FL_GPU_HOST);
    uint64_t before = gpu_driver_calls();
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t x = pool_take(p, KIB(4), NULL), y = pool_take(p, KIB(64), FL_GPU_HOST);
        pool_give(p, x, FL_GPU_HOST);
        pool_give(p, y, FL_GPU_HOST);
    }
    assert_int_equal(gpu_driver_calls(), before);
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    pool_end(p);
}

GPU_TEST(the_host_is_not_a_stream)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x = pool_take(p, MIB(2), NULL);

    assert_int_equal(fl_gpu_pool_stream_lasts(p, FL_GPU_HOST), -EINVAL);
    assert_int_equal(fl_gpu_pool_stream_retire(p, FL_GPU_HOST), -EINVAL);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, FL_GPU_HOST), -EINVAL);
    pool_give(p, x, FL_GPU_HOST);
    pool_end(p);
}

/* Device memory on a plain stream: context, capture and number at the request; these and an event
 * at the free. */
static void count_device(enum fl_gpu_strategy strategy, enum kind kind)
{
    void *s = stream_of(kind);
    struct fl_gpu_pool *p = pool_for(strategy, FL_GPU_DEVICE, kind, s);
    uint64_t x[BLOCKS];

    warm(p, s, x);
    for (unsigned i = 0; i < BLOCKS; i++) {
        uint64_t before = calls_of_pairs(), y = pool_take(p, KIB(64), s), taken = calls_of_pairs();
        pool_give(p, y, s);
        uint64_t calls = calls_of_pairs() - taken;
        if (taken - before > (kind >= PER_THREAD ? 3 : 0) || calls > most_of_free[kind]) {
            fail_msg("%s: %u and %u calls", name_of[kind], (unsigned)(taken - before),
                     (unsigned)calls);
        }
    }
    pool_end(p);
    stream_end(kind, s);
}

GPU_TEST(a_device_pair_makes_seven_calls)
{
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++) {
        for (enum kind kind = LEGACY; kind < KINDS; kind++) {
            count_device(pooled[i], kind);
        }
    }
}

/* It lasts, of each context: a second look at it asks the driver for the context alone. */
GPU_TEST(null_lasts_in_each_context)
{
    struct fl_gpu *second = NULL;

    if (fake == NULL || fl_gpu_open_primary(1, &second) != 0) {
        return;
    }
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED);
    for (unsigned i = 0; i < 4; i++) {
        const struct fl_gpu *of = i % 2 == 0 ? gpu : second;
        assert_int_equal(gpu_calls.cuCtxSetCurrent(of->context), 0);
        uint64_t x = pool_take(p, KIB(64), FL_GPU_HOST), before = gpu_driver_calls();
        pool_give(p, x, NULL);
        assert_true(i < 2 || gpu_driver_calls() == before + 1);
    }
    assert_int_equal(p->known, 2);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    pool_end(p);
    fl_gpu_close(second);
}

GPU_MAIN("test_gpu_pool_calls")
