/* Streams: what is known of each, and the events that say how far it is.
 *
 * A handle may be given to the driver only while its stream is there: asking it of one that was
 * destroyed is undefined. So a stream is asked for its number, and an event is recorded on it,
 * within the call that names it; and later only when it lasts: the legacy stream, and what the
 * program says it of (fl_gpu_pool_stream_lasts). On those one event, recorded when a request wants
 * to know, covers thousands of frees. Streams are told apart by the driver's number.
 *
 * A thread's own stream (FL_STREAM_PER_THREAD) has one handle for all threads. An event is recorded
 * on it within its thread's calls; by other threads on the legacy stream, which is in order with
 * all of these ("Events in stream zero are completed after all preceding tasks and commands in all
 * streams are completed", CUDA's programming guide).
 *
 * FL_GPU_HOST has a record in the pool itself. Nothing is ever submitted to it, so what it frees is
 * safe at once. It takes all pinned memory: only the host's order counts there. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>

_Thread_local uint64_t fl_stream_mine;

uint64_t fl_stream_thread_new(void)
{
    static _Atomic uint64_t last;

    fl_stream_mine = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return fl_stream_mine;
}

static fl_CUstream handle_of(void *stream)
{
    return (uintptr_t)stream == FL_STREAM_LEGACY ? NULL : stream;
}

static struct fl_pool_stream **chain_of(const struct fl_gpu_pool *p, const void *handle)
{
    uint64_t key = (uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);

    fl_assert(fl_is_pow2(p->streams.handles));
    return &p->streams.by_handle[key >> 32 & (p->streams.handles - 1)];
}

static bool is_each_contexts(fl_CUstream handle)
{
    return (uintptr_t)handle <= FL_STREAM_PER_THREAD;
}

struct fl_stream_name fl_stream_named(const struct fl_gpu_pool *p, void *stream)
{
    struct fl_stream_name name = {handle_of(stream), p->gpu->context};
    fl_CUcontext now = NULL;

    if (p->is_pinned && is_each_contexts(name.handle) &&
        fl_cuda.cuCtxGetCurrent(&now) == FL_CUDA_SUCCESS && now != NULL) {
        name.context = now;
    }
    return name;
}

fl_CUstream fl_stream_handle(const struct fl_pool_stream *s)
{
    return s->thread == 0 || s->thread == fl_stream_thread() ? s->handle : NULL;
}

int fl_stream_go(const struct fl_gpu_pool *p, const struct fl_pool_stream *s, bool *went)
{
    int rc = s->context == p->gpu->context
                 ? 0
                 : fl_cuda_status(fl_cuda.cuCtxPushCurrent(s->context), "cuCtxPushCurrent", 0);

    *went = rc == 0 && s->context != p->gpu->context;
    return rc;
}

void fl_stream_back(bool went)
{
    fl_CUcontext was;

    if (went) {
        (void)fl_cuda.cuCtxPopCurrent(&was);
    }
}

static bool is_named(const struct fl_pool_stream *s, struct fl_stream_name name)
{
    return s->handle == name.handle && (!is_each_contexts(s->handle) || s->context == name.context);
}

struct fl_pool_stream *fl_stream_lasting(struct fl_gpu_pool *p, struct fl_stream_name name)
{
    if (name.handle == FL_GPU_HOST) {
        return &p->streams.host;
    }
    struct fl_pool_stream *s = p->streams.handles != 0 ? *chain_of(p, name.handle) : NULL;
    while (s != NULL && !(is_named(s, name) && s->lasts)) {
        s = s->alike;
    }
    return s;
}

struct fl_pool_stream *fl_stream_of_captures(const struct fl_gpu_pool *p,
                                             struct fl_stream_name name)
{
    struct fl_pool_stream *s = p->streams.handles != 0 ? *chain_of(p, name.handle) : NULL;

    fl_assert(fl_pool_is_locked(p));
    while (s != NULL && (!is_named(s, name) || s->id != 0 || s->handle == NULL ||
                         (s->thread != 0 && s->thread != fl_stream_thread()))) {
        s = s->alike;
    }
    return s;
}

int fl_stream_check(void *stream)
{
    return stream != FL_GPU_HOST ? 0 : fl_gpu_fail(-EINVAL, "FL_GPU_HOST is not a stream");
}

struct fl_pool_stream *fl_stream_numbered(const struct fl_gpu_pool *p, uint64_t number)
{
    struct fl_pool_stream *s = p->streams.first;

    fl_assert(fl_pool_is_locked(p));
    while (s != NULL && s->number != number) {
        s = s->next;
    }
    return s;
}

static void link_to_chain(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    struct fl_pool_stream **chain = chain_of(p, s->handle);

    s->alike = *chain;
    *chain = s;
}

/* Room for one more to be found; with as many chains as before when there is no memory for more.
 * False: there is none at all. */
