/* The fake driver catches what it is there to catch: each planted bug is reported, and what is
 * right is not. */
#include "gpu/fake_calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 4096, PAGES = 16 };

static void *pages(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static void in_each_mode(void (*body)(void))
{
    for (int m = FAKE_CUDA_EAGER; m <= FAKE_CUDA_RANDOM; m++) {
        fake->reset(true);
        fake->schedule((enum fake_cuda_mode)m, 7);
        body();
    }
}

static void hand_on_unordered(void)
{
    uint64_t p = take(LEN);

    gpu_fill(gpu_stream(), p, LEN, 1);
    gpu_fill(gpu_stream(), p, LEN, 2);
    reported(1, 0);
}

static void hand_on_after_event(void)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);

    gpu_fill(a, p, LEN, 1);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(b, record(a), 0), 0);
    gpu_fill(b, p, LEN, 2);
    assert_true(fake->holds(p, LEN, 2));
    reported(0, 0);
}

static void hand_on_after_early_event(void)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);
    fl_CUevent e = record(a);

    gpu_fill(a, p, LEN, 1);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(b, e, 0), 0);
    gpu_fill(b, p, LEN, 2);
    reported(1, 0);
}

static void hand_on_through_third(void)
{
    void *a = gpu_stream(), *b = gpu_stream(), *c = gpu_stream();
    uint64_t p = take(LEN);

    gpu_fill(a, p, LEN, 1);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(b, record(a), 0), 0);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(c, record(b), 0), 0);
    gpu_fill(c, p, LEN, 3);
    assert_true(fake->holds(p, LEN, 3));
    reported(0, 0);
}

static void hand_on_after_host_waited(void)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);

    gpu_fill(a, p, LEN, 1);
    assert_int_equal(fl_cuda.cuEventSynchronize(record(a)), 0);
    gpu_fill(b, p, LEN, 2);
    gpu_wait(b);
    gpu_fill(a, p, LEN, 3);
    assert_true(fake->holds(p, LEN, 3));
    reported(0, 0);
}

/* Two that only read need no order; next to each other is not the same bytes. */
static void read_side_by_side(void)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(2 * LEN);

    assert_int_equal(fake->kernel(a, p, LEN, 0, 0, 0), 0);
    assert_int_equal(fake->kernel(b, p, LEN, p + LEN, LEN, 1), 0);
    assert_int_equal(fake->kernel(a, p, LEN, 0, 0, 0), 0);
    assert_int_equal(fake->races(), 0);
    assert_int_equal(fake->kernel(a, 0, 0, p, 1, 1), 0);
    reported(1, 0);
}

static void legacy_stream_orders(void)
{
    fl_CUstream a = NULL, b = NULL;
    uint64_t p = take(LEN);

    assert_int_equal(fl_cuda.cuStreamCreate(&a, 0), 0);
    assert_int_equal(fl_cuda.cuStreamCreate(&b, 0), 0);
    gpu_fill(a, p, LEN, 1);
    gpu_fill(NULL, p, LEN, 2);
    gpu_fill(b, p, LEN, 3);
    assert_true(fake->holds(p, LEN, 3));
    assert_int_equal(fake->races(), 0);
    gpu_fill(gpu_stream(), p, LEN, 4); /* which is not blocking */
    assert_true(fake->races() > 0);
    fake->reset(true);
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

GPU_TEST(nothing_orders_it)
{
    in_each_mode(hand_on_unordered);
    in_each_mode(hand_on_after_early_event);
    in_each_mode(pinned_source_changes);
}

GPU_TEST(something_orders_it)
{
    in_each_mode(hand_on_after_event);
    in_each_mode(hand_on_through_third);
    in_each_mode(hand_on_after_host_waited);
    in_each_mode(read_side_by_side);
    in_each_mode(legacy_stream_orders);
}

GPU_TEST(a_query_that_says_yes_orders)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);
    fl_CUevent e;

    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(a, p, LEN, 1);
    e = record(a);
    assert_int_equal(fl_cuda.cuEventQuery(e), FL_CUDA_ERROR_NOT_READY);
    assert_int_equal(fake->pending(a), 2);
    assert_int_equal(fake->step(a, 1), 1);
    assert_int_equal(fl_cuda.cuEventQuery(e), FL_CUDA_ERROR_NOT_READY);
    assert_int_equal(fake->step(a, 9), 1);
    assert_int_equal(fl_cuda.cuEventQuery(e), 0);
    gpu_fill(b, p, LEN, 2);
    reported(0, 0);
}

