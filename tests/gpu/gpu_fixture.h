/* A device for tests: the fake one, or, where FAULTLESS_GPU_DRIVER does not name it, the machine's.
 *
 * A main of such a test begins with gpu_main(), which starts the folder as boot would and ends the
 * program with 77 when there is no device. What only the fake can say is asked of `fake`, which is
 * NULL on a machine's driver. */
#ifndef FL_TESTS_GPU_FIXTURE_H
#define FL_TESTS_GPU_FIXTURE_H

#include "cases.h"
#include "gpu/driver/driver.h"
#include "gpu/fake_cuda.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define GIB(n) ((size_t)(n) << 30)

/* Calls of the driver's that tests make and the product does not: X(name, suffix, parameters). */
#define GPU_TEST_CALLS(X)                                                                          \
    X(cuCtxSetCurrent, "", (fl_CUcontext context))                                                 \
    X(cuMemsetD8Async, "",                                                                         \
      (fl_CUdeviceptr address, unsigned char value, size_t count, fl_CUstream stream))             \
    X(cuMemcpyDtoDAsync, "_v2",                                                                    \
      (fl_CUdeviceptr to, fl_CUdeviceptr from, size_t len, fl_CUstream stream))

struct gpu_calls {
#define X(name, suffix, parameters) fl_CUresult(*name) parameters;
    GPU_TEST_CALLS(X)
#undef X
};

extern const struct fake_cuda *fake;
extern struct gpu_calls gpu_calls;
extern struct fl_gpu *gpu;            /* device 0, from gpu_each to gpu_end */
extern struct fl_options gpu_options; /* what fl_gpu_start was given: from the environment */

/* Before anything else in main. `region` may be NULL. */
void gpu_main(const char *test, struct fl_region *region);
/* For who has something to do before gpu_main opens anything: `fake` is there, fl_gpu_start was
 * called by the caller. */
void gpu_find_fake(void);
/* Around each case: a fresh fake in the mode that FAKE_CUDA says, device 0 open with its context
 * current for this thread. The end fails when the fake has something to report. */
void gpu_each(void);
void gpu_end(void);
#define GPU_CASES .setup = gpu_each, .teardown = gpu_end
#define GPU_MAIN(name)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        gpu_main(name, NULL);                                                                      \
        return RUN_CASES(GPU_CASES);                                                               \
    }
/* Around all cases, and after each: where what stays for the process's life has one fake, which is
 * late, serve them all. */
void gpu_all_late(void);
void gpu_nothing_reported(void);
/* The same test in each schedule: eager, late, and random with several seeds; once on a device.
 * `body` begins with a fresh fake. */
void gpu_schedules(void (*body)(void));
/* In each schedule. */
#define GPU_SCHEDULED(name)                                                                        \
    static void name(void);                                                                        \
    CASE(name##_in_each_schedule)                                                                  \
    {                                                                                              \
        gpu_schedules(name);                                                                       \
    }                                                                                              \
    static void name(void)
/* Skipped on a device. */
#define GPU_FAKE_TEST(name)                                                                        \
    static void name(void);                                                                        \
    CASE(name##_on_the_fake)                                                                       \
    {                                                                                              \
        if (fake == NULL) {                                                                        \
            skip();                                                                                \
        }                                                                                          \
        name();                                                                                    \
    }                                                                                              \
    static void name(void)

/* Streams that do not synchronise with the legacy one. What a test leaves gpu_end ends. */
void *gpu_stream(void);
void gpu_stream_end(void *stream);
/* The stream is busy: what is submitted from now on does not begin at once. On a device a kernel
 * that spins for 50 ms; on the fake, when it is late, nothing is needed. */
void gpu_hold(void *stream);
/* Submits a write of `value` to the range, and a copy within the device. */
void gpu_fill(void *stream, uint64_t address, size_t len, unsigned char value);
void gpu_copy(void *stream, uint64_t to, uint64_t from, size_t len);
/* Waits for all streams. */
void gpu_wait_all(void);
/* Waits for the stream. */
void gpu_wait(void *stream);
/* Waits for `stream`, then: each byte of the range is `value`. */
bool gpu_holds(void *stream, uint64_t address, size_t len, unsigned char value);
/* Calls of the driver so far; on a device 0. */
uint64_t gpu_driver_calls(void);

#endif
