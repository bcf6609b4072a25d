/* The fake driver's own parts, one file each:
 *   fake.c    what every call goes through: counting, failing, re-entering, the lock; the settings;
 *             control.c the table for tests
 *   device.c  cuInit, devices, contexts, how calls are found
 *   order.c   clocks, and what nothing orders
 *   stream.c  streams, what is queued and when it runs; event.c  events; capture.c  capture
 *   copy.c    what is submitted: copies, fills, kernels
 *   memory.c  device memory
 *   host.c    pinned memory and its pages
 * One lock for everything: held from fake_enter to fake_leave. */
#ifndef FL_TESTS_GPU_FAKE_INTERNAL_H
#define FL_TESTS_GPU_FAKE_INTERNAL_H

#include "gpu/driver/cuda_abi.h"
#include "gpu/fake_cuda.h"

#include <pthread.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* Each call under the name that it has in a driver; in here it is fake_NAME. */
#define X(need, name, suffix, version, parameters)                                                 \
    FAKE_EXPORT fl_CUresult fake_##name parameters __asm__(#name suffix);
FL_CUDA_CALLS(X)
#undef X
/* Those that tests alone use: X(name, suffix, version, parameters). */
#define FAKE_MORE_CALLS(X)                                                                         \
    X(cuDriverGetVersion, "", 2020, (int *version))                                                \
    X(cuCtxSetCurrent, "", 4000, (fl_CUcontext context))                                           \
    X(cuMemsetD8Async, "", 3020,                                                                   \
      (fl_CUdeviceptr address, unsigned char value, size_t count, fl_CUstream stream))             \
    X(cuMemcpyDtoDAsync, "_v2", 3020,                                                              \
      (fl_CUdeviceptr to, fl_CUdeviceptr from, size_t len, fl_CUstream stream))                    \
    X(cuMemAllocAsync, "", 11020, (fl_CUdeviceptr * address, size_t len, fl_CUstream stream))      \
    X(cuMemFreeAsync, "", 11020, (fl_CUdeviceptr address, fl_CUstream stream))                     \
    X(cuStreamQuery, "", 2000, (fl_CUstream stream))
#define X(name, suffix, version, parameters)                                                       \
    FAKE_EXPORT fl_CUresult fake_##name parameters __asm__(#name suffix);
FAKE_MORE_CALLS(X)
#undef X

/* Lets a call in. 0: the lock is held, and fake_leave is to give it back; else what the call says,
 * and it is not. */
