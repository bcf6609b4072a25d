/* Shared by the files of the pools alone.
 *
 * pool.c      alloc and free: what is usual takes the lock and a few pointers, and calls no driver
 * calls.c, create.c  the other public calls
 * out_of_memory.c  what is not usual: from asking other streams to giving up
 * stream.c    streams: which handle is which; event.c  how far each is
 * block.c     blocks: split, merged, taken, put back
 * free_blocks.c  free blocks by size
 * table.c     address -> block; the memory of the records
 * chunk.c     what is taken from the driver and given back
 * collect.c   frees that pile up, blocks that wait for streams
 * strategy.c  the strategies: how sizes are rounded, how the pool grows
 *
 * Stamps. A pool has a number that grows with each event recorded: what is freed bears it as its
 * stamp. An event covers every stamp of its stream up to the number that it ended; when it has come
 * to pass, these are `safe`: what was submitted before those frees has run. On streams that last
 * events are recorded when a request asks, on others in the call that frees.
 *
 * P1: a chunk's blocks lie side by side and fill it; no two neighbours are free in the same set.
 * P2: occupied + free == held: the bytes of the chunks.
 * P3: the table has every block, once.
 * P4: a block that is free on a stream is in that stream's set and list; one that is safe for all
 * may be in no stream's (NULL).
 *
 * Lock: the pool's, for everything that is not said to be otherwise; never held over a call to the
 * driver. A block that such a call is about is in transit, which no other thread touches. Streams'
 * records stay while a thread is in the driver. */
#ifndef FL_GPU_POOL_POOL_H
#define FL_GPU_POOL_POOL_H

#include "gpu/driver/driver.h"
#include "gpu/host/host.h"
#include "gpu/pool/block.h"
#include "gpu/trace/trace.h"

enum { FL_POOL_UNIT = 256, FL_POOL_SMALL = 64 << 10, FL_POOL_EVENTS_MOST = 16 };
/* The driver's headers: CU_STREAM_LEGACY, CU_STREAM_PER_THREAD. */
enum { FL_STREAM_LEGACY = 1, FL_STREAM_PER_THREAD = 2 };

struct fl_pool_event {
    struct fl_pool_event *next;
    fl_CUevent handle;
    fl_CUcontext context; /* as its stream's */
    uint64_t covers;
};

/* A stream as a call names it: NULL and the threads' own stream are each context's. */
struct fl_stream_name {
    void *handle;
    fl_CUcontext context;
};

struct fl_pool_stream {
    struct fl_pool_stream *next;
    struct fl_pool_stream *alike; /* of one chain */
    fl_CUstream handle;
    fl_CUcontext context;
    uint64_t id;     /* the driver's: no other stream has it, ever; 0: while it is captured */
    uint64_t thread; /* whose own stream it is (fl_stream_thread); 0: no thread's */
    uint64_t number; /* this record's, never 0, never again */
    uint64_t stamped, covered, safe;
    struct fl_pool_event *first, *last;
    unsigned events;
    struct fl_pool_list
        free; /* by stamp, roughly: what lies behind a later one is found safe later */
    struct fl_pool_block *root[2]; /* of slabs' second */
    size_t blocks;                 /* that name it: free, pending, garbage */
    size_t uses;                   /* that name it */
    size_t awaited;                /* of what is pending: waits for it */
    bool lasts;   /* its handle is good at any time; else within calls that name it */
    bool is_gone; /* its handle is no more, or another's: nothing can be recorded */
    bool is_lost; /* so without a word: what no event covers is never known to be safe */
};

struct fl_gpu_pool;

struct fl_pool_strategy {
    /* The size that serves `size`. */
    size_t (*round)(const struct fl_gpu_pool *p, size_t size);
    /* How much to take from the driver for `len`, at least that; `direct`: for this alone. Lock:
     * not held; the context is current. 0 or -errno. */
    int (*growth)(struct fl_gpu_pool *p, size_t len, size_t *out, bool *direct);
    /* Before the pool grows by so much. Likewise; NULL: nothing. */
    void (*before)(struct fl_gpu_pool *p, size_t len);
    bool is_binned; /* exact sizes, never split */
    bool has_slabs; /* what is small lies apart, unless the chunks' size is given */
    bool is_tail;   /* what is split gives its upper end */
    bool is_direct; /* nothing is kept */
};

