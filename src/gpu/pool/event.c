/* How far a stream is: events that are recorded on it, asked, and waited for. See stream.c. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>

static void queue(struct fl_pool_stream *s, struct fl_pool_event *e)
{
    struct fl_pool_event **at = &s->first;

    while (*at != NULL && (*at)->covers < e->covers) {
        at = &(*at)->next;
    }
    e->next = *at;
    *at = e;
    s->last = e->next == NULL ? e : s->last;
    s->events++;
    fl_assert(s->last != NULL && s->last->next == NULL && s->last->covers >= e->covers);
}

static struct fl_pool_event *unqueue(struct fl_pool_stream *s, struct fl_pool_event *e)
{
    struct fl_pool_event **at = &s->first, *before = NULL;

    fl_assert(s->events != 0);
    while (*at != e) {
        fl_assert(*at != NULL);
        before = *at;
        at = &(*at)->next;
    }
    *at = e->next;
    s->last = s->last == e ? before : s->last;
    s->events--;
    fl_assert((s->first == NULL) == (s->events == 0) && (s->first == NULL) == (s->last == NULL));
    return e;
}

static void spare(struct fl_gpu_pool *p, struct fl_pool_event *e)
{
    e->next = p->streams.spare;
    p->streams.spare = e;
}

void fl_events_drop(struct fl_gpu_pool *p, struct fl_pool_stream *s, uint64_t upto)
{
    while (s->first != NULL && s->first->covers <= upto) {
        spare(p, unqueue(s, s->first));
    }
}

/* One to record on `s`: when there are many the newest of them, which the next covers as well. Else
 * a spare one of its context. NULL: make one. */
static struct fl_pool_event *take_event(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    struct fl_pool_event **at = &p->streams.spare;

    fl_assert(fl_pool_is_locked(p));
    if (s->last != NULL && s->events >= FL_POOL_EVENTS_MOST) {
        return unqueue(s, s->last);
    }
    while (*at != NULL && (*at)->context != s->context) {
        at = &(*at)->next;
    }
    struct fl_pool_event *e = *at;
    if (e != NULL) {
        *at = e->next;
    }
    return e;
}

static int make_event(struct fl_gpu_pool *p, const struct fl_pool_stream *s,
                      struct fl_pool_event **out)
{
    struct fl_pool_event *e = calloc(1, sizeof *e);

    if (e == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for an event's record");
    }
    e->context = s->context;
    int rc = fl_pool_status(p, fl_cuda.cuEventCreate(&e->handle, FL_CU_EVENT_DISABLE_TIMING),
                            "cuEventCreate", 0);
    if (rc != 0) {
        free(e);
        e = NULL;
    }
    *out = e;
    return rc;
}

/* An event and its stream are of one context, which is another's where another device's stream uses
 * the pool's memory. Lock: not held. */
static int record_event(struct fl_gpu_pool *p, const struct fl_pool_stream *s, bool asks,
                        struct fl_pool_event **e)
{
    bool went;

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (asks && fl_stream_is_capturing(p, s)) {
        return -EINPROGRESS;
    }
    int rc = fl_stream_go(p, s, &went);
    if (rc == 0 && *e == NULL) {
        rc = make_event(p, s, e);
    }
    if (rc == 0 && *e != NULL) {
        rc = fl_stream_status(p, fl_cuda.cuEventRecord((*e)->handle, fl_stream_handle(s)),
                              "cuEventRecord");
    }
    fl_stream_back(went);
    return rc;
}

int fl_stream_cover(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool asks)
{
    fl_assert(fl_pool_is_locked(p));
    if (s->id == 0 && (uintptr_t)s->handle > FL_STREAM_PER_THREAD) {
        int located = fl_stream_locate(p, s); /* which asks */
        if (located != 0) {
            return located;
        }
        asks = false;
    }
    struct fl_pool_event *e = take_event(p, s);
    uint64_t upto = atomic_fetch_add_explicit(&p->streams.epoch, 1, memory_order_relaxed);
    fl_lock_release(&p->lock);
    int rc = record_event(p, s, asks, &e);
    fl_lock_acquire(&p->lock);
    if (rc == 0 && e != NULL) {
        p->s.events++;
        e->covers = upto;
        queue(s, e);
        s->covered = upto > s->covered ? upto : s->covered;
    } else if (e != NULL) {
        spare(p, e);
        /* It may have been taken from the queue: what it covered is not known to be covered any
         * more. */
        uint64_t still = s->last != NULL ? s->last->covers : s->safe;
        s->covered = still < s->covered ? still : s->covered;
    }
    return rc;
}

