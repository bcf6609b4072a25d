/* The fake driver catches what it is there to catch: each planted bug is reported, and what is
 * right is not. Of stream capture it says what cuda.h says: the three modes, the legacy stream
 * (906), captured events, the whole context; and which calls take another context's stream. */
#include "gpu/gpu_fixture.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum {
    LEN = 4096,
    PAGES = 16,
    GLOBAL = 0,
    THREAD_LOCAL = 1,
    UNSUPPORTED = FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
};

static uint64_t take(size_t len)
{
    fl_CUdeviceptr p = 0;

    assert_int_equal(fl_cuda.cuMemAlloc(&p, len), 0);
    return p;
}

static fl_CUevent record(void *stream)
{
    fl_CUevent e = NULL;

    assert_int_equal(fl_cuda.cuEventCreate(&e, FL_CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(fl_cuda.cuEventRecord(e, stream), 0);
    return e;
}

/* What has been reported is what was planted: the test's end is to find nothing. */
static void reported(unsigned races, unsigned violations)
{
    assert_int_equal(fake->races(), races);
    assert_int_equal(fake->violations(), violations);
    assert_true((fake->report()[0] != '\0') == (races + violations > 0));
    fake->reset(true);
}

static void *pages(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static enum fake_cuda_mode in;

static void in_each_mode(void (*body)(void))
{
    for (in = FAKE_CUDA_EAGER; in <= FAKE_CUDA_RANDOM; in++) {
        fake->reset(true);
        fake->schedule(in, 7);
        body();
    }
}

/* What each of the words does to the same bytes: wa, ra: stream a writes, reads; ea: a records the
 * event; va: a waits for it; s: the host does. A and B are blocking, L the legacy stream. */
static const struct {
    const char *words;
    unsigned races;
} orders[] = {
    {"wa wb", 1},      {"wa ea vb wb", 0}, {"ea wa vb wb", 1}, {"wa ea vb eb vc wc", 0},
    {"wa ea s wb", 0}, {"wA wL wB", 0},    {"wL wa", 1},       {"ra rb ra", 0},
    {"ra rb wa", 1},
};

static void in_order(void)
{
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        void *stream[128] = {NULL};
        fl_CUevent e = NULL;
        uint64_t p = take(LEN);
        unsigned char n = 0;
        fake->schedule(in, i);
        for (const char *w = orders[i].words; *w != '\0'; w += strcspn(w, " "), w += *w == ' ') {
            void **s = &stream[(unsigned char)w[w[0] != 's']];
            if (*s == NULL && (w[1] == 'A' || w[1] == 'B')) {
                assert_int_equal(fl_cuda.cuStreamCreate((fl_CUstream *)s, 0), 0);
            }
            *s = *s == NULL && w[1] != 'L' ? gpu_stream() : *s;
            fl_CUresult code = w[0] == 'w'   ? fake->kernel(*s, 0, 0, p, LEN, ++n)
                               : w[0] == 'r' ? fake->kernel(*s, p, LEN, 0, 0, 0)
                               : w[0] == 'v' ? fl_cuda.cuStreamWaitEvent(*s, e, 0)
                               : w[0] == 's' ? fl_cuda.cuEventSynchronize(e)
                                             : ((e = record(*s)), 0);
            assert_int_equal(code, 0);
        }
        assert_true(orders[i].races != 0 || n == 0 || fake->holds(p, LEN, n));
        reported(orders[i].races, 0);
    }
}

static void pinned_source_changes(void)
{
    static _Alignas(4096) unsigned char from[LEN];
    void *s = gpu_stream();
    uint64_t p = take(LEN);

    memset(from, 5, sizeof from);
    assert_int_equal(fl_cuda.cuMemHostRegister(from, sizeof from, 0), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from, LEN, s), 0);
    fake->host_access(from, LEN, false);
    assert_int_equal(fake->races(), 0);
    fake->host_access(from, LEN, true);
    assert_int_equal(fake->races(), 1);
    gpu_wait(s);
    fake->host_access(from, LEN, true);
    assert_true(fake->holds(p, LEN, 5));
    assert_int_equal(fl_cuda.cuMemHostUnregister(from), 0);
    reported(1, 0);
}

CASE(what_nothing_orders_is_reported)
{
    in_each_mode(in_order);
    in_each_mode(pinned_source_changes);
}

CASE(a_query_that_says_yes_orders)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);
    fl_CUevent e;

    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(a, p, LEN, 1);
    e = record(a);
    assert_int_equal(fl_cuda.cuEventQuery(e), FL_CUDA_ERROR_NOT_READY);
    assert_true(fake->holds(p, LEN, 1)); /* it has run, and the host does not know */
    assert_int_equal(fl_cuda.cuEventQuery(e), 0);
    gpu_fill(b, p, LEN, 2);
    reported(0, 0);
}

