/* What the fake driver says of stream capture, as cuda.h has it: the three modes, the legacy stream
 * (906), captured events, the whole context; and which calls take another context's stream. */
#include "gpu/gpu_fixture.h"

#include <pthread.h>

enum {
    LEN = 4096,
    GLOBAL = 0,
    THREAD_LOCAL = 1,
    UNSUPPORTED = FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
};

static void reported(unsigned violations)
{
    assert_int_equal(fake->races(), 0);
    assert_int_equal(fake->violations(), violations);
    fake->reset(true);
}

static fl_CUevent new_event(void)
{
    fl_CUevent e = NULL;

    assert_int_equal(fl_cuda.cuEventCreate(&e, FL_CU_EVENT_DISABLE_TIMING), 0);
    return e;
}

/* An unsafe call from a thread of that mode. */
static fl_CUresult unsafe_in(fl_CUstreamCaptureMode mode)
{
    fl_CUdeviceptr p = 0;

    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    fl_CUresult code = fl_cuda.cuMemAlloc(&p, LEN);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    return code;
}

static void *unsafe_elsewhere(void *mode)
{
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    return (void *)(intptr_t)unsafe_in((int)(intptr_t)mode);
}

static fl_CUresult elsewhere(fl_CUstreamCaptureMode mode)
{
    pthread_t thread;
    void *code = NULL;

    assert_int_equal(pthread_create(&thread, NULL, unsafe_elsewhere, (void *)(intptr_t)mode), 0);
    assert_int_equal(pthread_join(thread, &code), 0);
    return (fl_CUresult)(intptr_t)code;
}

GPU_TEST(modes_forbid_what_they_forbid)
{
    static const struct {
        int capture, thread;
        fl_CUresult mine, others;
    } row[] = {
        {GLOBAL, GLOBAL, UNSUPPORTED, UNSUPPORTED},
        {GLOBAL, THREAD_LOCAL, UNSUPPORTED, 0},
        {GLOBAL, FL_CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0},
        {THREAD_LOCAL, GLOBAL, UNSUPPORTED, 0},
        {THREAD_LOCAL, THREAD_LOCAL, UNSUPPORTED, 0},
        {THREAD_LOCAL, FL_CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0},
        {FL_CU_STREAM_CAPTURE_MODE_RELAXED, GLOBAL, 0, 0},
        {FL_CU_STREAM_CAPTURE_MODE_RELAXED, THREAD_LOCAL, 0, 0},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        void *s = gpu_stream();
        fake->capture_as(row[i].capture);
        fake->capture(s, true);
        assert_int_equal(unsafe_in(row[i].thread), row[i].mine);
        assert_int_equal(elsewhere(row[i].thread), row[i].others);
        fake->capture(s, false);
        reported((unsigned)(row[i].mine != 0) + (unsigned)(row[i].others != 0));
    }
}

GPU_TEST(nothing_waits_for_a_context_that_captures)
{
    void *s = gpu_stream();
    fl_CUstreamCaptureMode mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED;

    fake->capture(s, true);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), UNSUPPORTED);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    fake->capture(s, false);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), 0);
    reported(1);
}

GPU_TEST(the_legacy_stream_is_implied_by_blocking_ones)
{
    fl_CUstream blocking = NULL;
    int status;
    fl_CUevent e = new_event();
    void *s = gpu_stream();

    assert_int_equal(fl_cuda.cuStreamCreate(&blocking, 0), 0);
    fake->capture(s, true); /* that blocks no other thread */
    assert_int_equal(fl_cuda.cuStreamIsCapturing(NULL, &status), 0);
    assert_int_equal(fl_cuda.cuEventRecord(e, NULL), 0);
    fake->capture(s, false);
    fake->capture(blocking, true);
    assert_int_equal(fl_cuda.cuStreamIsCapturing(NULL, &status),
                     FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    assert_int_equal(fake->violations(), 0); /* to ask is no harm */
    assert_int_equal(fl_cuda.cuEventRecord(e, NULL), FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    fake->capture(blocking, false);
    reported(1);
}

GPU_TEST(captured_events_are_the_captures)
{
    void *s = gpu_stream(), *t = gpu_stream();
    fl_CUevent within = new_event(), before = new_event();
    fl_CUstreamCaptureMode mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED;

    assert_int_equal(fl_cuda.cuEventRecord(before, t), 0);
    fake->capture(s, true);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(fl_cuda.cuEventRecord(within, s), 0);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(s, within, 0), 0);
    assert_int_equal(fl_cuda.cuEventQuery(before), 0);
    assert_int_equal(fl_cuda.cuEventQuery(within), FL_CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(fl_cuda.cuEventSynchronize(within), FL_CUDA_ERROR_CAPTURED_EVENT);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(s, before, 0),
                     FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(t, within, 0),
                     FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    fake->capture(s, false);
    reported(4);
}

GPU_TEST(a_stream_of_another_context_is_taken_where_it_may_be)
{
    void *s = gpu_stream();
    fl_CUcontext of = NULL;
    unsigned long long id;
    int status;

    void *other = fake->context_new(1);
    fl_CUevent e = new_event();
    assert_int_equal(fl_cuda.cuStreamGetId(s, &id), 0);
    assert_int_equal(fl_cuda.cuStreamIsCapturing(s, &status), 0);
    assert_int_equal(fl_cuda.cuStreamGetCtx(s, &of), 0);
    assert_ptr_equal(of, gpu->context);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(s, e, 0), 0);
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(fl_cuda.cuEventRecord(e, s), FL_CUDA_ERROR_INVALID_HANDLE);
    fake->context_end(other);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    reported(1);
}

GPU_MAIN("test_gpu_fake_capture")
