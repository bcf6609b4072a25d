/* SPDX-License-Identifier: Apache-2.0 */
/* faultless on GPUs: pools of device and of pinned memory, and a mirror of a step's layout.
 *
 * Everything here is explicit: a process that calls none of it opens nothing and loads no driver.
 * The CUDA driver (libcuda.so.1) is looked for at the first fl_gpu_open; without one, or without a
 * device, that says -ENODEV and nothing else changes.
 *
 * Streams are `void *`: a CUstream or a cudaStream_t, which are the same; NULL is the legacy
 * stream. Device addresses are numbers, so that they are not dereferenced. Sizes are bytes.
 *
 * Status is 0 or -errno, the same everywhere:
 *   -ENODEV     no driver, no device, or a driver that cannot be used
 *   -EINVAL     a bad argument
 *   -ENOMEM     neither the pool nor the driver has it
 *   -ENOENT     not an address of this pool, or freed already
 *   -EBUSY      in use: what must be idle for this is not
 *   -ESTALE     the plan of the mirror has another arena, or has outgrown it: make another mirror
 *   -EINPROGRESS  the stream is being captured into a graph, and this would need the driver. What a
 * graph uses is freed when the graph has
 *               been destroyed. Other streams' requests go on meanwhile; what waits for the whole
 * device is refused
 *   -ECHILD     a fork's child: the parent's devices are not its own
 *   -ESHUTDOWN  the driver, or its context, has gone
 *   -ENOTSUP    this driver or device cannot
 *   -EIO        the driver failed otherwise; fl_gpu_error says how */
#ifndef FAULTLESS_GPU_H
#define FAULTLESS_GPU_H

#include "faultless.h"

#include <stdbool.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fl_gpu;
struct fl_gpu_pool;
struct fl_gpu_mirror;
struct fl_gpu_slot;

/* Device `device` (the driver's number), in the calling thread's current context if that is one of
 * this device, else its primary context. `*out` is the same handle for the same device and context
 * until the last fl_gpu_close. -ENODEV never prints.
 * Threads: any.  Signals: not safe.  Fork: a child's calls say -ECHILD. */
FL_API int fl_gpu_open(int device, struct fl_gpu **out);
FL_API int fl_gpu_close(struct fl_gpu *gpu); /* -EBUSY while a pool or a mirror of it is there */
/* What the calling thread's last failed call met: "cuMemAlloc of 4096 bytes:
 * CUDA_ERROR_OUT_OF_MEMORY (2)"; "" when none failed. Why there is no device, after -ENODEV.
 * Threads: any; the text is the thread's own until its next fl_gpu_ call. */
FL_API const char *fl_gpu_error(void);

enum fl_gpu_strategy {
    FL_GPU_AUTO,           /* auto_growth; pinned: naive_best_fit (PaddlePaddle's defaults) */
    FL_GPU_NAIVE,          /* MXNet's Naive: buckets of exactly rounded sizes */
    FL_GPU_ROUND,          /* MXNet's Round: powers of two, linear above the cutoff */
    FL_GPU_UNPOOLED,       /* the driver, each time */
    FL_GPU_NAIVE_BEST_FIT, /* PaddlePaddle's: one great chunk, split and merged */
    FL_GPU_AUTO_GROWTH,    /* PaddlePaddle's default: chunks as they are wanted */
};
enum fl_gpu_target { FL_GPU_DEVICE, FL_GPU_PINNED };

/* Fill it by fl_gpu_pool_defaults, then change what is to be different. A program that was built
 * with fewer members has the defaults for the others. */