enum fake_need {
    FAKE_ALWAYS = 1,  /* no driver needs to be there: cuInit and its like */
    FAKE_CONTEXT = 2, /* a context is current */
    /* "Potentially unsafe" in cuda.h: captures under way and the thread's mode may forbid it. */
    FAKE_NO_CAPTURE = 4,
    /* Forbidden while a stream of the context is captured, in every mode. */
    FAKE_WHOLE_CONTEXT = 8,
};
fl_CUresult fake_enter(const char *name, unsigned needs);
fl_CUresult fake_leave(fl_CUresult code);
#define FAKE_ENTER(name, needs)                                                                    \
    do {                                                                                           \
        fl_CUresult refusal = fake_enter(#name, needs);                                            \
        if (refusal != FL_CUDA_SUCCESS) {                                                          \
            return refusal;                                                                        \
        }                                                                                          \
    } while (0)
/* Within a call: it says `code` if that is so. */
#define FAKE_REFUSE(is_so, code)                                                                   \
    do {                                                                                           \
        if (is_so) {                                                                               \
            return fake_leave(code);                                                               \
        }                                                                                          \
    } while (0)
/* A whole call: it says `code`, and does `...` before. */
#define FAKE_CALL(name, needs, parameters, code, ...)                                              \
    fl_CUresult fake_##name parameters                                                             \
    {                                                                                              \
        FAKE_ENTER(name, needs);                                                                   \
        __VA_ARGS__;                                                                               \
        return fake_leave(code);                                                                   \
    }
const char *fake_call_now(void); /* the name of the call that this thread is in */

struct fake_figures {
    uint64_t implicit_syncs, pageable_copies, copies;
    size_t registered;
    unsigned races, violations, live;
    char report[256];
};
extern struct fake_figures fake_figures;
extern uint64_t fake_setting[FAKE_CUDA_SETTINGS];
void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fake_race(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *fake_zalloc(size_t size);
uint64_t fake_random(void);
/* For control.c. The lock is not held but in fake_refused. */
void fake_lock(void);
void fake_unlock(void);
void fake_reset(bool keep_contexts);
void fake_schedule_from(enum fake_cuda_mode mode, uint64_t seed);
void fake_refuse(const char *name, unsigned nth, int code, bool for_ever);
bool fake_refused(void);
void fake_amid(const char *name, void (*fn)(void *arg), void *arg);
uint64_t fake_calls(const char *name);

/* device.c */
struct fake_context {
    int device;
    bool alive;
    unsigned retains;
};
struct fake_context *fake_context_now(void); /* NULL: none */
void fake_device_reset(bool keep_contexts);
fl_CUresult fake_init(void);
unsigned fake_retained(int device);
void *fake_context_new(int device);
void fake_context_end(void *context);
void fake_hide(const char *name);

/* order.c. Component 0 of a clock is the host; each stream that ever was has its own. An access is
 * the component that made it and that component's time: it comes before each that has that time, or
 * a later one, in its clock. */
enum { FAKE_COMPONENTS = 512, FAKE_HOST = 0 };
struct fake_clock {
    uint32_t at[FAKE_COMPONENTS];
};
extern struct fake_clock fake_host;
void fake_clock_join(struct fake_clock *to, const struct fake_clock *from);
unsigned fake_component_new(void); /* 0: there are no more */
/* What component `who`, with the clock `now`, does to the bytes: compared with what others did, and
 * kept. The host's is not kept: what is submitted later comes after it. */
void fake_access(unsigned who, const struct fake_clock *now, uint64_t lo, size_t len, bool write);
/* In no block: the bytes are another's now (freed when nothing can be at them). */
void fake_access_forget(uint64_t lo, size_t len);
void fake_order_reset(void);

/* event.c */
void fake_event_reset(void);

/* stream.c */
enum { FAKE_OP_MARK, FAKE_OP_COPY, FAKE_OP_FILL };
struct fake_wait {
    struct fake_stream *stream;
    uint64_t seq;
    struct fake_wait *next;
};
struct fake_op {
    struct fake_op *next;
    uint64_t seq;
    struct fake_wait *waits;
    int kind;
    uint64_t to, from; /* addresses of either side */
    bool to_device, from_device;
    bool holds; /* runs when a thread waits for it, and not before */
    size_t len;
    void *snapshot; /* a copy's source, when that was pageable */
    unsigned char value;
};
struct fake_stream {
    struct fake_stream *next; /* of all that ever were */
    struct fake_context *context;
    uint64_t id, tail,
        done; /* tail: sequence number of the last operation queued; done: of the last that ran */
    struct fake_op *first, *last;
    struct fake_clock clock;
    unsigned component;
    unsigned thread; /* whose own it is; 0: no thread's */
    bool alive, blocking, legacy, capturing;
    fl_CUstreamCaptureMode capture_mode; /* then: as it was begun */
    pthread_t capture_thread;            /* and by whom */
};
/* NULL when there is none of that handle; its context is checked. */
struct fake_stream *fake_stream_of(fl_CUstream handle);
struct fake_stream *fake_streams(void); /* all that ever were, by `next` */
/* Of a handle that is no stream any more: undefined in cuda.h; drivers crash, or say this. */
enum { FAKE_DEAD = FL_CUDA_ERROR_CONTEXT_IS_DESTROYED };
/* Of any context, for calls that take such. */
struct fake_stream *fake_stream_anywhere(fl_CUstream handle);
/* The legacy stream, while a blocking stream of its context is captured: a violation. */
bool fake_stream_is_implicit(const struct fake_stream *s);
/* Queues what `op` says: the caller has filled kind, to, from, len, snapshot, value. Advances the
 * clocks first: the accesses that belong to it are told by fake_access with the stream's clock
 * afterwards. */
void fake_submit(struct fake_stream *s, const struct fake_op *op);
/* Clocks as of the operation that is about to be submitted. */
void fake_submit_order(struct fake_stream *s);
void fake_submitted(void); /* eager and random schedules go on */
void fake_run(struct fake_stream *s, uint64_t upto);
void fake_wait_for(struct fake_stream *s, struct fake_stream *other, uint64_t seq,
                   const struct fake_clock *clock);
void fake_progress(void);                    /* random: one of them goes on a little */
void fake_host_joins(struct fake_stream *s); /* runs it; the host knows */
void fake_sync_device(int device);           /* -1: all */
void fake_run_all(void);                     /* runs; the host does not know */
/* What the calling thread may not do now: see cuThreadExchangeStreamCaptureMode in cuda.h. */
bool fake_capture_forbids(bool whole_context);
void fake_stream_context_ends(struct fake_context *c);
void fake_stream_reset(void);
void fake_capture(void *stream, bool on);
void fake_capture_as(int mode);
void fake_schedule(enum fake_cuda_mode mode, uint64_t seed);

/* copy.c */
void fake_execute(const struct fake_op *op);
int fake_kernel(void *stream, uint64_t read, size_t read_len, uint64_t write, size_t write_len,
                unsigned char fill);
void fake_host_access(const void *p, size_t len, bool write);
bool fake_holds(uint64_t address, size_t len, unsigned char value);
/* Something that is queued reads or writes bytes of [lo, lo + len). */
bool fake_is_queued(uint64_t lo, size_t len);

/* memory.c */
struct fake_block {
    struct fake_block *next;
    size_t lo, len; /* in the device's memory */
    int device;
};
struct fake_block *fake_block_take(int device, size_t len, size_t align);
void fake_block_give(struct fake_block *b);
uint64_t fake_block_address(const struct fake_block *b);
/* Where the bytes of a device address lie, and how many are there in one piece; NULL: nowhere. */
char *fake_bytes(uint64_t address, size_t *out_len);
/* Is any of it in a device's addresses, allocated or not? */
bool fake_is_device(uint64_t address);
/* All of it is allocated; else a violation. */
bool fake_is_allocated(uint64_t address, size_t len);
char *fake_device_bytes(int device, size_t at);
size_t fake_used(int device);
void fake_memory_reset(void);

/* host.c */
struct fake_registration {
    struct fake_registration *next;
    uint64_t base;
    size_t len;
    uint64_t *frame; /* of each base page: its pagemap entry */
    int ring;        /* which pins the pages; -1: they are not pinned */
    bool frames;     /* entries hold frames, and these cannot change */
    bool ours;       /* from cuMemHostAlloc */
};
/* The registration that has all of it; NULL: it is not registered. `out_across`: it begins in one
 * and ends outside. */
struct fake_registration *fake_registered_at(uint64_t lo, size_t len, bool *out_across);
/* The pages are those that were registered; else a violation. */
void fake_check_pages(uint64_t lo, size_t len);
bool fake_knows_frames(void);
void fake_host_reset(void);

#endif