CASE(the_host_cannot_touch_device_memory)
{
    uint64_t p = take(LEN);
    int status;

    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)(uintptr_t)p = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(fl_cuda.cuMemFree(p), 0);
}

CASE(pageable_memory_is_read_before_the_call_returns)
{
    unsigned char from[LEN];
    void *s = gpu_stream();
    uint64_t p = take(LEN);

    fake->schedule(FAKE_CUDA_LATE, 0);
    memset(from, 1, sizeof from);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from, LEN, s), 0);
    memset(from, 2, sizeof from);
    gpu_wait(s);
    assert_true(fake->holds(p, LEN, 1));
    assert_int_equal(fake->pageable_copies(), 1);
    assert_int_equal(fake->copies(), 1);
    reported(0, 0);
}

CASE(a_copy_finds_the_pages_that_were_registered)
{
    char *from = pages(PAGES * LEN);
    void *s = gpu_stream();
    uint64_t p = take(PAGES * LEN);

    assert_int_equal(fl_cuda.cuMemHostRegister(from, PAGES * LEN, 0), 0);
    assert_int_equal(fake->registered(), PAGES * LEN);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from, PAGES * LEN, s), 0);
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(madvise(from + LEN, LEN, MADV_DONTNEED), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from, LEN, s), 0); /* another page */
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from + LEN, LEN, s), 0);
    assert_int_equal(fake->violations(), 1);
    if (fake->knows_frames()) {
        from[LEN] = 1; /* there is a page again, and it is another */
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from + LEN, LEN, s), 0);
        assert_int_equal(fake->violations(), 2);
    }
    fake->reset(true);
    munmap(from, PAGES * LEN);
}

CASE(registrations_do_not_overlap_and_copies_stay_in_one)
{
    char *from = pages(PAGES * LEN);
    uint64_t p = take(PAGES * LEN);

    assert_int_equal(fl_cuda.cuMemHostRegister(from, 2 * LEN, 0), 0);
    assert_int_equal(fl_cuda.cuMemHostRegister(from + LEN, 2 * LEN, 0),
                     FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(fl_cuda.cuMemHostRegister(from + 2 * LEN, 2 * LEN, 0), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from + LEN, 2 * LEN, NULL),
                     FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from + LEN, LEN, NULL), 0);
    assert_int_equal(mprotect(from + 8 * LEN, LEN, PROT_NONE), 0);
    assert_int_equal(fl_cuda.cuMemHostRegister(from + 8 * LEN, LEN, 0),
                     FL_CUDA_ERROR_INVALID_VALUE);
    fake->set(FAKE_CUDA_REGISTER_MAX, LEN);
    assert_int_equal(fl_cuda.cuMemHostRegister(from + 4 * LEN, 2 * LEN, 0),
                     FL_CUDA_ERROR_OUT_OF_MEMORY);
    reported(0, 0);
    munmap(from, PAGES * LEN);
}

CASE(unregistering_amid_a_copy)
{
    char *from = pages(LEN);
    void *s = gpu_stream();
    uint64_t p = take(LEN);

    fake->schedule(FAKE_CUDA_LATE, 0);
    assert_int_equal(fl_cuda.cuMemHostRegister(from, LEN, 0), 0);
    assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(p, from, LEN, s), 0);
    assert_int_equal(fl_cuda.cuMemHostUnregister(from), 0);
    reported(0, 1);
    munmap(from, LEN);
}