struct fl_gpu_pool_options {
    size_t size; /* sizeof(struct fl_gpu_pool_options), set by the defaults */
    enum fl_gpu_strategy strategy;
    enum fl_gpu_target target;
    size_t page;              /* naive, round: sizes are multiples of this (4096; 32 at least) */
    size_t large_round;       /* naive: sizes above are multiples of this (2 MiB); 1: off */
    unsigned linear_cutoff;   /* round: log2 of the largest power of two (24; 20 to 34) */
    unsigned reserve_percent; /* naive, round: of the device's memory, left free (5) */
    double
        fraction; /* naive_best_fit: first chunk's part of what is available (0.92); 0: no pool */
    size_t initial,
        regrow; /* naive_best_fit: bytes of the first and of later chunks; 0: by the fraction */
    /* auto_growth: smallest chunk; 1: as large as the request; 0: 8 MiB, and for requests of up to
     * 64 KiB, which lie apart, 2 MiB. */
    size_t chunk;
    /* Most bytes of the device that the process's pools and mirrors hold together, of several such
     * the least; pinned: that this pool holds; 0: any. */
    size_t limit;
    /* Frees pile up to so many GiB and are then reclaimed together; 0: at once; below 0: never
     * unasked. */
    double gc_gb;
    double gc_fraction; /* of a batch, largest first (1.0) */
    bool gc_fast;       /* a batch is reclaimed by stream order, not when the kernels have ended */
    int numa_node;      /* pinned: -1 is the device's */
};

/* What the environment says (FAULTLESS_GPU_*, and MXNet's and PaddlePaddle's names: faultless(7)),
 * else the values above. */
FL_API void fl_gpu_pool_defaults(struct fl_gpu_pool_options *o, enum fl_gpu_target target);
FL_API int fl_gpu_pool_create(struct fl_gpu *gpu, const struct fl_gpu_pool_options *o,
                              struct fl_gpu_pool **out);
/* -EBUSY while something is allocated. Waits for the streams that freed. */
FL_API int fl_gpu_pool_destroy(struct fl_gpu_pool *pool);

/* A block that is allocated. */
struct fl_gpu_block {
    uint64_t size; /* set by the caller to sizeof(struct fl_gpu_block) */
    uint64_t address, bytes, requested_bytes;
    uint64_t base, base_bytes; /* of the driver's allocation that it lies in: cuIpcGetMemHandle's */
    int device;
    enum fl_gpu_target target;
};
/* The block that has `address`, its first byte or another. -ENOENT: none of the pool's that is
 * allocated.  Threads: any.  Cost: O(chunks + blocks of one), under the pool's lock. */
FL_API int fl_gpu_pool_find(struct fl_gpu_pool *pool, uint64_t address, struct fl_gpu_block *out);
/* The pool that has it, of all of the process's; `out` may be NULL. NULL: none has. Not of pools
 * that another thread ends meanwhile. */
FL_API struct fl_gpu_pool *fl_gpu_owner(uint64_t address, struct fl_gpu_block *out);

/* In place of a stream: the host alone. As the stream of a free it says that nothing which is
 * queued uses the block, but on streams recorded on it: any stream may have the block at once,
 * without a call of the driver. Frameworks whose frees of pinned memory name no stream mean this
 * (PyTorch's, MXNet's, PaddlePaddle's do). */
#define FL_GPU_HOST ((void *)-1)
/* `size` 0 is served as 1. What `stream` freed it may have again at once: it is in order after
 * that. On a stream that lasts a hit makes no driver call. For pinned pools `*out` is an address of
 * the host, which is in no stream's order: `stream` is not looked at, and a hit makes no driver
 * call.
 * Threads: any.  Signals: not safe.  Cost: O(1) or O(log free blocks). */
FL_API int fl_gpu_pool_alloc(struct fl_gpu_pool *pool, size_t size, void *stream, uint64_t *out);
/* What was submitted to `stream` so far may still use it; FL_GPU_HOST: nothing does. Driver calls:
 * none of FL_GPU_HOST, the legacy stream and streams that last; else four. Never waits, but where
 * memory goes back to the driver at once: unpooled, and what is too large for naive_best_fit.
 * -ENOENT: not the pool's, or freed already; what the driver says of a stream that it refuses: the
 * block is in use still. */
FL_API int fl_gpu_pool_free(struct fl_gpu_pool *pool, uint64_t address, void *stream);
/* An output of `size` bytes in the place of the input at `address`, which ends: 0 and the block
 * goes on, under the same address, when it is large enough and no other stream is recorded on it;
 * -EBUSY: allocate. */
FL_API int fl_gpu_pool_inplace(struct fl_gpu_pool *pool, uint64_t address, size_t size);
/* Another stream uses the block too: after its free it waits for what that stream has been given
 * until then. */
