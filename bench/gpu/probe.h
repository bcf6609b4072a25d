/* What the probes of bench/gpu share: the driver's calls, a context, one line of JSON an answer.
 *
 * A probe asks a driver what its documents leave open. Each runs in a process of its own with a
 * time limit, so that one which crashes or hangs costs its own answer alone. gpu_probe needs libc
 * and nothing else: neither libfaultless.so nor a toolkit. */
#ifndef FL_BENCH_GPU_PROBE_H
#define FL_BENCH_GPU_PROBE_H

#include "gpu/driver/cuda_abi.h"
#include "gpu/fake_cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

#ifndef FL_CUDA_ABI_TYPES /* tests/gpu/abi_calls.c has the driver's own */
typedef struct CUgraph_st *probe_CUgraph;
#endif

/* Calls that the library has no use for: X(name, suffix, parameters). */
#define PROBE_CALLS(X)                                                                             \
    X(cuCtxSetCurrent, "", (fl_CUcontext context))                                                 \
    X(cuDriverGetVersion, "", (int *version))                                                      \
    X(cuDeviceGetName, "", (char *name, int len, fl_CUdevice device))                              \
    X(cuStreamQuery, "", (fl_CUstream stream))                                                     \
    X(cuStreamBeginCapture, "_v2", (fl_CUstream stream, fl_CUstreamCaptureMode mode))              \
    X(cuStreamEndCapture, "", (fl_CUstream stream, probe_CUgraph * graph))                         \
    X(cuGraphDestroy, "", (probe_CUgraph graph))                                                   \
    X(cuMemsetD8Async, "",                                                                         \
      (fl_CUdeviceptr address, unsigned char value, size_t len, fl_CUstream stream))               \
    X(cuMemcpyDtoDAsync, "_v2",                                                                    \
      (fl_CUdeviceptr to, fl_CUdeviceptr from, size_t len, fl_CUstream stream))

/* What the driver lacks is NULL; a probe that needs it says 500, as the driver would. */
struct probe_calls {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name and its parameters, to be declared */
#define X(need, name, suffix, version, parameters) fl_CUresult(*name) parameters;
    FL_CUDA_CALLS(X)
#undef X
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name and its parameters, to be declared */
#define X(name, suffix, parameters) fl_CUresult(*name) parameters;
    PROBE_CALLS(X)
#undef X
};
extern struct probe_calls cu;
extern void *cu_library;
extern const struct fake_cuda *fake; /* NULL: a machine's driver */
extern _Atomic size_t *broken;       /* promises that were not kept, by all processes */
extern bool smoke;                   /* small and short */

/* A call, or 500 where the driver has none. */
#define CALL(name, ...) (cu.name != NULL ? cu.name(__VA_ARGS__) : FL_CUDA_ERROR_NOT_FOUND)

struct probe {
    const char *name;
    void (*run)(int variant);
    int variant;
    bool joined; /* may share its process with the joined one before it, for a context takes long */
};
/* One file each. */
extern const struct probe probes_of_driver[], probes_of_memory[], probes_of_streams[],
    probes_of_captures[], probes_of_pinned[], probes_of_costs[];

/* Prints {"kind":"fact","section":"probes","name":NAME,FIELDS}: FIELDS as printf, already JSON. */
void fact(const char *name, const char *fields, ...) __attribute__((format(printf, 2, 3)));
/* Prints {"kind":"test",...}: the pools rest on it, so that gpu_probe's status is 1 if it is not
 * `kept`. */
void promise(const char *name, bool kept, const char *text);
/* Ends this probe's process, with a line that says which preparation failed. */
void need(fl_CUresult code, const char *what);

/* Device 0's primary context is current for the calling thread from here on. */
void probe_context(void);
fl_CUstream probe_stream(unsigned flags);
fl_CUdeviceptr probe_device(size_t len);
/* Keeps the stream busy for 50 ms, by a kernel. On the fake driver: what follows stays queued. */
fl_CUresult probe_hold(fl_CUstream stream);
/* Populated host memory of huge pages, where the kernel gives them; each byte is `value`. */
unsigned char *probe_pages(size_t len, unsigned char value);
/* How many of the device's bytes are `value`, by a copy of them all. */
size_t probe_count(fl_CUdeviceptr from, size_t len, unsigned char value);
double probe_ns(void);

#endif
