/* Streams: what is known of each, and the events that say how far it is.
 *
 * An event is recorded when somebody wants to know, and covers all that was freed until then: one is enough for thousands of frees.
 * What can have none (the handle is another stream's by now, another thread's own stream) is quarantined: only waiting for the whole
 * context makes it safe. */
#include "gpu/pool.h"

#include <errno.h>
#include <stdlib.h>

/* What the driver's headers call CU_STREAM_LEGACY and CU_STREAM_PER_THREAD. */
enum { LEGACY = 1, PER_THREAD = 2 };

_Thread_local uint64_t fl_stream_mine;

uint64_t fl_stream_thread_new(void)
{
    static _Atomic uint64_t last;

    fl_stream_mine = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return fl_stream_mine;
}

static fl_CUstream handle_of(void *stream)
{
    return (uintptr_t)stream == LEGACY ? NULL : stream;
}

static uint64_t owner_of(void *stream)
{
    return (uintptr_t)stream == PER_THREAD ? fl_stream_thread() : 0;
}

static struct fl_pool_stream **chain_of(const struct fl_gpu_pool *p, const void *handle,
                                        uint64_t thread)
{
    uint64_t key = ((uintptr_t)handle + thread * 16) * UINT64_C(0x9e3779b97f4a7c15);

    return &p->by_handle[key >> 32 & (p->handles - 1)];
}

struct fl_pool_stream *fl_stream_find(const struct fl_gpu_pool *p, void *stream)
{
    fl_CUstream handle = handle_of(stream);
    uint64_t thread = owner_of(stream);
    struct fl_pool_stream *s = p->handles != 0 ? *chain_of(p, handle, thread) : NULL;

    while (s != NULL && (s->handle != handle || s->thread != thread)) {
        s = s->alike;
    }
    return s;
}

static void link_to_chain(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    struct fl_pool_stream **chain = chain_of(p, s->handle, s->thread);

    s->alike = *chain;
    *chain = s;
}

/* Room for one more to be found; with as many chains as before when there is no memory for more. False: there is none at all. */
static bool more_chains(struct fl_gpu_pool *p)
{
    size_t n = p->handles == 0 ? 64 : 2 * p->handles;

    if (p->known < p->handles) {
        return true;
    }
    struct fl_pool_stream **fresh = calloc(n, sizeof(void *));
    if (fresh == NULL) {
        return p->handles != 0;
    }
    free(p->by_handle);
    p->by_handle = fresh;
    p->handles = n;
    for (struct fl_pool_stream *s = p->streams; s != NULL; s = s->next) {
        if (!s->is_gone) {
            link_to_chain(p, s);
        }
    }
    return true;
}

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
}

static struct fl_pool_event *unqueue(struct fl_pool_stream *s, struct fl_pool_event *e)
{
    struct fl_pool_event **at = &s->first, *before = NULL;

    while (*at != e) {
        before = *at;
        at = &(*at)->next;
    }
    *at = e->next;
    s->last = s->last == e ? before : s->last;
    s->events--;
    return e;
}

static void spare(struct fl_gpu_pool *p, struct fl_pool_event *e)
{
    e->next = p->events;
    p->events = e;
}

/* One that nobody has anything of any more, or a new one, not to be found yet. */
static struct fl_pool_stream *record(struct fl_gpu_pool *p)
{
    struct fl_pool_stream *s = p->talkers == 0 && p->plan == NULL ? p->streams : NULL;

    while (s != NULL && !(s->is_gone && s->blocks + s->uses + s->awaited == 0)) {
        s = s->next;
    }
    if (s != NULL) {
        while (s->first != NULL) { /* that nobody asks any more */
            spare(p, unqueue(s, s->first));
        }
        *s = (struct fl_pool_stream){.next = s->next, .is_gone = true};
        return s;
    }
    s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->is_gone = true;
        s->next = p->streams;
        p->streams = s;
    }
    return s;
}