FL_API int fl_gpu_pool_record_stream(struct fl_gpu_pool *pool, uint64_t address, void *stream);
/* The stream lasts: it is destroyed, and its handle used again, only after
 * fl_gpu_pool_stream_retire or the pool's end, and nothing is freed on it while it is captured.
 * What it frees and has again then costs no driver call. Of the threads' own stream this is not to
 * be said; it says nothing. -EINPROGRESS: it is captured now. */
FL_API int fl_gpu_pool_stream_lasts(struct fl_gpu_pool *pool, void *stream);
/* Before a stream is destroyed that lasts, or that is recorded on a block which is not free yet. */
FL_API int fl_gpu_pool_stream_retire(struct fl_gpu_pool *pool, void *stream);
/* Whole chunks that are free go back until at most `keep` bytes are held free. Waits for
 * streams. */
FL_API int fl_gpu_pool_trim(struct fl_gpu_pool *pool, size_t keep, size_t *out_released);
/* Reclaims what has piled up now (gc_gb). */
FL_API int fl_gpu_pool_collect(struct fl_gpu_pool *pool);
struct fl_gpu_pool_stats {
    uint64_t size; /* set by the caller to sizeof(struct fl_gpu_pool_stats) */
    /* The four that MXNet's users asked for. Occupied and free are now, and add up to what is held
     * from the driver; served are so far, of rounded sizes: a request that made the pool grow
     * counts wholly as the API's. */
    uint64_t occupied_bytes, free_bytes, served_pool_bytes, served_api_bytes;
    uint64_t requested_bytes; /* now, before rounding */
    uint64_t occupied_peak_bytes, held_peak_bytes;
    uint64_t allocs, frees, hits, cross_stream_hits, waits, inplace;
    /* What the driver gave and took back; the time in these calls and in refused ones. */
    uint64_t driver_allocs, driver_frees, driver_ns;
    uint64_t implicit_syncs; /* driver calls that waited for the whole device */
    uint64_t events, event_queries;
    uint64_t gc_batches, gc_bytes, trims, retries, quarantined, capture_refusals;
};
FL_API int fl_gpu_pool_stats(struct fl_gpu_pool *pool, struct fl_gpu_pool_stats *out);
/* The two peaks are what is occupied and held now, and rise from there.  Threads: any. */
FL_API int fl_gpu_pool_reset_peaks(struct fl_gpu_pool *pool);

/* What the process has of one device by pools and mirrors together, those of other libraries' shims
 * too. Bytes, or counts so far where a name says no bytes; FAULTLESS_STATS has the same fields. */
struct fl_gpu_device_stats {
    uint64_t size; /* set by the caller to sizeof(struct fl_gpu_device_stats) */
    /* Of the driver's memory, in the whole pages that it gives; limit 0: none. */
    uint64_t held_bytes, held_peak_bytes, limit_bytes;
    uint64_t pools, occupied_bytes, free_bytes, requested_bytes; /* of device memory, now */
    /* Of these, and of those that have ended, as in struct fl_gpu_pool_stats. */
    uint64_t allocs, hits, driver_allocs, driver_ns, implicit_syncs;
    uint64_t pinned_pools, pinned_bytes;   /* now; bytes with mirrors */
    uint64_t mirrors, mirror_bytes;        /* now; bytes of the device */
    uint64_t copies, copied_bytes, stalls; /* of mirrors */
};
/* 0; -EINVAL: no such number, or size is not set. Of a device that was never used all are 0.
 * Threads: any. */
FL_API int fl_gpu_device_stats(int device, struct fl_gpu_device_stats *out);