/* The streams that the pool knows: stream.c, event.c. */
struct fl_pool_streams {
    struct fl_pool_stream *first, *limbo; /* limbo: NULL, or one of them */
    struct fl_pool_stream **by_handle;    /* chains of those that can be found */
    size_t handles, known;                /* chains, a power of two or 0; streams in them */
    /* FL_GPU_HOST, and who takes pinned memory: what it frees is safe. In no list, has no
     * number. */
    struct fl_pool_stream host;
    uint64_t numbers;
    _Atomic uint64_t epoch; /* what is freed now gets this stamp. Relaxed; changed under the lock */
    struct fl_pool_event *spare;
};

/* What was taken from the driver: chunk.c. */
struct fl_pool_chunks {
    struct fl_pool_chunk *first;
    struct fl_pool_chunk *idle_from; /* where giving chunks back goes on */
    size_t coming;                   /* bytes asked of the driver, not there yet */
};

/* What was freed and is in no set yet: collect.c. */
struct fl_pool_freed {
    struct fl_pool_list pending, garbage;
    size_t garbage_bytes, at; /* at: so much is collected */
};

/* Threads that are in the driver, and requests that wait for them: out_of_memory.c. */
struct fl_pool_wait {
    unsigned driver_calls; /* threads in the driver, */
    unsigned waiting;      /* and those of them that wait for another to leave it */
    /* How often memory may have come free: by frees, and as threads leave the driver. Relaxed;
     * changed under the lock; a futex. */
    _Atomic uint32_t given;
};

struct fl_gpu_pool {
    struct fl_lock lock;
    bool is_pinned;
    bool is_blind; /* a free may name a stream that was destroyed: PyTorch */
    bool is_graph; /* of graphs that run one after the other: these may have each other's memory */
    _Atomic bool is_shut, has_grown; /* Relaxed */
    const struct fl_pool_strategy *strategy;
    struct fl_gpu *gpu;
    struct fl_gpu_pool_options o;
    struct fl_pool_streams streams;
    struct fl_pool_table table;
    struct fl_pool_block *root[2]; /* of what is safe for all; of slabs' second */
    struct fl_pool_chunks chunks;
    struct fl_pool_freed freed;
    struct fl_pool_wait wait;
    _Atomic uint64_t occupied; /* as s.occupied_bytes, without the lock. Relaxed */
    size_t max_direct;         /* what is larger has a chunk of its own, and is never pooled */
    struct fl_gpu_pool_stats s;
    struct fl_gpu_track track;
};

/* By the calling thread. */
static inline bool fl_pool_is_locked(const struct fl_gpu_pool *p)
{
    return fl_lock_is_busy(&p->lock) && fl_lock_is_held(FL_RANK_RUNTIME, 1);
}
/* Of that size, is it served from slabs? */
static inline bool fl_set_is_small(const struct fl_gpu_pool *p, size_t len)
{
    return p->strategy->has_slabs && len <= FL_POOL_SMALL && p->o.chunk == 0 && !p->is_pinned;
}

/* ---- stream.c, event.c ---- */

/* What `stream` means to the caller: of a pinned pool NULL is the stream of the context that is
 * current, for any device's copies use its memory; else of the pool's. Lock: not held. */
struct fl_stream_name fl_stream_named(const struct fl_gpu_pool *p, void *stream);
/* The record of a name that lasts, or the host's; NULL: none does. Lock: held. */
struct fl_pool_stream *fl_stream_lasting(struct fl_gpu_pool *p, struct fl_stream_name name);
/* What the captures of a stream of that name have; NULL: nothing. Lock: held. */
struct fl_pool_stream *fl_stream_of_captures(const struct fl_gpu_pool *p,
                                             struct fl_stream_name name);
/* That of this number, whether or not its handle leads to it still; NULL: nothing is known of it
 * any more. Lock: held. */
struct fl_pool_stream *fl_stream_numbered(const struct fl_gpu_pool *p, uint64_t number);
/* The record of a stream that is there, which the driver is asked for unless it lasts. `captures`:
 * is it being captured (no, if it lasts)? What its handle has then is a record of its own, which
 * may go when the caller, who has entered the pool, leaves it, and nothing names it. Lock: not
 * held. 0, -ENOMEM, or what the driver says. */