static bool more_chains(struct fl_gpu_pool *p)
{
    size_t n = p->streams.handles == 0 ? 64 : 2 * p->streams.handles;

    fl_assert(fl_pool_is_locked(p));
    if (p->streams.known < p->streams.handles) {
        return true;
    }
    struct fl_pool_stream **fresh = calloc(n, sizeof(void *));
    if (fresh == NULL) {
        return p->streams.handles != 0;
    }
    free(p->streams.by_handle);
    p->streams.by_handle = fresh;
    p->streams.handles = n;
    for (struct fl_pool_stream *s = p->streams.first; s != NULL; s = s->next) {
        if (!s->is_gone) {
            link_to_chain(p, s);
        }
    }
    return true;
}

/* Nothing is lost with it. Of what a stream had while it was captured nothing is known, but in a
 * pool of graphs, where the blocks that it still has are to be its own again. */
static bool is_unused(const struct fl_gpu_pool *p, const struct fl_pool_stream *s)
{
    bool may_go = s->is_gone || (s->id == 0 && !s->lasts && !p->is_graph);

    return may_go && s != p->streams.limbo && s->blocks + s->uses + s->awaited == 0;
}

/* An unused record, or a new one, not to be found yet. `own`: driver calls that the caller is
 * within. While others are in the driver they may have any record in their hands. */
static struct fl_pool_stream *record(struct fl_gpu_pool *p, unsigned own)
{
    struct fl_pool_stream *s = p->wait.driver_calls <= own ? p->streams.first : NULL;

    fl_assert(fl_pool_is_locked(p));
    while (s != NULL && !is_unused(p, s)) {
        s = s->next;
    }
    if (s != NULL) {
        if (!s->is_gone) {
            fl_stream_leave(p, s);
        }
        fl_events_drop(p, s, UINT64_MAX); /* that are not asked any more */
        *s = (struct fl_pool_stream){.next = s->next, .is_gone = true};
        return s;
    }
    s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->is_gone = true;
        s->next = p->streams.first;
        p->streams.first = s;
    }
    return s;
}

void fl_stream_leave(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    struct fl_pool_stream **at = chain_of(p, s->handle);

    fl_assert(fl_pool_is_locked(p) && p->streams.known != 0 && !s->is_gone);
    while (*at != s) {
        fl_assert(*at != NULL);
        at = &(*at)->alike;
    }
    *at = s->alike;
    p->streams.known--;
    s->is_gone = true;
}

static void lose(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_assert(fl_pool_is_locked(p));
    if (!s->is_gone) {
        fl_stream_leave(p, s);
        s->is_lost = true;
        p->s.quarantined += s->covered < s->stamped ? s->blocks : 0;
    }
}

int fl_stream_status(struct fl_gpu_pool *p, fl_CUresult code, const char *call)
{
    fl_CUdevice device;
    int rc = code == FL_CUDA_SUCCESS ? 0 : fl_cuda_status(code, call, 0);

    if (rc != -ESHUTDOWN || code == FL_CUDA_ERROR_DEINITIALIZED) {
        return rc != -ESHUTDOWN ? rc : fl_pool_status(p, code, call, 0);
    }
    /* The stream's context, or ours? */
    code = fl_cuda.cuCtxGetDevice(&device);
    return code != FL_CUDA_SUCCESS ? fl_pool_status(p, code, "cuCtxGetDevice", 0)
                                   : fl_gpu_fail(-EINVAL, "the stream has been destroyed");
}

bool fl_stream_is_capturing(struct fl_gpu_pool *p, const struct fl_pool_stream *s)
{
    int status = FL_CU_STREAM_CAPTURE_STATUS_NONE;
    bool went;

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (s == &p->streams.host || fl_stream_go(p, s, &went) != 0) {
        return false;
    }
    fl_CUresult code = fl_cuda.cuStreamIsCapturing(fl_stream_handle(s), &status);
    fl_stream_back(went);
    if (code != FL_CUDA_SUCCESS && code != FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
        (void)fl_stream_status(p, code, "cuStreamIsCapturing");
    }
    /* The legacy stream is not to be touched while a blocking one is captured. */
    return code == FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
           (code == FL_CUDA_SUCCESS && status != FL_CU_STREAM_CAPTURE_STATUS_NONE);
}

/* What the driver knows of a stream that is there. While it is captured its number may not be
 * asked: that is error 900, and the end of the capture (seen on 580.159). Lock: not held. */