GPU_TEST(late_work_overwrites_what_was_handed_on_too_early)
{
    void *a = gpu_stream(), *b = gpu_stream();
    uint64_t p = take(LEN);

    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(a, p, LEN, 1);
    gpu_fill(b, p, LEN, 2);
    gpu_wait(b);
    gpu_wait(a);
    assert_true(fake->holds(p, LEN, 1));
    reported(1, 0);
}

GPU_TEST(the_host_cannot_touch_device_memory)
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

GPU_TEST(pageable_memory_is_read_before_the_call_returns)
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

GPU_TEST(a_copy_finds_the_pages_that_were_registered)
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

GPU_TEST(registrations_do_not_overlap_and_copies_stay_in_one)
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

GPU_TEST(unregistering_amid_a_copy)
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

GPU_TEST(what_is_freed_is_not_used)
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

GPU_TEST(freeing_waits_for_the_device_and_is_counted)
{
    void *s = gpu_stream();
    uint64_t p = take(LEN), q = take(LEN);

    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(s, q, LEN, 1);
    assert_int_equal(fake->pending(s), 1);
    assert_int_equal(fake->implicit_syncs(), 0);
    assert_int_equal(fl_cuda.cuMemFree(p), 0);
    assert_int_equal(fake->pending(s), 0);
    assert_int_equal(fake->implicit_syncs(), 1);
    reported(0, 0);
}

GPU_TEST(memory_is_first_fit_and_ends)
{
    uint64_t p[4];
    size_t left, total;

    fake->set(FAKE_CUDA_CAPACITY, 4 * LEN);
    for (int i = 0; i < 4; i++) {
        p[i] = take(LEN);
    }
    assert_int_equal(fl_cuda.cuMemFree(p[0]), 0);
    assert_int_equal(fl_cuda.cuMemFree(p[2]), 0);
    assert_int_equal(fl_cuda.cuMemGetInfo(&left, &total), 0);
    assert_int_equal(left, 2 * LEN);
    assert_int_equal(total, 4 * LEN);
    fl_CUdeviceptr q;
    assert_int_equal(fl_cuda.cuMemAlloc(&q, 2 * LEN), FL_CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(take(LEN), p[0]);
    assert_int_equal(take(512), p[2]);
    assert_int_equal(fake->used(0), 3 * LEN + 512);
    assert_int_equal(fake->live(), 4);
    reported(0, 0);
}

GPU_TEST(the_nth_call_fails)
{
    fl_CUdeviceptr p;
    uint64_t before = fake->calls(NULL);

    fake->refuse("cuMemAlloc", 2, FL_CUDA_ERROR_OUT_OF_MEMORY, false);
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), 0);
    assert_false(fake->refused());
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), FL_CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(fake->refused());
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), 0);
    assert_int_equal(fake->calls("cuMemAlloc"), 3);
    fake->refuse(NULL, 1, FL_CUDA_ERROR_UNKNOWN, true);
    assert_int_equal(fl_cuda.cuMemAlloc(&p, LEN), FL_CUDA_ERROR_UNKNOWN);
    assert_int_equal(fl_cuda.cuCtxSynchronize(), FL_CUDA_ERROR_UNKNOWN);
    assert_int_equal(fake->calls(NULL), before + 5);
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

GPU_TEST(a_lock_over_a_call_is_found)
{
    fake->set(FAKE_CUDA_REENTER, 1);
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

GPU_MAIN("test_gpu_fake")
