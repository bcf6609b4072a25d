/* What pools and mirrors count, and what of them the timeline (stats/timeline.h) has. The room's
 * header.
 *
 * State: the list of tracks, and what those that have ended counted, under the list's lock, which
 * comes before an owner's. */
#ifndef FL_GPU_TRACE_TRACE_H
#define FL_GPU_TRACE_TRACE_H

#include "gpu/gpu.h"

enum fl_gpu_track_kind { FL_GPU_TRACK_POOL, FL_GPU_TRACK_COPIES };

/* A part of each pool and each mirror. The owner fills the first part, then opens it; it is in the
 * list from open to close. */
struct fl_gpu_track {
    enum fl_gpu_track_kind kind;
    int device; /* the driver's number */
    void *owner;
    /* POOL: adds its figures. False: with `soon`, its lock is not to be had at once. */
    bool (*add)(void *owner, bool soon, struct fl_stats_gpu *to);

    /* Lock: the list's. */
    struct fl_gpu_track *next;
    /* COPIES. Relaxed: statistics. */
    _Atomic uint64_t copies, copied_bytes, stalls, stall_ns;
    _Atomic uint64_t bytes; /* that a mirror has, on either side */
};

/* Threads: any; none of the owner's locks held. */
void fl_gpu_track_open(struct fl_gpu_track *t);
void fl_gpu_track_close(struct fl_gpu_track *t);
void fl_gpu_tracks_fork_child(void);
/* The list's lock, and the first track. False, with `soon`: it is not to be had at once. */
bool fl_gpu_tracks_acquire(bool soon, const struct fl_gpu_track **out);
void fl_gpu_tracks_release(void);

/* A call of the driver's that may be slow, or several, of `bytes`, for the timeline; `from_ns` as
 * fl_sys.now_ns had it. */
static inline void fl_gpu_note_call(enum fl_timeline_kind kind, uint64_t from_ns, size_t bytes)
{
    if (fl_timeline_is_on()) {
        fl_timeline_add(kind, from_ns, bytes);
    }
}

/* `n` copies have been submitted, of `bytes` together. */
static inline void fl_gpu_note_copies(struct fl_gpu_track *t, unsigned n, size_t bytes)
{
    atomic_fetch_add_explicit(&t->copies, n, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->copied_bytes, bytes, memory_order_relaxed);
}

/* The host has waited since `from_ns` for a copy that was not done. */
static inline void fl_gpu_note_stall(struct fl_gpu_track *t, uint64_t from_ns)
{
    atomic_fetch_add_explicit(&t->stalls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->stall_ns, fl_sys.now_ns() - from_ns, memory_order_relaxed);
    fl_gpu_note_call(FL_TIMELINE_GPU_WAIT, from_ns, 1);
}

#endif