static int look_at(struct fl_gpu_pool *p, struct fl_pool_stream *seen, bool *captures)
{
    unsigned long long id = 0;
    bool went;
    int rc = 0;

    *captures = fl_stream_is_capturing(p, seen);
    if (!*captures && (rc = fl_stream_go(p, seen, &went)) == 0) {
        rc = fl_stream_status(p, fl_cuda.cuStreamGetId(seen->handle, &id), "cuStreamGetId");
        fl_stream_back(went);
    }
    seen->id = id;
    return rc;
}

/* Where a stream is at home: another device's may use the pool's memory, too. Lock: not held. */
static int look_where(struct fl_gpu_pool *p, fl_CUstream handle, fl_CUcontext *context)
{
    return fl_stream_status(p, fl_cuda.cuStreamGetCtx(handle, context), "cuStreamGetCtx");
}

int fl_stream_locate(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_CUcontext context = s->context;

    fl_assert(fl_pool_is_locked(p));
    fl_lock_release(&p->lock);
    int rc = fl_stream_is_capturing(p, s) ? -EINPROGRESS : look_where(p, s->handle, &context);
    fl_lock_acquire(&p->lock);
    if (s->context != context) {
        s->context = context;
    }
    return rc;
}

/* The record of that number, if there is one. Others of a handle that is one stream's have been
 * destroyed, but for what its captures have. Lock: held. */
static struct fl_pool_stream *find(struct fl_gpu_pool *p, const struct fl_pool_stream *seen)
{
    const struct fl_stream_name name = {seen->handle, seen->context};
    struct fl_pool_stream *found = NULL, *next;

    fl_assert(fl_pool_is_locked(p));
    for (struct fl_pool_stream *s = p->streams.handles != 0 ? *chain_of(p, seen->handle) : NULL;
         s != NULL; s = next) {
        next = s->alike;
        if (is_named(s, name) && s->id == seen->id && s->thread == seen->thread) {
            found = s;
        } else if (s->handle == seen->handle && !is_each_contexts(s->handle) && s->id != 0 &&
                   seen->id != 0) {
            lose(p, s);
        }
    }
    return found;
}

static struct fl_pool_stream *add(struct fl_gpu_pool *p, const struct fl_pool_stream *seen)
{
    struct fl_pool_stream *s = more_chains(p) ? record(p, 1) : NULL;

    fl_assert(fl_pool_is_locked(p));
    if (s != NULL) {
        s->handle = seen->handle;
        s->context = seen->context;
        s->id = seen->id;
        s->thread = seen->thread;
        s->number = ++p->streams.numbers;
        s->lasts = seen->handle == NULL;
        s->is_gone = false;
        link_to_chain(p, s);
        p->streams.known++;
    }
    return s;
}

/* One that lasts and needs no call. */
static bool is_at_hand(struct fl_gpu_pool *p, struct fl_stream_name name, bool *captures,
                       struct fl_pool_stream **out)
{
    fl_lock_acquire(&p->lock);
    *out = fl_stream_lasting(p, name);
    fl_lock_release(&p->lock);
    *captures = false;
    return *out != NULL;
}

int fl_stream_see(struct fl_gpu_pool *p, struct fl_stream_name name, bool *captures,
                  struct fl_pool_stream **out)
{
    bool own = (uintptr_t)name.handle == FL_STREAM_PER_THREAD;
    struct fl_pool_stream seen = {
        .handle = name.handle, .context = name.context, .thread = own ? fl_stream_thread() : 0};
    int rc = 0;

    if (is_at_hand(p, name, captures, out)) {
        return 0;
    }
    if (seen.handle != NULL) {
        rc = look_at(p, &seen, captures);
    }
    fl_lock_acquire(&p->lock);
    if (rc == 0 && (*out = find(p, &seen)) == NULL) {
        fl_lock_release(&p->lock);
        if (!is_each_contexts(seen.handle) && !*captures) {
            rc = look_where(p, seen.handle, &seen.context);
        }
        fl_lock_acquire(&p->lock);
        *out = find(p, &seen);
    }
    if (*out == NULL && rc == 0 && (*out = add(p, &seen)) == NULL) {
        rc = fl_gpu_fail(-ENOMEM, "no memory for a stream's record");
    }
    fl_lock_release(&p->lock);
    return rc;
}

struct fl_pool_stream *fl_stream_limbo(struct fl_gpu_pool *p)
{
    fl_assert(fl_pool_is_locked(p));
    if (p->streams.limbo == NULL && (p->streams.limbo = record(p, 0)) != NULL) {
        p->streams.limbo->number = ++p->streams.numbers;
        p->streams.limbo->is_lost = true;
    }
    return p->streams.limbo;
}

uint64_t fl_stream_stamp(const struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_assert(fl_pool_is_locked(p));
    if (!s->is_gone || s->is_lost) { /* retired: nothing more was submitted to it */
        s->stamped = atomic_load_explicit(&p->streams.epoch, memory_order_relaxed);
    }
    return s->stamped;
}
