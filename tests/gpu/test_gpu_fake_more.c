/* What else the fake driver looks at: contexts, handles, versions, capture, forks, maps of its
 * virtual memory, its own pools, batches. */
#include "gpu/fake_calls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEN = 4096, GRANULE = 2 << 20 };

static void contexts_and_handles_are_looked_at(void **state)
{
    fl_CUstream s = gpu_stream();
    fl_CUdeviceptr p;
    unsigned long long first, second;

    (void)state;
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

static void capture_forbids_what_it_forbids(void **state)
{
    void *s = gpu_stream();
    uint64_t p = take(LEN);
    fl_CUdeviceptr q;
    int status;
    fl_CUevent e = record(s);

    (void)state;
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

static void a_child_is_told_apart(void **state)
{
    int status;

    (void)state;
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

static void calls_have_versions(void **state)
{
    fl_cuGetProcAddress *ask;
    void *library = dlopen(gpu_options.text[FL_OPTION_gpu_driver], RTLD_NOW), *found, *call;
    int how;

    (void)state;
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

static fl_CUmemGenericAllocationHandle create(size_t len)
{
    struct fl_CUmemAllocationProp prop = {
        .type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {FL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    fl_CUmemGenericAllocationHandle h = 0;

    assert_int_equal(fl_cuda.cuMemCreate(&h, len, &prop, 0), 0);
    return h;
}

static void map(fl_CUdeviceptr at, size_t len)
{
    fl_CUmemGenericAllocationHandle h = create(len);

    assert_int_equal(fl_cuda.cuMemMap(at, len, 0, h, 0), 0);
    assert_int_equal(fl_cuda.cuMemRelease(h), 0);
}

static void maps_grow_and_are_looked_at(void **state)
{
    struct fl_CUmemAccessDesc access = {{FL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                        FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    fl_CUdeviceptr at;
    void *s = gpu_stream();

    (void)state;
    assert_int_equal(fl_cuda.cuMemAddressReserve(&at, 4 * (size_t)GRANULE, 0, 0, 0), 0);
    assert_int_equal(gpu_calls.cuMemsetD8Async(at, 1, LEN, s), FL_CUDA_ERROR_INVALID_VALUE);
    map(at, GRANULE);
    assert_int_equal(gpu_calls.cuMemsetD8Async(at, 1, LEN, s), FL_CUDA_ERROR_INVALID_VALUE);
    map(at + GRANULE, GRANULE);
    assert_int_equal(fl_cuda.cuMemSetAccess(at, 2 * (size_t)GRANULE, &access, 1), 0);
    gpu_fill(s, at + GRANULE - LEN, 2 * (size_t)LEN, 3); /* over both */
    assert_true(fake->holds(at + GRANULE - LEN, 2 * (size_t)LEN, 3));
    assert_int_equal(fake->used(0), 2 * (size_t)GRANULE);
    assert_int_equal(fake->violations(), 2);
    fake->schedule(FAKE_CUDA_LATE, 0);
    gpu_fill(s, at, LEN, 4);
    assert_int_equal(fl_cuda.cuMemUnmap(at, 2 * (size_t)GRANULE), 0);
    assert_int_equal(fake->violations(), 3);
    assert_int_equal(fake->used(0), 0);
    assert_int_equal(fl_cuda.cuMemAddressFree(at, 4 * (size_t)GRANULE), 0);
    fake->reset(true);
}

static fl_CUmemoryPool pool_new(void)
{
    struct fl_CUmemPoolProps props = {
        .allocType = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {FL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
    };
    fl_CUmemoryPool pool = NULL;
    uint64_t all = UINT64_MAX;

    assert_int_equal(fl_cuda.cuMemPoolCreate(&pool, &props), 0);
    assert_int_equal(
        fl_cuda.cuMemPoolSetAttribute(pool, FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all), 0);
    return pool;
}

static fl_CUdeviceptr from_pool(fl_CUmemoryPool pool, void *stream)
{
    fl_CUdeviceptr p = 0;

    assert_int_equal(fl_cuda.cuMemAllocFromPoolAsync(&p, LEN, pool, stream), 0);
    return p;
}

static void pools_order_what_they_hand_on(void **state)
{
    fl_CUmemoryPool pool = pool_new();
    void *a = gpu_stream(), *b = gpu_stream();
    fl_CUdeviceptr p, q;

    (void)state;
    fake->schedule(FAKE_CUDA_LATE, 0);
    p = from_pool(pool, a);
    gpu_fill(a, p, LEN, 1);
    assert_int_equal(fl_cuda.cuMemFreeAsync(p, a), 0);
    q = from_pool(pool, b);
    assert_int_equal(q, p);
    gpu_fill(b, q, LEN, 2);
    assert_int_equal(fake->races(), 0);
    assert_true(gpu_holds(b, q, LEN, 2));
    gpu_fill(a, q, LEN, 3);
    assert_int_equal(fl_cuda.cuMemFreeAsync(q, b), 0); /* amid what the other does with it */
    assert_int_equal(fake->races(), 1);
    assert_int_equal(gpu_calls.cuMemsetD8Async(q, 1, LEN, b), FL_CUDA_ERROR_INVALID_VALUE);
    gpu_wait(b);
    assert_int_equal(fl_cuda.cuMemPoolTrimTo(pool, 0), 0);
    assert_int_equal(fake->used(0), 0);
    assert_int_equal(fl_cuda.cuMemPoolDestroy(pool), 0);
    reported(1, 1);
}

static void a_batch_is_its_copies(void **state)
{
    static _Alignas(4096) unsigned char from[2 * LEN];
    fl_CUdeviceptr p = take(2 * (size_t)LEN), to[2] = {p, p + LEN},
                   source[2] = {(uintptr_t)from, (uintptr_t)from + LEN};
    size_t len[2] = {LEN, LEN}, index = 0, failed;
    struct fl_CUmemcpyAttributes attribute = {.srcAccessOrder =
                                                  FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    void *s = gpu_stream();

    (void)state;
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

static void devices_are_apart(void **state)
{
    struct fl_gpu *other;
    struct fl_gpu_guard guard;
    uint64_t here = take(LEN), there;

    (void)state;
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gpu_each, gpu_end)
    const struct CMUnitTest tests[] = {
        TEST(contexts_and_handles_are_looked_at),
        TEST(capture_forbids_what_it_forbids),
        TEST(a_child_is_told_apart),
        TEST(calls_have_versions),
        TEST(maps_grow_and_are_looked_at),
        TEST(pools_order_what_they_hand_on),
        TEST(a_batch_is_its_copies),
        TEST(devices_are_apart),
    };

    gpu_main("test_gpu_fake_more", NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
