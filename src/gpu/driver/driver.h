/* The driver's table, devices, and what failed last. The room's header.
 *
 * State: fl_cuda, filled once under a once-flag and constant afterwards; the error text is
 * thread-local. */
#ifndef FL_GPU_DRIVER_DRIVER_H
#define FL_GPU_DRIVER_DRIVER_H

#include "gpu/driver/cuda_abi.h"
#include "gpu/gpu.h"

/* What fl_gpu_start was given. Constant once the first fl_gpu_ call is made. */
struct fl_gpu_host {
    struct fl_region *region;         /* NULL: the process is not served */
    const struct fl_options *options; /* NULL: the defaults */
};
extern FL_HIDDEN struct fl_gpu_host fl_gpu_host;

/* options.c: what the environment says of pools and mirrors, as the option table has it; before
 * boot (tests of one file) the table's defaults. An option's value. */
uint64_t fl_gpu_option(enum fl_option_id id);
/* This process's part of FAULTLESS_GPU_LIMIT; 0: none. */
size_t fl_gpu_option_device_limit(void);

/* Optional calls that this driver lacks are NULL. */
struct fl_cuda {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a name and its parameters, to be declared */
#define X(need, name, suffix, version, parameters) fl_CUresult(*name) parameters;
    FL_CUDA_CALLS(X)
#undef X
};
extern FL_HIDDEN struct fl_cuda fl_cuda;

/* Opens the driver, once a process. 0; -ENODEV with fl_gpu_error's text: absent, a stub, too old,
 * no device; -ECHILD. FAULTLESS_GPU_DRIVER names another file than libcuda.so.1; ignored under
 * AT_SECURE. A failure is final.
 * Threads: any. */
int fl_cuda_open(void);
/* Where pinned memory lies; NULL: the process is not served. The region starts with the first large
 * request, or here. */
struct fl_region *fl_gpu_region(void);
/* The driver's code as a status of ours: 0, -ENOMEM, -EINVAL, -ESHUTDOWN, -EINPROGRESS, -ENOTSUP,
 * -ENODEV, -EIO. What is not 0 is kept as the thread's last error: `call` ("cuMemAlloc") and
 * `bytes` (0: not said). */
int fl_cuda_status(fl_CUresult code, const char *call, size_t bytes);
/* An error of our own, said as such. Returns `status`. */
int fl_gpu_fail(int status, const char *text);

/* One a device and context. */
struct fl_gpu {
    struct fl_gpu *next;
    fl_CUcontext context;
    fl_CUdevice device;
    int ordinal, node; /* node: of the host's memory next to it; -1: unknown */
    size_t total;      /* bytes of device memory */
    bool primary;      /* the context was retained, not the caller's */
    bool has_batch;
    unsigned opens;         /* Lock: the list's */
    _Atomic unsigned users; /* pools and mirrors */
};

/* As fl_gpu_open, but in the device's primary context whatever is current. */
int fl_gpu_open_primary(int device, struct fl_gpu **out);

enum { FL_GPU_DEVICES = 64 }; /* of which accounts and statistics are kept */
/* account.c: of the device's memory, by pools and mirrors together. Each joins, with the most that
 * it wants all of them to hold (0: any), of which the least counts until all have left. Lock: none
 * held. */
void fl_gpu_account_join(const struct fl_gpu *gpu, size_t limit);
void fl_gpu_account_leave(const struct fl_gpu *gpu);
/* What the driver takes for `len` bytes of the device: from 1 MiB on whole pages of 2 MiB. */
size_t fl_gpu_cost(size_t len);
/* A limit beside those, until the next one: what a library's user says. */
void fl_gpu_account_bound(const struct fl_gpu *gpu, size_t limit);
/* Before the driver is asked; -ENOMEM: the limit. What it refuses, and what goes back, is given. */
int fl_gpu_account_take(const struct fl_gpu *gpu, size_t len);
void fl_gpu_account_give(const struct fl_gpu *gpu, size_t len);
/* Held now, at most so far, and the limit (0: none). False, with `soon`: not to be had at once. */
bool fl_gpu_account_read(int device, bool soon, struct fl_stats_gpu *out);
/* The most bytes that account_take lets through now; SIZE_MAX: there is no limit. */
size_t fl_gpu_account_room(const struct fl_gpu *gpu);

/* Makes the device's context current for the calling thread, and puts back what was. -ECHILD,
 * -ESHUTDOWN, -EIO: nothing is to be called. Meanwhile the thread's capture mode is relaxed: what
 * we ask the driver for belongs to no graph that is captured on another stream, and must not
 * end its capture. What waits for the whole context does so even then.
 * Cost: a driver call, two more for the capture mode, two more unless the context is current
 * already. */
struct fl_gpu_guard {
    bool pushed, relaxed;
    fl_CUstreamCaptureMode mode; /* when relaxed: the thread's own */
};
int fl_gpu_enter(const struct fl_gpu *gpu, struct fl_gpu_guard *g);
/* The context alone, for calls that no capture minds; and the rest. fl_gpu_leave undoes both. */
int fl_gpu_make_current(const struct fl_gpu *gpu, struct fl_gpu_guard *g);
void fl_gpu_relax(struct fl_gpu_guard *g);
void fl_gpu_leave(struct fl_gpu_guard *g);
/* True in a fork's child of the process that opened it. One load. */
bool fl_gpu_is_forked(void);

#endif
