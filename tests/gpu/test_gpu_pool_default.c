/* The streams that need not be created: NULL, which is each context's, and each thread's own, which
 * all have one handle. Other threads free what such a stream uses, and other devices' default
 * streams use pinned memory. */
#include "gpu/pool_fixture.h"
#include "gpu/two_streams.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#define OWN ((void *)(uintptr_t)FL_STREAM_PER_THREAD) /* NOLINT(performance-no-int-to-ptr) */

static sem_t used, freed;

/* What another thread does with `x` on its own stream. */
struct other {
    struct fl_gpu_pool *pool;
    uint64_t x;
    fl_CUdeviceptr to; /* it copies `x`, which is pinned, to there; 0: it fills `x` */
    bool is_captured;
    bool ends_early; /* before x is freed */
    pthread_t thread;
};

static void submit(const struct other *o)
{
    void *from = (void *)(uintptr_t)o->x; /* NOLINT(performance-no-int-to-ptr) */

    gpu_hold(OWN);
    if (o->to == 0) {
        gpu_fill(OWN, o->x, MIB(1), 7);
    } else {
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(o->to, from, MIB(1), OWN), 0);
    }
}

static void *use_on_own_stream(void *arg)
{
    struct other *o = arg;

    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    if (o->is_captured) {
        fake->capture(OWN, true);
    }
    assert_int_equal(fl_gpu_pool_record_stream(o->pool, o->x, OWN), 0);
    if (!o->is_captured) {
        submit(o);
    }
    assert_int_equal(sem_post(&used), 0);
    if (!o->ends_early) {
        assert_int_equal(sem_wait(&freed), 0);
    }
    if (o->is_captured) {
        fake->capture(OWN, false);
    }
    return NULL;
}

static void other_begin(struct other *o)
{
    assert_int_equal(sem_init(&used, 0, 0), 0);
    assert_int_equal(sem_init(&freed, 0, 0), 0);
    assert_int_equal(pthread_create(&o->thread, NULL, use_on_own_stream, o), 0);
    assert_int_equal(sem_wait(&used), 0);
    if (o->ends_early) {
        assert_int_equal(pthread_join(o->thread, NULL), 0);
    }
}

static void other_end(struct other *o)
{
    if (!o->ends_early) {
        assert_int_equal(sem_post(&freed), 0);
        assert_int_equal(pthread_join(o->thread, NULL), 0);
    }
    assert_int_equal(sem_destroy(&used), 0);
    assert_int_equal(sem_destroy(&freed), 0);
}

/* Requests until one gets `x`, or four have not. True: one got it. All but it are freed on `s`. */
static bool is_had(struct fl_gpu_pool *p, uint64_t x, void *s)
{
    uint64_t got[4] = {0};
    unsigned n = 0;

    do {
        assert_int_equal(fl_gpu_pool_collect(p), 0);
        got[n] = pool_take(p, MIB(1), s);
    } while (got[n] != x && ++n < 4);
    for (unsigned i = 0; i < n; i++) {
        pool_give(p, got[i], s);
    }
    return n < 4;
}

/* S5: freed here, while what the other thread's stream was given is still queued. */
static void waits_for_another_threads_stream(enum fl_gpu_strategy strategy, bool early)
{
    struct fl_gpu_pool *p = pool_of(strategy);

    begin();
    struct other o = {.pool = p, .x = pool_take(p, MIB(1), a), .ends_early = early};
    other_begin(&o);
    pool_give(p, o.x, a);
    gpu_wait(OWN); /* this thread's, on which there was nothing */
    gpu_wait(a);
    if (is_had(p, o.x, a)) { /* then it is over there: the fake knows */
        gpu_fill(a, o.x, MIB(1), 9);
        assert_true(gpu_holds(a, o.x, MIB(1), 9));
        pool_give(p, o.x, a);
    }
    other_end(&o);
    gpu_wait_all();
    assert_true(is_had(p, o.x, a)); /* and is not lost */
    pool_give(p, o.x, a);
    gpu_wait_all();
    pool_end(p);
}