void fl_stream_release(struct fl_gpu_pool *p, struct fl_pool_stream *t)
{
    struct fl_pool_block *b;

    fl_assert(fl_pool_is_locked(p));
    if (!p->is_pinned && p->streams.first->next == NULL) {
        return; /* no other stream is there to have it */
    }
    while ((b = t->free.first) != NULL && b->stamp <= t->safe) {
        uint64_t by = b->by;
        fl_block_withdraw(p, b);
        fl_block_assign(b, NULL, 0);
        b->by = by;
        fl_block_put(p, b);
    }
}

/* How far is it? What is safe is put where all find it. */
static void look_at_events(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_CUresult code = FL_CUDA_SUCCESS;

    fl_assert(fl_pool_is_locked(p));
    while (s->first != NULL && code == FL_CUDA_SUCCESS) {
        struct fl_pool_event *e = unqueue(s, s->first);
        fl_lock_release(&p->lock);
        code = fl_cuda.cuEventQuery(e->handle);
        if (code != FL_CUDA_SUCCESS && code != FL_CUDA_ERROR_NOT_READY) {
            (void)fl_pool_status(p, code, "cuEventQuery", 0);
        }
        fl_lock_acquire(&p->lock);
        p->s.event_queries++;
        if (code == FL_CUDA_SUCCESS) {
            s->safe = e->covers > s->safe ? e->covers : s->safe;
            spare(p, e);
        } else {
            queue(s, e);
        }
    }
    fl_stream_release(p, s);
}

int fl_stream_ask(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    int rc = 0;

    fl_assert(fl_pool_is_locked(p));
    if (s->covered < s->stamped) {
        rc = s->lasts && !s->is_gone ? fl_stream_cover(p, s, true) : -EPERM;
    }
    look_at_events(p, s);
    return rc;
}

/* Frees of `t` up to `upto` become frees of `s`, now: in order after them. */
static void move_frees(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                       uint64_t upto)
{
    uint64_t now = fl_stream_stamp(p, s);

    fl_assert(s != t);
    for (struct fl_pool_block *b = t->free.first, *next; b != NULL; b = next) {
        next = b->newer;
        if (b->stamp > upto) {
            continue;
        }
        uint64_t by = b->by;
        fl_block_withdraw(p, b);
        fl_block_assign(b, s, now);
        b->by = by;
        fl_block_put(p, b);
    }
}

int fl_stream_wait(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                   uint64_t stamp)
{
    int rc = 0;

    fl_assert(fl_pool_is_locked(p));
    if (t->safe >= stamp) {
        fl_stream_release(p, t);
        return 0;
    }
    /* What is there may be in another thread's hands. */
    if (t->last == NULL || t->last->covers < stamp) {
        rc = t->lasts && !t->is_gone ? fl_stream_cover(p, t, true)
             : t->covered >= stamp   ? -EAGAIN
                                     : -EPERM;
    }
    if (rc != 0 || t->last == NULL || t->last->covers < stamp) {
        return rc != 0 ? rc : -EAGAIN;
    }
    struct fl_pool_event *e = unqueue(t, t->last);
    fl_lock_release(&p->lock);
    rc = s == NULL || p->is_pinned
             ? fl_pool_status(p, fl_cuda.cuEventSynchronize(e->handle), "cuEventSynchronize", 0)
             : fl_pool_status(p, fl_cuda.cuStreamWaitEvent(fl_stream_handle(s), e->handle, 0),
                              "cuStreamWaitEvent", 0);
    fl_lock_acquire(&p->lock);
    queue(t, e);
    if (rc != 0) {
        return rc;
    }
    p->s.waits += s != NULL;
    if (s == NULL || p->is_pinned) {
        t->safe = e->covers > t->safe ? e->covers : t->safe;
        fl_stream_release(p, t);
    } else {
        move_frees(p, s, t, e->covers);
    }
    return 0;
}

