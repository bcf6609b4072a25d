/* What the measures of bench/gpu share: the driver's calls, a device, a clock, rows of the
 * table. */
#ifndef FL_BENCH_GPU_BENCH_H
#define FL_BENCH_GPU_BENCH_H

#include "faultless/gpu.h"
#include "gpu/driver/cuda_abi.h"
#include "gpu/fake_cuda.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)
#define GIB(n) ((size_t)(n) << 30)

/* What the pools are compared with, beside the calls that they make. */
#define BENCH_CALLS(X)                                                                             \
    X(OPTIONAL, cuMemAllocAsync, "", 11020,                                                        \
      (fl_CUdeviceptr * address, size_t len, fl_CUstream stream))                                  \
    X(OPTIONAL, cuMemFreeAsync, "", 11020, (fl_CUdeviceptr address, fl_CUstream stream))

/* The driver, past the library; what it lacks is NULL. */
struct cuda {
#define X(need, name, suffix, version, parameters) fl_CUresult(*name) parameters;
    FL_CUDA_CALLS(X)
    BENCH_CALLS(X)
#undef X
};
extern struct cuda cu;
extern void *cu_library;
extern const struct fake_cuda *fake; /* NULL: a machine's driver */
extern struct fl_gpu *gpu;
extern bool smoke, cpu; /* smoke: small and once, what comes out means nothing; cpu: no device */

/* Finds the driver and opens device 0, its context current for this thread. Ends the program with
 * 77 when there is none. */
void cu_start(void);
/* Ends the program when `code` is not 0. */
_Noreturn void failed(const char *what, int code);
static inline void cu_ok(fl_CUresult code, const char *what)
{
    if (code != FL_CUDA_SUCCESS) {
        failed(what, code);
    }
}
static inline void fl_ok(int rc, const char *what)
{
    if (rc != 0) {
        failed(what, rc);
    }
}
fl_CUstream cu_stream(void);

double now_ns(void);
/* The median of calls of `fn`, each of which says how many ns it took, after one that does not
 * count: 20, or as many as 0.3 s have room for, but 3. One in a smoke run. */
double median_of(double (*fn)(void *arg), void *arg);

/* A row: `ours` against `theirs`, in `unit`; `ratio` is what the bar is about; bar NULL: none. */
enum bar { AT_MOST, AT_LEAST };
void row(const char *number, const char *measure, double ours, const char *against, double theirs,
         const char *unit);
/* The row before has this bar: `value` at most or at least `limit`. */
void bar(const char *of, double value, enum bar kind, double limit);

/* What large measures take: 8 GiB, or a quarter of what the host has available (64 MiB where /proc
 * does not say) or the device. 16 MiB in a smoke run. */
size_t memory_room(void);
/* Host memory, populated by threads. Base pages, or huge ones where the kernel gives them. */
void *host_pages(size_t len, bool huge);
void host_end(void *p, size_t len);
/* `fn` in SHARES threads, each with its own part of the range; all of them have ended. */
enum { SHARES = 8 };
struct share {
    char *from;
    size_t len;
};
void in_shares(void *p, size_t len, void *(*fn)(void *share_of_it));

void bench_pools(void); /* against the driver's own where there is a device */
void bench_inputs(void);
void bench_copies(void);
void bench_fork(void);
void bench_memory(void);

#endif