GPU_SCHEDULED(a_free_waits_for_another_threads_stream)
{
    waits_for_another_threads_stream(FL_GPU_AUTO_GROWTH, false);
    waits_for_another_threads_stream(FL_GPU_AUTO_GROWTH, true);
    waits_for_another_threads_stream(FL_GPU_NAIVE, false);
}

/* S10: the same of pinned memory, which the host writes. */
GPU_SCHEDULED(the_host_waits_for_another_threads_stream)
{
    struct fl_gpu_pool *device = pool_of(FL_GPU_AUTO_GROWTH);

    begin();
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED);
    struct other other = {
        .pool = p, .x = pool_take(p, MIB(1), FL_GPU_HOST), .to = pool_take(device, MIB(1), a)};
    other_begin(&other);
    pool_give(p, other.x, FL_GPU_HOST);
    gpu_wait(OWN);
    if (is_had(p, other.x, FL_GPU_HOST)) {
        if (fake != NULL) {
            fake->host_access((void *)(uintptr_t)other.x, MIB(1), true); /* NOLINT */
        }
        pool_give(p, other.x, FL_GPU_HOST);
    }
    other_end(&other);
    gpu_wait_all();
    pool_give(device, other.to, a);
    pool_end(device);
    pool_end(p);
}

/* S9: a graph that another thread captures on its own stream may use the block whenever it runs. */
GPU_TEST(what_another_threads_graph_uses_is_kept)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    if (fake == NULL) {
        pool_end(p);
        return;
    }
    begin();
    struct other o = {.pool = p, .x = pool_take(p, MIB(1), a), .is_captured = true};
    other_begin(&o);
    pool_give(p, o.x, a);
    other_end(&o);
    gpu_wait_all();
    assert_false(is_had(p, o.x, a));
    pool_end(p);
}

/* S1, S10: the default streams of two devices, of which the current context says the one that is
 * meant. */
static void a_default_stream_is_the_current_contexts(void *stream)
{
    struct fl_gpu *second = NULL;
    fl_CUdeviceptr to = 0;

    if (fl_gpu_open_primary(1, &second) != 0) {
        return; /* there is one device */
    }
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED);
    uint64_t x = pool_take(p, MIB(2), FL_GPU_HOST), y = pool_take(p, MIB(2), FL_GPU_HOST);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(second->context), 0);
    assert_int_equal(fl_cuda.cuMemAlloc(&to, MIB(2)), 0);
    void *from = (void *)(uintptr_t)x; /* NOLINT(performance-no-int-to-ptr) */
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(to, from, MIB(2), stream), 0);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, stream), 0);
    from = (void *)(uintptr_t)y; /* NOLINT(performance-no-int-to-ptr) */
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(to, from, MIB(2), stream), 0);
    pool_give(p, x, FL_GPU_HOST);
    pool_give(p, y, stream);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    gpu_wait(stream); /* device 0's */
    assert_int_equal(fl_gpu_pool_collect(p), 0);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t z = pool_take(p, MIB(2), FL_GPU_HOST);
        if (fake != NULL) {
            fake->host_access((void *)(uintptr_t)z, MIB(2), true); /* NOLINT */
        }
        pool_give(p, z, FL_GPU_HOST);
    }
    assert_int_equal(gpu_calls.cuCtxSetCurrent(second->context), 0);
    gpu_wait_all();
    assert_int_equal(fl_cuda.cuMemFree(to), 0);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    pool_end(p);
    fl_gpu_close(second);
}

GPU_SCHEDULED(null_is_the_current_contexts)
{
    a_default_stream_is_the_current_contexts(NULL);
}

GPU_SCHEDULED(a_threads_own_is_the_current_contexts)
{
    a_default_stream_is_the_current_contexts(OWN);
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

GPU_MAIN("test_gpu_pool_default")