/* Mirror: one range of host memory, pinned, and one of device memory, with the same offsets. */
struct fl_gpu_slot {
    size_t offset; /* out: from the start of the mirror; for inputs, of input slot 0 */
    size_t size;
    size_t align; /* a power of two; 0: 256 */
    bool input;   /* part of the zone that fl_gpu_mirror_push copies */
};
enum fl_gpu_fork {
    FL_GPU_FORK_NONE, /* children do not have the range */
    FL_GPU_FORK_WIPE, /* children read zeros there */
    FL_GPU_FORK_COPY, /* children get a copy, made during fork: seconds a GiB */
};
struct fl_gpu_mirror_options {
    size_t size; /* sizeof(struct fl_gpu_mirror_options) */
    /* The layout: a context's plan, whose arena becomes the host's side, so that what is malloc'ed
     * in its steps has a twin; or, when that is NULL, `count` blocks that are all there at the same
     * time. `numa_node` and `inputs` are no matter for a plan: it lies where it lies, and has two
     * slots. */
    struct fl_step_context *context;
    struct fl_gpu_slot *slot;
    size_t count;
    unsigned inputs;       /* slots of the input zone: 1 or 2 (2) */
    size_t coalesce_gap;   /* a gap that is cheaper to copy than to leave out (128 KiB) */
    int numa_node;         /* -1: the device's */
    unsigned threads;      /* that populate; 0: automatic */
    enum fl_gpu_fork fork; /* FAULTLESS_GPU_FORK */
};
FL_API void fl_gpu_mirror_defaults(struct fl_gpu_mirror_options *o);
/* From the next plan on the malloc'ed block at `block` is an input, in each step: it lies in the
 * zone that push copies, at one address in even steps and at another in odd ones. Cheap; once, or
 * in each step. -ENOENT: it is of no step that is learned or served; -EBUSY: of another
 * thread's. */
FL_API int fl_gpu_mirror_input(const void *block);
/* Without a device (`gpu` NULL), or where its driver refuses to register the range, the mirror has
 * its host side alone: twins are 0 and copies say -ENODEV. -ENODATA: the context has no plan yet,
 * or steps were switched off (fl_option_set);
 * -EBUSY: its plan has a mirror. A mirror's range is never malloc's own, unless it is a plan's
 * arena; nothing moves it, takes its pages or lends them to children.
 * Threads: one at a time for one mirror; ranges are copied by any.  Signals: not safe. */
FL_API int fl_gpu_mirror_create(struct fl_gpu *gpu, const struct fl_gpu_mirror_options *o,
                                struct fl_gpu_mirror **out);
/* Waits for its copies; kernels that use its memory have ended. */
FL_API int fl_gpu_mirror_destroy(struct fl_gpu_mirror *m);

/* What a twin is found by. `delta` is constant until fl_gpu_mirror_destroy. */
struct fl_gpu_mirror_map {
    uintptr_t host;
    size_t len;
    uint64_t delta; /* device address less host address; 0: no device */
};
FL_API const struct fl_gpu_mirror_map *fl_gpu_mirror_map(const struct fl_gpu_mirror *m);
/* The device's address for `p`; 0 when it is not in the mirror. */
static inline uint64_t fl_gpu_twin(const struct fl_gpu_mirror_map *map, const void *p)
{
    return (uintptr_t)p - map->host < map->len && map->delta != 0 ? (uintptr_t)p + map->delta : 0;
}

/* The next input slot is the caller's to write: waits until what was last copied from it or into it
 * has been. In a plan's mirror it is the slot of the step that is under way. */
FL_API int fl_gpu_mirror_begin(struct fl_gpu_mirror *m, void **out_base);
/* Copies the input zone of the slot that begin gave to the device, in as few copies as pay. In
 * order on `stream`. */
FL_API int fl_gpu_mirror_push(struct fl_gpu_mirror *m, void *stream);
FL_API int fl_gpu_mirror_push_range(struct fl_gpu_mirror *m, const void *host, size_t len,
                                    void *stream);
FL_API int fl_gpu_mirror_pull_range(struct fl_gpu_mirror *m, void *host, size_t len, void *stream);
/* Reads `len` bytes of `fd` at `offset` to `host`, in the mirror, and on to its twin: io_uring into
 * the registered memory, O_DIRECT where `fd` is open so, with no copy between; pread(2) where there
 * is no io_uring. Returns when the bytes are in host memory and the copies are in order on
 * `stream`. -ENODATA: the file ends before; -ENODEV: the bytes are in host memory, and there is no
 * device. The calling thread's next epoll_wait(2) may end with EINTR, though no handler ran: so
 * io_uring tells of its end. */
FL_API int fl_gpu_mirror_read(struct fl_gpu_mirror *m, int fd, uint64_t offset, void *host,
                              size_t len, void *stream);

