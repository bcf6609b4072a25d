#include "gpu/gpu_fixture.h"

#include "gpu/gpu_spin.h"

#include <dlfcn.h>
#include <pthread.h>

enum { STREAMS_MOST = 256 };

const struct fake_cuda *fake;
struct gpu_calls gpu_calls;
struct fl_gpu *gpu;
struct fl_options gpu_options;

/* On a device: those that gpu_end ends, made by any thread. The fake forgets its own. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static void *made[STREAMS_MOST];
static size_t nmade;

static void ok(fl_CUresult code, const char *what)
{
    if (code != FL_CUDA_SUCCESS) {
        fail_msg("%s says %d", what, code);
    }
}

static void *library(void)
{
    const char *path = gpu_options.text[FL_OPTION_gpu_driver];

    return dlopen(path == NULL ? "libcuda.so.1" : path, RTLD_NOW | RTLD_LOCAL);
}

void gpu_find_fake(void)
{
    void *from = library();

    if (from == NULL) {
        return;
    }

#define X(name, suffix, parameters)                                                                \
    do {                                                                                           \
        void *found = dlsym(from, #name suffix);                                                   \
        memcpy(&gpu_calls.name, &found, sizeof found);                                             \
    } while (0);
    GPU_TEST_CALLS(X)
#undef X
    fake = dlsym(from, "fake_cuda");
}

void gpu_main(const char *test, struct fl_region *region)
{
    struct fl_gpu *first;

    fl_sys_boot();
    fl_options_read(&gpu_options, environ);
    fl_gpu_start(region, &gpu_options);
    gpu_find_fake();
    if (fake != NULL) {
        fake->reset(false);
    }
    int rc = fl_gpu_open(0, &first);
    if (rc == -ENODEV) {
        printf("SKIP %s: needs a CUDA device, got: %s\n", test, fl_gpu_error());
        exit(77);
    }
    if (rc != 0) {
        printf("%s: fl_gpu_open says %d: %s\n", test, rc, fl_gpu_error());
        exit(1);
    }
    if (fake == NULL) { /* making it anew for each test would take longer than the tests */
        fl_CUcontext kept;
        (void)fl_cuda.cuDevicePrimaryCtxRetain(&kept, 0);
    }
    (void)fl_gpu_close(first);
}

void gpu_each(void)
{
    if (fake != NULL) {
        fake->reset(true);
    }
    if (fl_gpu_open(0, &gpu) != 0) {
        fail_msg("fl_gpu_open: %s", fl_gpu_error());
    }
    ok(gpu_calls.cuCtxSetCurrent(gpu->context), "cuCtxSetCurrent");
}

void gpu_nothing_reported(void)
{
    assert_string_equal(fake != NULL ? fake->report() : "", "");
}

void gpu_end(void)
{
    int rc = 0;

    while (nmade > 0) {
        gpu_stream_end(made[nmade - 1]);
    }
    if (gpu != NULL) {
        rc = fl_gpu_close(gpu);
    }
    (void)gpu_calls.cuCtxSetCurrent(NULL);
    gpu = NULL;
    gpu_nothing_reported();
    assert_int_equal(rc, 0);
}

void gpu_all_late(void)
{
    gpu_each();
    if (fake != NULL) {
        fake->schedule(FAKE_CUDA_LATE, 0);
    }
}

void gpu_schedules(void (*body)(void))
{
    static const struct {
        enum fake_cuda_mode mode;
        uint64_t seed;
    } schedules[] = {
        {FAKE_CUDA_EAGER, 0},  {FAKE_CUDA_LATE, 0},   {FAKE_CUDA_RANDOM, 1},
        {FAKE_CUDA_RANDOM, 2}, {FAKE_CUDA_RANDOM, 3}, {FAKE_CUDA_RANDOM, 4},
    };
    size_t n = fake == NULL ? 1 : sizeof schedules / sizeof schedules[0];

    for (size_t i = 0; i < n; i++) {
        if (fake != NULL) {
            fake->reset(true);
            fake->schedule(schedules[i].mode, schedules[i].seed);
        }
        body();
        if (fake != NULL && fake->report()[0] != '\0') {
            fail_msg("schedule %zu: %s", i, fake->report());
        }
    }
}

void *gpu_stream(void)
{
    fl_CUstream s = NULL;

    ok(fl_cuda.cuStreamCreate(&s, FL_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    if (fake == NULL) {
        pthread_mutex_lock(&making);
        assert_true(nmade < STREAMS_MOST);
        made[nmade++] = s;
        pthread_mutex_unlock(&making);
    }
    return s;
}

void gpu_stream_end(void *s)
{
    pthread_mutex_lock(&making);
    for (size_t i = 0; i < nmade; i++) {
        if (made[i] == s) {
            made[i] = made[--nmade];
        }
    }
    pthread_mutex_unlock(&making);
    ok(fl_cuda.cuStreamDestroy(s), "cuStreamDestroy");
}

void gpu_hold(void *stream)
{
    if (fake == NULL) {
        ok(gpu_spin(library(), stream, 50), "a kernel that spins");
    }
}

void gpu_fill(void *stream, uint64_t address, size_t len, unsigned char value)
{
    ok(gpu_calls.cuMemsetD8Async(address, value, len, stream), "cuMemsetD8Async");
}

void gpu_copy(void *stream, uint64_t to, uint64_t from, size_t len)
{
    ok(gpu_calls.cuMemcpyDtoDAsync(to, from, len, stream), "cuMemcpyDtoDAsync");
}

void gpu_wait(void *stream)
{
    ok(fl_cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

void gpu_wait_all(void)
{
    ok(fl_cuda.cuCtxSynchronize(), "cuCtxSynchronize");
}

bool gpu_holds(void *stream, uint64_t address, size_t len, unsigned char value)
{
    unsigned char *back = malloc(len);
    bool all = back != NULL;

    gpu_wait(stream);
    ok(fl_cuda.cuMemcpyDtoHAsync(back, address, len, stream), "cuMemcpyDtoHAsync");
    gpu_wait(stream);
    for (size_t i = 0; all && i < len; i++) {
        all = back[i] == value;
    }
    free(back);
    return all;
}

uint64_t gpu_driver_calls(void)
{
    return fake == NULL ? 0 : fake->calls(NULL);
}
