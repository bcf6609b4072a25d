/* Streams that come and go, and what the driver is never asked about them: rules S3, S5, S6,
 * S10. */
#include "gpu/two_streams.h"

#include <errno.h>
#include <pthread.h>

/* S6: a handle that leads to another stream by now is another stream: it comes after the event of
 * the free, not at once. */
GPU_SCHEDULED(a_handle_used_again_is_another_stream)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    void *brief = gpu_stream();
    uint64_t x = pool_take(p, MIB(1), brief);

    gpu_hold(brief);
    gpu_fill(brief, x, MIB(1), 1);
    pool_give(p, x, brief);
    gpu_stream_end(brief);
    begin();
    uint64_t y = pool_take(p, MIB(1), a);
    gpu_fill(a, y, MIB(1), 2);
    assert_true(gpu_holds(a, y, MIB(1), 2));
    pool_give(p, y, a);
    assert_int_equal(pool_stats(p).quarantined, 0);
    pool_end(p);
}

/* S6: nor is the driver asked about one that is not there, whatever the pool looks for. */
GPU_TEST(a_stream_that_has_gone_is_not_asked)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    begin();
    uint64_t x = pool_take(p, MIB(1), a), y = pool_take(p, MIB(2), b), z = 0;
    gpu_fill(a, x, MIB(1), 1);
    pool_give(p, x, a);
    gpu_stream_end(a);
    assert_int_equal(fl_gpu_pool_alloc(p, MIB(1), b, &z), 0);
    gpu_fill(b, z, MIB(1), 2);
    assert_int_equal(fl_gpu_pool_collect(p), 0);
    assert_int_equal(fl_gpu_pool_trim(p, 0, NULL), 0);
    pool_give(p, y, b);
    pool_give(p, z, b);
    pool_end(p);
}

/* S6: what the driver says of one stream is not the pool's end. */
GPU_FAKE_TEST(a_stream_that_is_refused_ends_nothing)
{
    uint64_t x = 0;

    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    begin();
    fake->refuse("cuStreamGetId", 1, FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, false);
    assert_int_equal(fl_gpu_pool_alloc(p, MIB(1), a, &x), -EINVAL);
    assert_string_equal(fl_gpu_error(), "the stream has been destroyed");
    x = pool_take(p, MIB(1), b);
    pool_give(p, x, b);
    pool_end(p);
}

/* S5, S6: a stream that is recorded on a block, retired, and destroyed: the block waits for what it
 * had been given, and for nothing else. */
GPU_SCHEDULED(a_recorded_stream_may_go_before_the_block)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    begin();
    for (unsigned i = 0; i < 8; i++) {
        void *user = gpu_stream();
        uint64_t x = pool_take(p, MIB(1), a);
        gpu_fill(a, x, MIB(1), 1);
        gpu_wait(a);
        assert_int_equal(fl_gpu_pool_record_stream(p, x, user), 0);
        gpu_hold(user);
        gpu_fill(user, x, MIB(1), 2);
        assert_int_equal(fl_gpu_pool_stream_retire(p, user), 0);
        gpu_stream_end(user);
        pool_give(p, x, a);
        if (i % 2 != 0) {
            gpu_wait_all();
            assert_int_equal(fl_gpu_pool_collect(p), 0);
            assert_null(p->pending.first);
        }
    }
    assert_true(pool_held(p) <= MIB(2));
    pool_end(p);
}

/* S3: what is said to last is covered late, until it is retired. */
GPU_TEST(a_stream_may_be_said_to_last)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    begin();
    assert_int_equal(fl_gpu_pool_stream_lasts(p, a), 0);
    pool_give(p, pool_take(p, MIB(1), a), a);
    assert_int_equal(pool_stats(p).events, 0);
    assert_int_equal(fl_gpu_pool_stream_retire(p, a), 0);
    assert_int_equal(pool_stats(p).events, 1);
    assert_int_equal(fl_gpu_pool_stream_lasts(NULL, a), -EINVAL);
    pool_end(p);
}

/* S6: events are for those who destroy streams unsaid; who is told leaves nothing behind either. */
GPU_SCHEDULED(a_stream_may_go_with_its_blocks_freed)
{
    begin();
    for (unsigned told = 0; told < 2; told++) {
        struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
        for (unsigned i = 0; i < 5; i++) {
            void *brief = gpu_stream();
            uint64_t x = pool_take(p, MIB(1), brief);
            gpu_fill(brief, x, MIB(1), 1);
            pool_give(p, x, brief);
            assert_int_equal(told != 0 ? fl_gpu_pool_stream_retire(p, brief) : 0, 0);
            gpu_stream_end(brief);
        }
        assert_int_equal(fl_gpu_pool_stream_retire(p, a), 0); /* which it never saw */
        assert_true(pool_stats(p).events >= 5);
        assert_int_equal(pool_stats(p).quarantined, 0);
        pool_end(p);
    }
}