int fl_stream_make(struct fl_gpu_pool *p, void *stream)
{
    struct fl_gpu_guard g;
    unsigned long long id = (uintptr_t)handle_of(stream);
    int rc = 0;

    if (fl_cuda.cuStreamGetId != NULL) {
        rc = fl_pool_enter(p, &g);
        if (rc != 0) {
            return rc;
        }
        rc = fl_pool_status(p, fl_cuda.cuStreamGetId(handle_of(stream), &id), "cuStreamGetId", 0);
        fl_pool_leave(p, &g);
        if (rc != 0) {
            return rc;
        }
    }
    fl_lock_acquire(&p->lock);
    struct fl_pool_stream *s = fl_stream_find(p, stream);
    if (s == NULL) {
        s = more_chains(p) ? record(p) : NULL;
        if (s != NULL) {
            s->handle = handle_of(stream);
            s->thread = owner_of(stream);
            s->id = id;
            s->number = ++p->numbers;
            s->is_gone = false;
            link_to_chain(p, s);
            p->known++;
        }
    }
    fl_lock_release(&p->lock);
    return s != NULL ? 0 : fl_gpu_fail(-ENOMEM, "no memory for a stream's record");
}

void fl_stream_leave(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    struct fl_pool_stream **at = chain_of(p, s->handle, s->thread);

    while (*at != s) {
        at = &(*at)->alike;
    }
    *at = s->alike;
    p->known--;
    s->is_gone = true;
    atomic_fetch_add_explicit(&p->losses, 1, memory_order_relaxed);
}

uint64_t fl_stream_stamp(const struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    s->stamped = atomic_load_explicit(&p->epoch, memory_order_relaxed);
    return s->stamped;
}

/* ---- events ---- */

/* One to record on `s`: when there are many the newest of them, which the next covers as well. NULL: make one. */
static struct fl_pool_event *take_event(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    if (s->last != NULL && s->events >= FL_POOL_EVENTS_MOST) {
        return unqueue(s, s->last);
    }
    struct fl_pool_event *e = p->events;
    if (e != NULL) {
        p->events = e->next;
    }
    return e;
}

static int make_event(struct fl_gpu_pool *p, struct fl_pool_event **out)
{
    struct fl_pool_event *e = calloc(1, sizeof *e);
    int rc = e == NULL
                 ? fl_gpu_fail(-ENOMEM, "no memory for an event's record")
                 : fl_pool_status(p, fl_cuda.cuEventCreate(&e->handle, FL_CU_EVENT_DISABLE_TIMING),
                                  "cuEventCreate", 0);

    if (rc != 0) {
        free(e);
        e = NULL;
    }
    *out = e;
    return rc;
}

bool fl_stream_is_capturing(struct fl_gpu_pool *p, const struct fl_pool_stream *s)
{
    int status = FL_CU_STREAM_CAPTURE_STATUS_NONE;

    return !s->is_gone && fl_cuda.cuStreamIsCapturing != NULL &&
           fl_pool_status(p, fl_cuda.cuStreamIsCapturing(s->handle, &status), "cuStreamIsCapturing",
                          0) == 0 &&
           status != FL_CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The handle leads to another stream by now, or to none. */
static bool is_stale(struct fl_gpu_pool *p, const struct fl_pool_stream *s)
{
    unsigned long long id = 0;

    return fl_cuda.cuStreamGetId != NULL &&
           (fl_pool_status(p, fl_cuda.cuStreamGetId(s->handle, &id), "cuStreamGetId", 0) != 0 ||
            id != s->id);
}

/* Lock: not held. */
static int record_event(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_event **e)
{
    int rc = 0;

    if (fl_stream_is_capturing(p, s)) {
        return -EINPROGRESS;
    }
    if (*e == NULL) {
        rc = make_event(p, e);
    }
    return rc != 0 ? rc
                   : fl_pool_status(p, fl_cuda.cuEventRecord((*e)->handle, s->handle),
                                    "cuEventRecord", 0);
}

static void lose(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    if (!s->is_gone) {
        fl_stream_leave(p, s);
        p->s.quarantined += s->covered < s->stamped ? s->blocks : 0;
    }
}

bool fl_stream_verify(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    if (!is_stale(p, s)) {
        return true;
    }
    fl_lock_acquire(&p->lock);
    lose(p, s);
    fl_lock_release(&p->lock);
    return false;
}

int fl_stream_cover(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    if (s->is_gone || (s->thread != 0 && s->thread != fl_stream_thread())) {
        return s->is_gone ? -ESTALE : -EPERM;
    }
    struct fl_pool_event *e = take_event(p, s);
    uint64_t upto = atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed);
    fl_lock_release(&p->lock);
    bool stale = is_stale(p, s);
    int rc = stale ? -ESTALE : record_event(p, s, &e);
    fl_lock_acquire(&p->lock);
    if (rc == 0 && e != NULL) {
        p->s.events++;
        e->covers = upto;
        queue(s, e);
        s->covered = upto > s->covered ? upto : s->covered;
    } else if (e != NULL) {
        spare(p, e);
        /* It may have been taken from the queue: what it covered is not known to be covered any more. */
        uint64_t still = s->last != NULL ? s->last->covers : s->safe;
        s->covered = still < s->covered ? still : s->covered;
    }
    if (stale) {
        lose(p, s);
    }
    return rc;
}

