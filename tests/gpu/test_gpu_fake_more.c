/* What else the fake driver looks at: contexts, handles, versions, capture, forks,
 * batches. */
#include "gpu/fake_calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 4096 };

GPU_TEST(contexts_and_handles_are_looked_at)
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

GPU_TEST(capture_forbids_what_it_forbids)
{
    void *s = gpu_stream();
    uint64_t p = take(LEN);
    fl_CUdeviceptr q;
    int status;
    fl_CUevent e = record(s);

    gpu_fill(s, p, LEN, 1);
    fake->capture(s, true);
    assert_int_equal(fl_cuda.cuStreamIsCapturing(s, &status), 0);
    assert_int_equal(status, 1);
    gpu_fill(s, p, LEN, 2);
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(fl_cuda.cuEventQuery(e), FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(fl_cuda.cuMemAlloc(&q, LEN), FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    fake->capture(s, false);
    assert_true(fake->holds(p, LEN, 1));
    reported(0, 2);
}

GPU_TEST(a_child_is_told_apart)
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

GPU_TEST(calls_have_versions)
{
    fl_cuGetProcAddress *ask;
    void *library = dlopen(gpu_options.text[FL_OPTION_gpu_driver], RTLD_NOW), *found, *call;
    int how;

    assert_non_null(library);
    found = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&ask, &found, sizeof found);
    assert_int_equal(ask("cuStreamGetId", &call, 12000, 0, &how), 0);
    assert_ptr_equal(call, dlsym(library, "cuStreamGetId"));
    assert_int_equal(ask("cuMemAlloc", &call, 3020, 0, &how), 0);
    assert_ptr_equal(call, dlsym(library, "cuMemAlloc_v2"));
    assert_int_equal(ask("cuMemAlloc", &call, 2000, 0, &how), FL_CUDA_ERROR_NOT_FOUND);
    assert_int_equal(ask("cuNoSuchCall", &call, 13000, 0, &how), FL_CUDA_ERROR_NOT_FOUND);
    fake->set(FAKE_CUDA_VERSION, 11080);
    assert_int_equal(ask("cuStreamGetId", &call, 12000, 0, &how), FL_CUDA_ERROR_NOT_FOUND);
    assert_int_equal(how, 2);
    fake->hide("cuMemFree");
    assert_int_equal(ask("cuMemFree", &call, 3020, 0, &how), FL_CUDA_ERROR_NOT_FOUND);
    reported(0, 0);
    dlclose(library);
}

GPU_TEST(a_batch_is_its_copies)
{
    static _Alignas(4096) unsigned char from[2 * LEN];
    fl_CUdeviceptr p = take(2 * (size_t)LEN), to[2] = {p, p + LEN},
                   source[2] = {(uintptr_t)from, (uintptr_t)from + LEN};
    size_t len[2] = {LEN, LEN}, index = 0, failed;
    struct fl_CUmemcpyAttributes attribute = {.srcAccessOrder =
                                                  FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    void *s = gpu_stream();

    fake->schedule(FAKE_CUDA_LATE, 0);
    memset(from, 6, sizeof from);
    assert_int_equal(fl_cuda.cuMemHostRegister(from, sizeof from, 0), 0);
    assert_int_equal(
        fl_cuda.cuMemcpyBatchAsync(to, source, len, 2, &attribute, &index, 1, &failed, NULL),
        FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fl_cuda.cuMemcpyBatchAsync(to, source, len, 2, &attribute, &index, 1, &failed, s), 0);
    assert_int_equal(fake->copies(), 2);
    fake->host_access(from + LEN, 1, true);
    assert_int_equal(fake->races(), 1);
    gpu_wait(s);
    assert_true(fake->holds(p, 2 * (size_t)LEN, 6));
    assert_int_equal(fl_cuda.cuMemHostUnregister(from), 0);
    reported(1, 0);
}

GPU_TEST(devices_are_apart)
{
    struct fl_gpu *other;
    struct fl_gpu_guard guard;
    uint64_t here = take(LEN), there;

    assert_int_equal(fl_gpu_open(1, &other),
                     0); /* in its primary context: this thread's is device 0's */
    assert_int_equal(fl_gpu_enter(other, &guard), 0);
    there = take(LEN);
    fl_gpu_leave(&guard);
    assert_true(here != there);
    assert_int_equal(fake->used(0), LEN);
    assert_int_equal(fake->used(1), LEN);
    assert_int_equal(fl_gpu_close(other), 0);
    reported(0, 0);
}

GPU_MAIN("test_gpu_fake_more")