/* S10: what is unregistered nothing waits for, so a trim leaves what a copy is queued from. */
static struct fl_gpu_pool *trimmed;
static uint64_t in_use, there;

static void copy_and_free(void *unused)
{
    (void)unused;
    if (in_use != 0 && gpu_calls.cuCtxSetCurrent(gpu->context) == 0) {
        uint64_t x = in_use;
        in_use = 0;
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(there, (void *)(uintptr_t)x, MIB(2), a), 0);
        pool_give(trimmed, x, a);
    }
}

GPU_TEST(pinned_memory_is_trimmed_beside_frees)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);

    if (fake == NULL) {
        skip();
    }
    fake->schedule(FAKE_CUDA_LATE, 0);
    o.target = FL_GPU_PINNED;
    trimmed = pool_with(&o);
    struct fl_gpu_pool *device = pool_of(FL_GPU_AUTO_GROWTH);
    begin();
    there = pool_take(device, MIB(2), a);
    in_use = pool_take(trimmed, MIB(2), a);
    uint64_t idle = pool_take(trimmed, MIB(2), a);
    pool_give(trimmed, idle, a);
    gpu_wait(a);
    fake->amid("cuMemHostUnregister", copy_and_free, NULL);
    size_t released = 0;
    assert_int_equal(fl_gpu_pool_trim(trimmed, 0, &released), 0);
    assert_int_equal(in_use, 0);
    assert_int_equal(released, MIB(2)); /* the idle one; the other has a copy queued */
    fake->amid(NULL, NULL, NULL);
    pool_give(device, there, a);
    pool_end(trimmed);
    pool_end(device);
}

/* Pinned memory is every device's: its streams record events of their own context. */
GPU_SCHEDULED(another_devices_stream_uses_pinned_memory)
{
    struct fl_gpu *other = NULL;

    if (fake == NULL) {
        return;
    }
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_gpu_open(1, &other), 0);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED);
    for (unsigned i = 0; i < 4; i++) {
        fl_CUdeviceptr to = 0;
        assert_int_equal(gpu_calls.cuCtxSetCurrent(other->context), 0);
        void *s = gpu_stream();
        assert_int_equal(fl_cuda.cuMemAlloc(&to, MIB(1)), 0);
        uint64_t x = pool_take(p, MIB(1), s);
        void *host = (void *)(uintptr_t)x;
        fake->host_access(host, MIB(1), true);
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(to, host, MIB(1), s), 0);
        pool_give(p, x, s);
        gpu_stream_end(s);
        assert_int_equal(fl_cuda.cuMemFree(to), 0);
        assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    }
    pool_end(p);
    assert_int_equal(fl_gpu_close(other), 0);
}

/* The end of a pool waits for copies that no event tells of, of other devices, too. */
GPU_FAKE_TEST(the_end_waits_for_other_devices)
{
    fl_CUdeviceptr to = 0;

    fake->schedule(FAKE_CUDA_LATE, 0);
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED);
    uint64_t x = pool_take(p, MIB(4), FL_GPU_HOST);
    void *other = fake->context_new(1), *s = gpu_stream();
    assert_int_equal(fl_cuda.cuMemAlloc(&to, MIB(4)), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(to, (void *)(uintptr_t)x, MIB(4), s),
                     0); /* NOLINT */
    fake->refuse("cuEventRecord", 1, FL_CUDA_ERROR_OUT_OF_MEMORY, false);
    pool_give(p, x, s);
    assert_true(fake->refused());
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    pool_end(p); /* which unregisters the memory */
    assert_int_equal(gpu_calls.cuCtxSetCurrent(other), 0);
    assert_int_equal(fl_cuda.cuMemFree(to), 0);
    gpu_stream_end(s);
    fake->context_end(other);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
}

/* PaddlePaddle's FLAGS_fast_eager_deletion_mode=False: whatever is freed waits for its kernels,
 * piled up or not. */
GPU_TEST(nothing_is_had_before_its_kernels_end)
{
    static const double thresholds[] = {0, 1e-9};

    begin();
    for (size_t i = 0; i < sizeof thresholds / sizeof thresholds[0]; i++) {
        struct fl_gpu_pool *p =
            POOL(FL_GPU_AUTO_GROWTH, o.gc_gb = thresholds[i], o.gc_fast = false);
        if (fake != NULL) {
            fake->schedule(FAKE_CUDA_LATE, 0);
        }
        uint64_t x = pool_take(p, MIB(1), a);
        gpu_hold(a);
        gpu_fill(a, x, MIB(1), 1);
        pool_give(p, x, a);
        uint64_t y = pool_take(p, MIB(1), a);
        assert_int_not_equal(x, y);
        gpu_wait(a);
        uint64_t z = pool_take(p, MIB(1), a);
        assert_int_equal(z, x);
        pool_give(p, y, a);
        pool_give(p, z, a);
        pool_end(p);
    }
}

GPU_MAIN("test_gpu_pool_lives")