int fl_stream_see(struct fl_gpu_pool *p, struct fl_stream_name name, bool *captures,
                  struct fl_pool_stream **out);
/* Where a stream is at home that was being captured when it was first seen. Lock: held, given up
 * for the driver. 0; -EINPROGRESS: it still is; or what the driver says. */
int fl_stream_locate(struct fl_gpu_pool *p, struct fl_pool_stream *s);
/* A stream of the driver's: 0, or -EINVAL for FL_GPU_HOST. */
int fl_stream_check(void *stream);
/* Stands for streams that are not known any more: nothing of it is ever safe. NULL: no memory. */
struct fl_pool_stream *fl_stream_limbo(struct fl_gpu_pool *p);
/* What a call about a stream says; only our own context's end ends the pool. */
int fl_stream_status(struct fl_gpu_pool *p, fl_CUresult code, const char *call);
/* The handle by which the calling thread tells the driver of `s`, which is there. A thread's own
 * stream can be named by that thread alone; for any other thread the legacy stream of the context
 * stands for it, which waits for all that is submitted to such streams, and which they wait for. */
fl_CUstream fl_stream_handle(const struct fl_pool_stream *s);
/* Makes the context of `s` current, where that is not the pool's; fl_stream_back undoes it. */
int fl_stream_go(const struct fl_gpu_pool *p, const struct fl_pool_stream *s, bool *went);
void fl_stream_back(bool went);
/* The number that the calling thread's own stream goes by. */
extern FL_HIDDEN _Thread_local uint64_t fl_stream_mine; /* 0: not yet */
uint64_t fl_stream_thread_new(void);
static inline uint64_t fl_stream_thread(void)
{
    return FL_LIKELY(fl_stream_mine != 0) ? fl_stream_mine : fl_stream_thread_new();
}
/* Not to be found any more. */
void fl_stream_leave(struct fl_gpu_pool *p, struct fl_pool_stream *s);
uint64_t fl_stream_stamp(const struct fl_gpu_pool *p, struct fl_pool_stream *s);
/* `s` is there: it lasts, or is named by the call under way. */
bool fl_stream_is_capturing(struct fl_gpu_pool *p, const struct fl_pool_stream *s);
/* The rest: with the lock, which they give up for the driver, in whose hands the context is
 * current. An event on `s`, which is there, that covers all stamps so far. Not `asks`: it has been
 * seen not to be captured. 0; -EINPROGRESS: it is captured; -ENOMEM; -ESHUTDOWN; -EIO. */
int fl_stream_cover(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool asks);
/* How far is it? What is safe is put where all find it. Where it lasts an event is recorded first,
 * if one is missing. -EPERM: it is, and cannot be. */
int fl_stream_ask(struct fl_gpu_pool *p, struct fl_pool_stream *s);
/* `s` waits for what `t` freed up to `stamp`, and what `t` has freed becomes `s`'s. Pinned, or `s`
 * is NULL: the caller waits. 0 or as fl_stream_ask; -EAGAIN: the event is in another thread's
 * hands. */
int fl_stream_wait(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                   uint64_t stamp);
/* Waits until all that events cover is safe. */
int fl_stream_drain(struct fl_gpu_pool *p);
/* Something freed has not been seen to be safe. */
bool fl_streams_unsafe(const struct fl_gpu_pool *p);
/* Waits for the whole context, and for those of other devices' streams: all stamps so far are safe.
 * It breaks captures that are under way. */
int fl_stream_sync_all(struct fl_gpu_pool *p);
/* Events of `s` that cover no more than `upto` are spare. */
void fl_events_drop(struct fl_gpu_pool *p, struct fl_pool_stream *s, uint64_t upto);
/* Of what is free on `t`, what is safe. No driver. */
void fl_stream_release(struct fl_gpu_pool *p, struct fl_pool_stream *t);
void fl_streams_free(struct fl_gpu_pool *p);

/* ---- chunk.c ---- */

/* Takes a chunk for `len` bytes, carved: a block in use. Lock: not held; context current. -ENOMEM:
 * the driver, or the limit. */
