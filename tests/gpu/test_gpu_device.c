/* Handles of devices: which is whose, contexts, what failed last. */
#include "gpu/gpu_fixture.h"

#include <pthread.h>

static fl_CUcontext current(void)
{
    fl_CUcontext c = NULL;

    assert_int_equal(fl_cuda.cuCtxGetCurrent(&c), 0);
    return c;
}

CASE(one_handle_a_device_and_context)
{
    struct fl_gpu *same, *other;

    assert_int_equal(fl_gpu_open(0, &same), 0);
    assert_ptr_equal(same, gpu);
    assert_int_equal(fl_gpu_close(same), 0);
    if (fl_gpu_open(1, &other) == 0) { /* whose context is not the current one */
        assert_ptr_not_equal(other->context, gpu->context);
        assert_int_equal(fl_gpu_close(other), 0);
    }
    if (fake != NULL) {
        void *context = fake->context_new(0);
        assert_int_equal(fl_gpu_open(0, &other), 0);
        assert_ptr_not_equal(other, gpu);
        assert_ptr_equal(other->context, context);
        assert_false(other->primary);
        assert_int_equal(fl_gpu_close(other), 0);
        fake->context_end(context);
    }
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_gpu_open(0, &same), 0); /* in the primary context, which `gpu` has */
    assert_ptr_equal(same, gpu);
    assert_int_equal(fl_gpu_close(same), 0);
    assert_null(current());
}

/* Opened in a context that was there, then by a thread without one: the primary context is kept
 * until both are closed. */
CASE(a_borrowed_primary_context_is_kept)
{
    fl_CUcontext primary;
    struct fl_gpu *borrowed, *again;

    assert_int_equal(fl_gpu_close(gpu), 0);
    gpu = NULL;
    assert_int_equal(fl_cuda.cuDevicePrimaryCtxRetain(&primary, 0), 0);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(primary), 0);
    assert_int_equal(fl_gpu_open(0, &borrowed), 0);
    assert_false(borrowed->primary);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_gpu_open(0, &again), 0);
    assert_ptr_equal(again, borrowed);
    assert_true(borrowed->primary);
    assert_int_equal(fl_cuda.cuDevicePrimaryCtxRelease(0), 0);
    struct fl_gpu_guard guard;
    assert_int_equal(fl_gpu_enter(again, &guard), 0);
    fl_gpu_leave(&guard);
    assert_int_equal(fl_gpu_close(again), 0);
    assert_int_equal(fl_gpu_close(borrowed), 0);
}

CASE(bad_arguments_are_answers)
{
    struct fl_gpu *g = gpu;

    assert_int_equal(fl_gpu_open(-1, &g), -EINVAL);
    assert_int_equal(fl_gpu_open(0, NULL), -EINVAL);
    assert_int_equal(fl_gpu_open(1000, &g), -ENODEV);
    assert_string_equal(fl_gpu_error(), "no device of that number");
    assert_ptr_equal(g, gpu);
    assert_int_equal(fl_gpu_close(NULL), -EINVAL);
}

CASE(in_use_is_busy)
{
    atomic_fetch_add(&gpu->users, 1);
    assert_int_equal(fl_gpu_close(gpu), -EBUSY);
    atomic_fetch_sub(&gpu->users, 1);
    assert_int_equal(fl_gpu_close(gpu), 0);
    gpu = NULL;
}

CASE(the_guard_puts_back_what_was)
{
    struct fl_gpu_guard guard;

    assert_int_equal(fl_gpu_enter(gpu, &guard), 0);
    assert_false(guard.pushed); /* current already */
    fl_gpu_leave(&guard);
    assert_ptr_equal(current(), gpu->context);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_gpu_enter(gpu, &guard), 0);
    assert_true(guard.pushed);
    assert_ptr_equal(current(), gpu->context);
    fl_gpu_leave(&guard);
    assert_null(current());
    fl_gpu_leave(&guard); /* once is enough */
    assert_null(current());
    fl_CUstreamCaptureMode mode = 1; /* the thread's own, too */
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(fl_gpu_enter(gpu, &guard), 0);
    fl_gpu_leave(&guard);
    mode = 0;
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, 1);
}