void fl_stream_release(struct fl_gpu_pool *p, struct fl_pool_stream *t)
{
    struct fl_pool_block *b;

    if (!p->is_pinned && p->streams->next == NULL) {
        return; /* nobody else is there to have it */
    }
    while ((b = t->free.first) != NULL && b->stamp <= t->safe) {
        uint64_t by = b->freed_by;
        fl_block_withdraw(p, b);
        fl_block_assign(b, NULL, 0);
        b->freed_by = by;
        fl_block_put(p, b);
    }
}

void fl_stream_poll(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_CUresult code = FL_CUDA_SUCCESS;

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

/* Frees of `t` up to `upto` become frees of `s`, now: in order after them. */
static void move_frees(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                       uint64_t upto)
{
    uint64_t now = fl_stream_stamp(p, s);

    for (struct fl_pool_block *b = t->free.first, *next; b != NULL; b = next) {
        next = b->newer;
        if (b->stamp > upto) {
            continue;
        }
        uint64_t by = b->freed_by;
        fl_block_withdraw(p, b);
        fl_block_assign(b, s, now);
        b->freed_by = by;
        fl_block_put(p, b);
    }
}

int fl_stream_wait(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                   uint64_t stamp)
{
    int rc = 0;

    if (t->safe >= stamp) {
        fl_stream_release(p, t);
        return 0;
    }
    /* What is there may be in another thread's hands. */
    if (t->last == NULL || t->last->covers < stamp) {
        rc = fl_stream_cover(p, t);
    }
    if (rc != 0) {
        return rc;
    }
    struct fl_pool_event *e = unqueue(t, t->last);
    fl_lock_release(&p->lock);
    rc = p->is_pinned
             ? fl_pool_status(p, fl_cuda.cuEventSynchronize(e->handle), "cuEventSynchronize", 0)
             : fl_pool_status(p, fl_cuda.cuStreamWaitEvent(s->handle, e->handle, 0),
                              "cuStreamWaitEvent", 0);
    fl_lock_acquire(&p->lock);
    queue(t, e);
    if (rc != 0) {
        return rc;
    }
    p->s.waits++;
    if (p->is_pinned) {
        t->safe = e->covers > t->safe ? e->covers : t->safe;
        fl_stream_release(p, t);
    } else {
        move_frees(p, s, t, e->covers);
    }
    return 0;
}

bool fl_streams_unsafe(const struct fl_gpu_pool *p)
{
    const struct fl_pool_stream *s = p->streams;

    while (s != NULL && (s->blocks + s->awaited == 0 || s->safe >= s->stamped)) {
        s = s->next;
    }
    return s != NULL;
}

int fl_stream_sync_all(struct fl_gpu_pool *p)
{
    uint64_t upto = atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed);

    fl_lock_release(&p->lock);
    int rc = fl_pool_status(p, fl_cuda.cuCtxSynchronize(), "cuCtxSynchronize", 0);
    fl_lock_acquire(&p->lock);
    p->s.implicit_syncs++;
    for (struct fl_pool_stream *s = p->streams; s != NULL && rc == 0; s = s->next) {
        s->safe = upto > s->safe ? upto : s->safe;
        s->covered = s->safe > s->covered ? s->safe : s->covered;
        while (s->first != NULL && s->first->covers <= s->safe) {
            spare(p, unqueue(s, s->first));
        }
        fl_stream_release(p, s);
    }
    if (rc == 0) {
        fl_collect_pending(p);
    }
    return rc;
}

void fl_streams_free(struct fl_gpu_pool *p)
{
    for (struct fl_pool_stream *s = p->streams, *next; s != NULL; s = next) {
        next = s->next;
        while (s->first != NULL) {
            spare(p, unqueue(s, s->first));
        }
        free(s);
    }
    free(p->by_handle);
    for (struct fl_pool_event *e = p->events, *next; e != NULL; e = next) {
        next = e->next;
        if (!fl_pool_is_shut(p)) {
            (void)fl_cuda.cuEventDestroy(e->handle);
        }
        free(e);
    }
}