int fl_chunk_grow(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len, size_t requested,
                  bool exact, struct fl_pool_block **out);
/* Idle chunks go back until `keep` bytes are free. Likewise. 0 or the driver's first refusal. */
int fl_chunk_trim(struct fl_gpu_pool *p, size_t keep, size_t *out_released);
/* A block in transit that is its chunk: back to the driver. Lock: not held. With what is not 0 it
 * is in transit still. */
int fl_chunk_return(struct fl_gpu_pool *p, struct fl_pool_block *b);

/* ---- pool.c, calls.c ---- */

int fl_pool_not_here(void);
/* Why nothing is to be done: 0, -EINVAL, -ECHILD, -ESHUTDOWN. */
int fl_pool_refuse(const struct fl_gpu_pool *p);
/* Lock: held. NULL: there is no such block in use. */
struct fl_pool_block *fl_pool_find_used(const struct fl_gpu_pool *p, uint64_t address);
/* As fl_gpu_pool_free; not `live`: `stream` was the one that the block was taken on, and may have
 * been destroyed since. */
int fl_pool_free(struct fl_gpu_pool *p, uint64_t address, void *stream, bool live);

/* ---- out_of_memory.c ---- */

/* The caller has entered the pool. `captures`: `s` is being captured. Lock: not held. */
int fl_fallback_alloc(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool captures, size_t len,
                      size_t requested, struct fl_pool_block **out);
/* Asks the streams that hold something back: with others' frees, and what is pending. Lock: held,
 * given up for the driver. */
void fl_fallback_settle(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool others);
/* Around what talks to the driver. Lock: not held. */
int fl_pool_enter(struct fl_gpu_pool *p, struct fl_gpu_guard *g);
/* For calls that no capture minds, and that give nothing back; fl_gpu_relax makes it the other. */
int fl_pool_enter_light(struct fl_gpu_pool *p, struct fl_gpu_guard *g);
void fl_pool_leave(struct fl_gpu_pool *p, struct fl_gpu_guard *g);
/* Memory may have come free: requests that wait look again. Lock: held. */
void fl_pool_wake(struct fl_gpu_pool *p);
static inline void fl_pool_given(struct fl_gpu_pool *p)
{
    uint32_t n = atomic_load_explicit(&p->wait.given, memory_order_relaxed);

    atomic_store_explicit(&p->wait.given, n + 1, memory_order_relaxed);
    if (FL_UNLIKELY(p->wait.waiting != 0)) {
        fl_pool_wake(p);
    }
}
/* What the driver said, as a status; a driver that has gone is remembered. */
int fl_pool_status(struct fl_gpu_pool *p, fl_CUresult code, const char *call, size_t bytes);
static inline bool fl_pool_is_shut(const struct fl_gpu_pool *p)
{
    return atomic_load_explicit(&p->is_shut, memory_order_relaxed);
}

/* ---- collect.c ---- */

/* A block that has ended, with its stamps: to its set, or where it waits. */
void fl_collect_dispose(struct fl_gpu_pool *p, struct fl_pool_block *b);
/* True: it is garbage now, and enough of that (fl_collect_batch). */
bool fl_collect_add(struct fl_gpu_pool *p, struct fl_pool_block *b);
/* A batch, largest first; `all`: whatever the fraction says. */
void fl_collect_batch(struct fl_gpu_pool *p, bool all);
/* What captured streams have freed is given to no request: a graph may use it. Ends with the
 * pool. */
#define FL_POOL_HELD UINT64_MAX /* its stamp */
void fl_collect_release_held(struct fl_gpu_pool *p);
/* What need not wait any more is put. */
void fl_collect_pending(struct fl_gpu_pool *p);
void fl_use_drop(struct fl_pool_block *b);

/* ---- strategy.c ---- */

/* NULL: no such strategy. */
const struct fl_pool_strategy *fl_strategy_get(enum fl_gpu_strategy strategy);
/* -EINVAL: options that make no sense. Context: not needed. */
int fl_strategy_check(struct fl_gpu_pool_options *o);
/* Asks the driver what the strategy must know. Context current. */
int fl_strategy_start(struct fl_gpu_pool *p);

#endif
