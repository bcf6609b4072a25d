/* The mirror's parts: see mirror.c (life), slots.c (layout), push.c (copies), mark.c (which are
 * under way), read.c (from files), step_plan.c (over a plan's arena). One folder's inner header.
 *
 * Offsets: [inputs, slot 0][inputs, slot 1][the rest], the same on both sides. Everything of the
 * zone that push copies lies in it once a slot, at the same offsets from the slot's start. */
#ifndef FL_GPU_MIRROR_MIRROR_H
#define FL_GPU_MIRROR_MIRROR_H

#include "gpu/host/host.h"
#include "gpu/trace/trace.h"
#include "plan/plan.h"

enum { FL_MIRROR_SLOTS = 2, FL_MIRROR_REST = FL_MIRROR_SLOTS };

/* Of the input zone: bytes that one copy takes, from a slot's start. */
struct fl_mirror_run {
    size_t offset, len;
};

/* A stream's copies, of a slot or of the rest of the mirror. Lock: the mirror's, but for the
 * event. */
struct fl_mirror_mark {
    struct fl_mirror_mark *next;
    fl_CUevent event;
    fl_CUstream stream; /* that the event was last recorded on: a name, not to be asked anything */
    uint64_t thread;    /* whose own stream that is; 0: no thread's */
    uint64_t times;     /* how often it was recorded */
    unsigned busy;      /* threads that are about to record it */
    bool pushed;        /* the copies may be under way */
};

struct fl_mirror_marks {
    struct fl_mirror_mark *first;
};

/* Where the host's side is a plan's arena: step_plan.c. */
struct fl_mirror_plan {
    struct fl_step_context *context; /* NULL: it is not */
    struct fl_inner *inner;
    uint64_t generation, opening; /* as in struct fl_plan_layout */
};

struct fl_gpu_mirror {
    struct fl_gpu_mirror_map map; /* first: what is read each time */
    struct fl_gpu *gpu;           /* NULL: the host's side alone */
    struct fl_pinned host;
    fl_CUdeviceptr twin; /* with a device: as many bytes as the host's side */
    struct fl_gpu_track track;
    size_t gap;                      /* as in the options */
    size_t zone;                     /* bytes of one slot */
    size_t slot_at[FL_MIRROR_SLOTS]; /* where each begins */
    unsigned slots;
    struct fl_mirror_run *run; /* by offset, those with small gaps between them as one */
    size_t runs, room;         /* and how many there is room for */
    /* For cuMemcpyBatchAsync, as many as `room`: to, from; and how long. The pusher's. */
    fl_CUdeviceptr *batch;
    size_t *batch_len;
    _Atomic bool has_batch;
    _Atomic bool is_lost; /* copies may be under way that nothing tells of. Relaxed */
    /* Of the thread that begins and pushes. */
    unsigned slot;
    bool begun;
    struct fl_lock lock; /* rank RUNTIME. Nothing is waited for under it */
    struct fl_mirror_marks at[FL_MIRROR_SLOTS + 1]; /* each slot's copies, and those of the rest */
    struct fl_mirror_plan plan;
};

/* step_plan.c: the mirror of a context. take: its arena is held and registered. give undoes that; 0
 * or as fl_pinned_give. */
int fl_follow_take(struct fl_gpu_mirror *m, const struct fl_pin *how);
int fl_follow_give(struct fl_gpu_mirror *m);
/* Zone and runs as the plan has them now, and the slot of the step under way. -ESTALE: its arena is
 * another one. */
int fl_follow(struct fl_gpu_mirror *m);
/* Room for as many runs. -ENOMEM. */
int fl_mirror_make_room(struct fl_gpu_mirror *m, size_t runs);
/* One more run, by offset. */
void fl_mirror_add_run(struct fl_mirror_run *run, size_t *runs, struct fl_mirror_run next,
                       size_t gap);

/* layout: fills each offset; the zone's and the whole's length. 0; -EINVAL: an alignment is none,
 * or there are too many bytes. */
struct fl_mirror_layout {
    size_t zone, len;
    struct fl_mirror_run *run; /* room for `count` */
    size_t runs;
};
int fl_mirror_lay_out(struct fl_gpu_slot *slot, size_t count, unsigned slots, size_t gap,
                      struct fl_mirror_layout *out);

/* push.c: `m` is there, not a parent's, and has a device whose context is current from here on.
 * Else the status, and nothing to leave. */
int fl_mirror_enter(struct fl_gpu_mirror *m, struct fl_gpu_guard *guard);
/* 0; -EINPROGRESS: the stream is being captured into a graph, which would copy again whenever it
 * runs; no event says when. */
int fl_mirror_refuse_capture(fl_CUstream stream);
/* mark.c. From here on copies may be under way, until what was submitted to `stream` so far has
 * run. Always done; 0, or why it had to be waited for. */
int fl_mark_put(struct fl_gpu_mirror *m, struct fl_mirror_marks *all, fl_CUstream stream);
/* They are over. */
int fl_mark_await(struct fl_gpu_mirror *m, struct fl_mirror_marks *all);
/* Nothing is asked of them any more; without a driver, nothing of that either. */
void fl_marks_end(struct fl_mirror_marks *all, bool driver);
/* Does all of it lie in the mirror? */
static inline bool fl_mirror_has(const struct fl_gpu_mirror *m, const void *p, size_t len)
{
    size_t at = (uintptr_t)p - m->map.host;

    return at < m->map.len && len <= m->map.len - at;
}
/* The rest wants the context current. To the device; no slot is marked yet. */
int fl_mirror_copy(struct fl_gpu_mirror *m, uintptr_t host, size_t len, fl_CUstream stream);
/* Slots that any of `range` lies in, or else the rest: copies may be under way there until what was
 * submitted to `stream` so far has run. Always done, if need be by waiting for it; 0, or why it had
 * to be. */
int fl_mirror_mark(struct fl_gpu_mirror *m, struct fl_range range, fl_CUstream stream);
/* The same: what was to be copied there has been. */
int fl_mirror_await(struct fl_gpu_mirror *m, struct fl_range range);

#endif