struct fl_gpu_mirror_stats {
    uint64_t size; /* set by the caller to sizeof(struct fl_gpu_mirror_stats) */
    uint64_t copies,
        copied_bytes; /* to the device and from it, so far; a batch counts each of its own */
    uint64_t stalls, stall_ns; /* times that begin had to wait for a slot, and how long */
};
/* Threads: any. */
FL_API int fl_gpu_mirror_stats(struct fl_gpu_mirror *m, struct fl_gpu_mirror_stats *out);

/* PyTorch: torch.cuda.memory.CUDAPluggableAllocator("libfaultless.so.0", "fl_gpu_torch_alloc",
 * "fl_gpu_torch_free"), with a pool for each device, in its primary context, by
 * fl_gpu_pool_defaults. docs/gpu.md has how the others are set.  Threads: any. */
/* Without memory: what is idle goes back and it is tried again; then throws, as PyTorch
 * expects: c10::OutOfMemoryError where PyTorch exports it, else std::runtime_error, "CUDA out of
 * memory ...". In a process that has no C++ library NULL, and one line on standard error. */
FL_API void *fl_gpu_torch_alloc(ssize_t size, int device, void *stream);
/* `stream` is the one of the allocation, and need not be there any more. */
FL_API void fl_gpu_torch_free(void *p, ssize_t size, int device, void *stream);
/* Likewise for a torch.cuda.MemPool, whose segments PyTorch's own allocator divides: without memory
 * NULL, as that expects. A free gives it back to the driver, which waits for the device. */
FL_API void *fl_gpu_torch_segment_alloc(ssize_t size, int device, void *stream);
FL_API void fl_gpu_torch_segment_free(void *p, ssize_t size, int device, void *stream);
/* set_record_stream_fn: a tensor's record_stream. */
FL_API void fl_gpu_torch_record_stream(void *p, void *stream);
/* set_init_fn: looks for the driver, and says so once when there is none. */
FL_API void fl_gpu_torch_init(int devices);
/* set_memory_fraction_fn: torch.cuda.set_per_process_memory_fraction, of what the device has. It
 * holds for the process's pools and mirrors together, beside their limits. */
FL_API void fl_gpu_torch_memory_fraction(double fraction, int device);
/* set_base_alloc_fn: the driver's allocation that `p` lies in, and its bytes. */
FL_API void *fl_gpu_torch_base_alloc(void *p, size_t *size);
/* set_reset_fn: torch.cuda.empty_cache. */
FL_API void fl_gpu_torch_empty_cache(void);
/* set_begin_allocate_to_pool, set_end_allocate_to_pool_fn, set_release_pool: graph capture's
 * private pools. C++: a std::pair of integers, and a std::function<bool(cudaStream_t)> by value. */
struct fl_gpu_torch_id {
    unsigned long long first, second;
};
FL_API void fl_gpu_torch_begin_allocate_to_pool(int device, struct fl_gpu_torch_id id,
                                                const void *filter);
FL_API void fl_gpu_torch_end_allocate_to_pool(int device, struct fl_gpu_torch_id id);
FL_API void fl_gpu_torch_release_pool(int device, struct fl_gpu_torch_id id);

/* The strategy of PyTorch's pools, before the first is made (-EBUSY). FL_GPU_AUTO: the
 * environment's. */
FL_API int fl_gpu_torch_use(enum fl_gpu_strategy strategy);
/* The pool of PyTorch's tensors on `device`, which is made if it is not there: for
 * fl_gpu_pool_stats, fl_gpu_pool_trim, fl_gpu_pool_stream_retire. It stays. NULL: fl_gpu_error. */
FL_API struct fl_gpu_pool *fl_gpu_torch_pool(int device);

/* CuPy: cupy.cuda.CFunctionAllocator's pair. `pool` NULL: one for each device, in its primary
 * context, that gives out what was freed when the legacy stream is past the free, because CuPy
 * names no stream; else a pool of yours, on the legacy stream. Without memory NULL, which CuPy
 * looks at not: python/faultless/cupy.py does. Threads: any. */
FL_API void *fl_gpu_cupy_alloc(void *pool, size_t size, int device);
FL_API void fl_gpu_cupy_free(void *pool, void *address, int device);
FL_API struct fl_gpu_pool *fl_gpu_cupy_pool(int device); /* as fl_gpu_torch_pool */

#ifdef __cplusplus
}
#endif
#endif
