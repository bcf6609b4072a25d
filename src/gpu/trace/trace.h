/* What pools, mirrors and driver calls tell of themselves: the Chrome trace, its counters, the
 * tags. One folder's inner header.
 *
 * Whatever is told here costs one relaxed load while no trace is on. While one is, it is kept
 * in a buffer under a lock of this file's own, which is a leaf: callers may hold a pool's lock.
 * The thread that fills the buffer writes it to the file.
 *
 * State: trace.c's, under its two locks; the tag is the thread's. Order: the list of tracks, an
 * owner's lock (in `each`), the buffer. */
#ifndef FL_GPU_TRACE_TRACE_H
#define FL_GPU_TRACE_TRACE_H

#include "gpu/gpu.h"

extern FL_HIDDEN _Atomic uint32_t
    fl_gpu_tracing; /* which trace it is, from 1; 0: none. Relaxed: late is late */

static inline bool fl_gpu_is_traced(void)
{
    return FL_UNLIKELY(atomic_load_explicit(&fl_gpu_tracing, memory_order_relaxed) != 0);
}

/* One block that is allocated now. */
struct fl_gpu_live {
    size_t requested, actual; /* bytes */
    uint32_t tag;             /* fl_gpu_tag_now when it was allocated */
    bool reused;              /* served from the pool, not the driver's API */
};
typedef void fl_gpu_live_fn(void *arg, const struct fl_gpu_live *l);

/* Counters of one pool, in bytes, as in struct fl_gpu_pool_stats. */
struct fl_gpu_figures {
    uint64_t occupied, free, served_pool, served_api;
};

enum fl_gpu_track_kind { FL_GPU_TRACK_POOL, FL_GPU_TRACK_COPIES };

/* One line of the trace's counters; a part of each pool, each mirror and each ring of staging
 * buffers. The owner fills the first part, then opens it; it is in the list from open to close. */
struct fl_gpu_track {
    enum fl_gpu_track_kind kind;
    int device; /* the driver's number */
    enum fl_gpu_target target;
    /* POOL: calls `fn` for each block that is allocated now. Takes the owner's lock. */
    void *owner;
    void (*each)(void *owner, fl_gpu_live_fn *fn, void *arg);
    /* POOL: adds its figures. False: with `soon`, its lock is not to be had at once. */
    bool (*add)(void *owner, bool soon, struct fl_stats_gpu *to);

    /* trace.c's. Lock: the list's. */
    struct fl_gpu_track *next;
    unsigned number; /* 1 for the first of its kind, device and target, then 2 */
    /* Lock: the buffer's. */
    struct fl_gpu_figures last;   /* POOL: what was told last */
    uint64_t told_ns, written_ns; /* when; and when a sample went to the buffer. 0: never */
    uint32_t session;             /* the trace that these two are of */
    bool due;                     /* told, but not yet written: too soon after the one before */
    /* COPIES. Relaxed: statistics. */
    _Atomic uint64_t copies, copied_bytes, stalls, stall_ns;
    _Atomic uint64_t device_bytes, pinned_bytes; /* that a mirror, or a ring of buffers, has */
};

/* Threads: any; none of the owner's locks held. */
void fl_gpu_track_open(struct fl_gpu_track *t);
void fl_gpu_track_close(struct fl_gpu_track *t);
/* What was told too soon after the sample before is written now: of one, of all. */
void fl_gpu_trace_due(struct fl_gpu_track *t);
void fl_gpu_tracks_due(void);
void fl_gpu_tracks_fork_child(void);
/* stats.c, under the list's lock: what a track counted is kept. */
void fl_gpu_stats_close(const struct fl_gpu_track *t);
void fl_gpu_stats_fork_child(void);
/* The list's lock, and the first track. False, with `soon`: it is not to be had at once. */
bool fl_gpu_tracks_acquire(bool soon, const struct fl_gpu_track **out);
void fl_gpu_tracks_release(void);

void fl_gpu_trace_figures(struct fl_gpu_track *t, const struct fl_gpu_figures *f);
void fl_gpu_trace_copies(struct fl_gpu_track *t);
void fl_gpu_trace_call(const char *name, uint64_t start_ns, uint64_t end_ns, size_t bytes, int rc);
void fl_gpu_trace_instant(const char *name, int device, uint64_t value);

/* The pool's counters have changed to `f`. Under the pool's lock, so that no older figures
 * come after. */
static inline void fl_gpu_note_figures(struct fl_gpu_track *t, const struct fl_gpu_figures *f)
{
    if (fl_gpu_is_traced()) {
        fl_gpu_trace_figures(t, f);
    }
}

/* A call of the driver's that may be slow (it allocates, frees, registers, maps, waits), or
 * several: the times are fl_sys.now_ns's, `rc` is 0 where it went well. `name` is constant. bytes
 * 0: not said. A start of 0: it began before the trace, and is left out. */
static inline void fl_gpu_note_call(const char *name, uint64_t start_ns, uint64_t end_ns,
                                    size_t bytes, int rc)
{
    if (fl_gpu_is_traced()) {
        fl_gpu_trace_call(name, start_ns, end_ns, bytes, rc);
    }
}

/* The time for fl_gpu_note_call; 0 and no look at the clock while no trace is on. */
static inline uint64_t fl_gpu_note_now(void)
{
    return fl_gpu_is_traced() ? fl_sys.now_ns() : 0;
}

/* Something happened at one moment: "step", "collect", "trim". `name` is constant. */
static inline void fl_gpu_note_instant(const char *name, int device, uint64_t value)
{
    if (fl_gpu_is_traced()) {
        fl_gpu_trace_instant(name, device, value);
    }
}

/* `n` copies have been submitted, of `bytes` together. */
static inline void fl_gpu_note_copies(struct fl_gpu_track *t, unsigned n, size_t bytes)
{
    atomic_fetch_add_explicit(&t->copies, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->copied_bytes, bytes, memory_order_relaxed);
    if (fl_gpu_is_traced()) {
        fl_gpu_trace_copies(t);
    }
}

/* The host has waited `ns` for a slot whose last copy was not done. */
static inline void fl_gpu_note_stall(struct fl_gpu_track *t, uint64_t ns)
{
    atomic_fetch_add_explicit(&t->stalls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->stall_ns, ns, memory_order_relaxed);
    if (fl_gpu_is_traced()) {
        fl_gpu_trace_copies(t);
    }
}

/* The calling thread's tag (fl_gpu_tag), as a number that stays its name's for ever; 0: none. */
uint32_t fl_gpu_tag_now(void);

/* Boot: FAULTLESS_GPU_TRACE's file, NULL for none: the trace begins with the first fl_gpu_open. */
void fl_gpu_trace_start(const char *path);
void fl_gpu_trace_opened(void);     /* a device was opened: begins that trace, once */
void fl_gpu_trace_fork_child(void); /* the parent goes on with its trace; the child has none */

#endif