CASE(what_is_freed_is_not_used)
{
    void *s = gpu_stream();
    uint64_t p = take(LEN);

    assert_int_equal(fl_cuda.cuMemFree(p), 0);
    assert_int_equal(gpu_calls.cuMemsetD8Async(p, 1, LEN, s), FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fl_cuda.cuMemFree(p), FL_CUDA_ERROR_INVALID_VALUE);
    p = take(LEN);
    assert_int_equal(gpu_calls.cuMemsetD8Async(p, 1, LEN + 512, s), FL_CUDA_ERROR_INVALID_VALUE);
    reported(0, 3);
}

CASE(freeing_waits_for_the_device_and_is_counted)
{
    void *s = gpu_stream();
    uint64_t p = take(LEN);

    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(s, take(LEN), LEN, 1);
    fl_CUevent e = record(s);
    assert_int_equal(fake->implicit_syncs(), 0);
    assert_int_equal(fl_cuda.cuMemFree(p), 0);
    assert_int_equal(fl_cuda.cuEventQuery(e), 0);
    assert_int_equal(fake->implicit_syncs(), 1);
    reported(0, 0);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int amid_calls;

static void want_the_lock(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&held);
    amid_calls++;
    pthread_mutex_unlock(&held);
}

CASE(a_lock_over_a_call_is_found)
{
    fake->amid("cuCtxSynchronize", want_the_lock, NULL);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), 0);
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(amid_calls, 1);
    pthread_mutex_lock(&held);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), 0);
    pthread_mutex_unlock(&held);
    fake->amid(NULL, NULL, NULL);
    while (fake->violations() != 1 || ({
               pthread_mutex_lock(&held);
               bool waiting = amid_calls != 2;
               pthread_mutex_unlock(&held);
               waiting;
           })) {
        sched_yield();
    }
    reported(0, 1);
}

CASE(contexts_and_handles_are_looked_at)
{
    fl_CUstream s = gpu_stream();
    fl_CUdeviceptr p;
    unsigned long long first, second;

    assert_int_equal(fl_cuda.cuStreamGetId(s, &first), 0);
    gpu_stream_end(s);
    assert_int_equal(fl_cuda.cuStreamGetId(s, &second), FL_CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_ptr_equal(gpu_stream(), s);
    assert_int_equal(fl_cuda.cuStreamGetId(s, &second), 0);
    assert_true(second != first);
    fl_CUevent e = record(s);
    assert_int_equal(fl_cuda.cuEventDestroy(e), 0);
    assert_int_equal(fl_cuda.cuEventQuery(e), FL_CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake->violations(), 2);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), FL_CUDA_ERROR_INVALID_CONTEXT);
    void *other = fake->context_new(0);
    assert_int_equal(fl_cuda.cuEventRecord(e, s), FL_CUDA_ERROR_INVALID_HANDLE);
    fake->context_end(other);
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), FL_CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(fl_cuda.cuCtxPushCurrent(other), FL_CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    fake->reset(true);
}

CASE(a_child_is_told_apart)
{
    int status;

    pid_t child = fork();
    if (child == 0) {
        size_t left, total;
        bool refused = fl_cuda.cuMemGetInfo(&left, &total) == FL_CUDA_ERROR_NOT_INITIALIZED &&
                       fake->violations() == 1;
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
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

CASE(modes_forbid_what_they_forbid)
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
        reported(0, (unsigned)(row[i].mine != 0) + (unsigned)(row[i].others != 0));
    }
}

CASE(nothing_waits_for_a_context_that_captures)
{
    void *s = gpu_stream();
    fl_CUstreamCaptureMode mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED;

    fake->capture(s, true);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), UNSUPPORTED);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    fake->capture(s, false);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), 0);
    reported(0, 1);
}

CASE(the_legacy_stream_is_implied_by_blocking_ones)
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
    reported(0, 1);
}

CASE(captured_events_are_the_captures)
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
    reported(0, 4);
}

CASE(a_stream_of_another_context_is_taken_where_it_may_be)
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
    reported(0, 1);
}

GPU_MAIN("test_gpu_fake")