static void *no_error_here(void *unused)
{
    (void)unused;
    return fl_gpu_error()[0] == '\0' ? NULL : (void *)1;
}

CASE(the_error_is_the_threads_own)
{
    pthread_t t;
    void *rc;

    assert_int_equal(fl_cuda_status(FL_CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", 4096), -ENOMEM);
    assert_string_equal(fl_gpu_error(), "cuMemAlloc of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)");
    assert_int_equal(fl_cuda_status(FL_CUDA_SUCCESS, "cuMemAlloc", 4096), 0);
    assert_string_equal(fl_gpu_error(), "cuMemAlloc of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2)");
    assert_int_equal(pthread_create(&t, NULL, no_error_here, NULL), 0);
    assert_int_equal(pthread_join(t, &rc), 0);
    assert_null(rc);
    assert_int_equal(fl_cuda_status(123456, "cuX", 0), -EIO);
    assert_string_equal(fl_gpu_error(), "cuX: error 123456");
}

CASE(codes_are_statuses)
{
    static const struct {
        int code, status;
    } rows[] = {{FL_CUDA_SUCCESS, 0},
                {FL_CUDA_ERROR_OUT_OF_MEMORY, -ENOMEM},
                {FL_CUDA_ERROR_INVALID_VALUE, -EINVAL},
                {FL_CUDA_ERROR_INVALID_HANDLE, -EINVAL},
                {FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, -ESHUTDOWN},
                {FL_CUDA_ERROR_INVALID_CONTEXT, -ESHUTDOWN},
                {FL_CUDA_ERROR_NOT_SUPPORTED, -ENOTSUP},
                {FL_CUDA_ERROR_NOT_PERMITTED, -ENOTSUP},
                {FL_CUDA_ERROR_NO_DEVICE, -ENODEV},
                {FL_CUDA_ERROR_NOT_INITIALIZED, -ENODEV},
                {FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, -EBUSY},
                {FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, -ENOENT},
                {FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, -EINPROGRESS},
                {FL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, -EINPROGRESS},
                {909, -EIO}, /* after capture's */
                {FL_CUDA_ERROR_UNKNOWN, -EIO}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(fl_cuda_status(rows[i].code, "cuX", 0), rows[i].status);
    }
}

CASE(what_a_device_can_is_known)
{
    assert_true(gpu->total > 0);
    assert_true(gpu->node >= -1);
    if (fake == NULL) {
        return;
    }
    assert_true(gpu->has_batch);
    assert_int_equal(gpu->node, 0);
    assert_int_equal(gpu->total, (size_t)1 << 30);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_gpu_close(gpu), 0);
    gpu = NULL;
    fake->set(FAKE_CUDA_NODE, (uint64_t)-1);
    assert_int_equal(fl_gpu_open(0, &gpu), 0);
    assert_int_equal(gpu->node, -1);
}

GPU_FAKE_TEST(a_context_that_has_gone_is_a_status)
{
    struct fl_gpu_guard guard;
    struct fl_gpu *other;

    void *context = fake->context_new(0);
    assert_int_equal(fl_gpu_open(0, &other), 0);
    fake->context_end(context);
    assert_int_equal(fl_gpu_enter(other, &guard), -ESHUTDOWN);
    assert_int_equal(fl_gpu_close(other), 0);
}

static void allocate(void *unused)
{
    free(malloc(fl_page.huge));
    (void)unused;
}

/* But the list of devices: libcuda's own threads allocate amid its calls. */
GPU_FAKE_TEST(nothing_that_allocates_waits_for_is_held_over_a_call)
{
    struct fl_gpu *g;

    fake->amid(NULL, allocate, NULL);
    assert_int_equal(fl_gpu_open(1, &g), 0);
    assert_int_equal(fl_gpu_close(g), 0);
}

GPU_MAIN("test_gpu_device")