int fl_stream_drain(struct fl_gpu_pool *p)
{
    int first = 0;

    fl_assert(fl_pool_is_locked(p));
    for (struct fl_pool_stream *s = p->streams.first; s != NULL && !fl_pool_is_shut(p);
         s = s->next) {
        if (s->safe >= s->stamped || s->blocks + s->awaited == 0) {
            continue;
        }
        if (s->covered < s->stamped && s->lasts && !s->is_gone) {
            (void)fl_stream_cover(p, s, true);
        }
        uint64_t upto = s->last != NULL ? s->last->covers : 0;
        int rc = upto > s->safe ? fl_stream_wait(p, NULL, s, upto) : 0;
        first = first != 0 ? first : rc;
        fl_events_drop(p, s, s->safe);
    }
    fl_collect_pending(p);
    return first;
}

bool fl_streams_unsafe(const struct fl_gpu_pool *p)
{
    const struct fl_pool_stream *s = p->streams.first;

    while (s != NULL && (s->blocks + s->awaited == 0 || s->safe >= s->stamped)) {
        s = s->next;
    }
    return s != NULL;
}

/* Is `s` the first of a context that is not the pool's, and perhaps there? */
static bool shows_context(const struct fl_gpu_pool *p, const struct fl_pool_stream *s)
{
    const struct fl_pool_stream *first = p->streams.first;

    if (s->is_gone || s->context == p->gpu->context) {
        return false;
    }
    while (first->is_gone || first->context != s->context) {
        first = first->next;
    }
    return first == s;
}

/* A context that has ended has nothing under way. Lock: not held. */
static int sync_elsewhere(fl_CUcontext context)
{
    fl_CUcontext was;
    int rc = fl_cuda_status(fl_cuda.cuCtxPushCurrent(context), "cuCtxPushCurrent", 0);

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuCtxSynchronize(), "cuCtxSynchronize", 0);
        (void)fl_cuda.cuCtxPopCurrent(&was);
    }
    return rc == -ESHUTDOWN ? 0 : rc;
}

/* Pinned memory other devices' streams use, too. Lock: held, given up for the driver. */
static int sync_contexts(struct fl_gpu_pool *p)
{
    fl_assert(fl_pool_is_locked(p));
    fl_lock_release(&p->lock);
    int rc = fl_pool_status(p, fl_cuda.cuCtxSynchronize(), "cuCtxSynchronize", 0);
    fl_lock_acquire(&p->lock);
    for (struct fl_pool_stream *s = p->is_pinned ? p->streams.first : NULL; s != NULL && rc == 0;
         s = s->next) {
        if (shows_context(p, s)) {
            fl_CUcontext context = s->context;
            fl_lock_release(&p->lock);
            rc = sync_elsewhere(context);
            fl_lock_acquire(&p->lock);
        }
    }
    return rc;
}

int fl_stream_sync_all(struct fl_gpu_pool *p)
{
    uint64_t upto = atomic_fetch_add_explicit(&p->streams.epoch, 1, memory_order_relaxed);
    int rc = sync_contexts(p);

    p->s.implicit_syncs++;
    for (struct fl_pool_stream *s = p->streams.first; s != NULL && rc == 0; s = s->next) {
        s->safe = upto > s->safe ? upto : s->safe;
        s->covered = s->safe > s->covered ? s->safe : s->covered;
        fl_events_drop(p, s, s->safe);
        fl_stream_release(p, s);
    }
    if (rc == 0) {
        fl_collect_pending(p);
    }
    return rc;
}

void fl_streams_free(struct fl_gpu_pool *p)
{
    for (struct fl_pool_stream *s = p->streams.first, *next; s != NULL; s = next) {
        next = s->next;
        fl_events_drop(p, s, UINT64_MAX);
        free(s);
    }
    free(p->streams.by_handle);
    for (struct fl_pool_event *e = p->streams.spare, *next; e != NULL; e = next) {
        next = e->next;
        if (!fl_pool_is_shut(p)) {
            (void)fl_cuda.cuEventDestroy(e->handle);
        }
        free(e);
    }
}
