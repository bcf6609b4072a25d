/* Streams: what is queued, and when it runs. Events are in event.c.
 *
 * A handle of a stream that was destroyed is given out again first, as drivers do; its number
 * (cuStreamGetId) is not. What ran in a stream stays known after its end, for others may wait for
 * it. */
#include "gpu/fake/internal.h"

#include <stdlib.h>
#include <string.h>

enum { HANDLES = 256 };

/* What a handle points to. */
static struct handle {
    struct fake_stream *now; /* NULL: none */
} handles[HANDLES];
static unsigned last_ended; /* where the next handle is looked for first */
static struct fake_stream *all;
static uint64_t ids;
static enum fake_cuda_mode mode;

static struct fake_stream *stream_add(struct fake_context *c, bool blocking, bool legacy)
{
    unsigned component = fake_component_new();
    struct fake_stream *s;

    if (component == 0) {
        return NULL;
    }
    s = fake_zalloc(sizeof *s);
    s->component = component;
    s->context = c;
    s->blocking = blocking;
    s->legacy = legacy;
    s->alive = true;
    s->id = ++ids;
    s->next = all;
    all = s;
    return s;
}

static struct fake_stream *legacy_of(struct fake_context *c)
{
    struct fake_stream *s = all;

    while (s != NULL && !(s->legacy && s->context == c)) {
        s = s->next;
    }
    return s != NULL ? s : stream_add(c, true, true);
}

/* The calling thread has one in each context. */
static struct fake_stream *own_of(struct fake_context *c)
{
    static _Atomic unsigned threads;
    static _Thread_local unsigned me;
    struct fake_stream *s = all;

    me = me != 0 ? me : ++threads;
    while (s != NULL && !(s->thread == me && s->context == c)) {
        s = s->next;
    }
    if (s == NULL && (s = stream_add(c, true, false)) != NULL) {
        s->thread = me;
    }
    return s;
}

struct fake_stream *fake_streams(void)
{
    return all;
}

struct fake_stream *fake_stream_anywhere(fl_CUstream handle)
{
    uintptr_t number = (uintptr_t)handle;
    struct fake_context *c = fake_context_now();
    struct fake_stream *s = NULL;

    if (number <= 1) {
        return c == NULL ? NULL : legacy_of(c);
    }
    if (number == 2) {
        return c == NULL ? NULL : own_of(c);
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        if ((void *)&handles[i] == (void *)handle) {
            s = handles[i].now;
        }
    }
    if (s == NULL) {
        fake_violation("%s: no such stream", fake_call_now());
    }
    return s;
}

struct fake_stream *fake_stream_of(fl_CUstream handle)
{
    const struct fake_context *c = fake_context_now();
    struct fake_stream *s = fake_stream_anywhere(handle);

    if (s != NULL && c != NULL && s->context != c) {
        fake_violation("%s: the stream is another context's", fake_call_now());
        s = NULL;
    }
    return s;
}

fl_CUresult fake_cuStreamCreate(fl_CUstream *stream, unsigned flags)
{
    FAKE_ENTER(cuStreamCreate, FAKE_CONTEXT);
    unsigned i = last_ended, tried = 0;

    while (tried < HANDLES && handles[i].now != NULL) {
        i = (i + 1) % HANDLES;
        tried++;
    }
    struct fake_stream *s =
        tried == HANDLES
            ? NULL
            : stream_add(fake_context_now(), (flags & FL_CU_STREAM_NON_BLOCKING) == 0, false);
    FAKE_REFUSE(s == NULL, FL_CUDA_ERROR_OUT_OF_MEMORY);
    handles[i].now = s;
    fake_figures.live++;
    *stream = (fl_CUstream)(void *)&handles[i];
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamDestroy(fl_CUstream stream)
{
    FAKE_ENTER(cuStreamDestroy, FAKE_CONTEXT);
    struct fake_stream *s = (uintptr_t)stream <= 2 ? NULL : fake_stream_of(stream);

    FAKE_REFUSE(s == NULL, FL_CUDA_ERROR_INVALID_HANDLE);
    s->alive = false; /* what is queued still runs */
    last_ended = (unsigned)((struct handle *)(void *)stream - handles);
    handles[last_ended].now = NULL;
    fake_figures.live--;
    return fake_leave(FL_CUDA_SUCCESS);
}

void fake_stream_context_ends(struct fake_context *c)
{
    for (struct fake_stream *s = all; s != NULL; s = s->next) {
        if (s->context == c && s->alive) {
            fake_run(s, s->tail);
            s->alive = false;
        }
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        if (handles[i].now != NULL && handles[i].now->context == c) {
            handles[i].now = NULL;
            fake_figures.live--;
        }
    }
}

static void free_op(struct fake_op *op)
{
    while (op->waits != NULL) {
        struct fake_wait *w = op->waits;
        op->waits = w->next;
        free(w);
    }
    free(op->snapshot);
    free(op);
}

void fake_run(struct fake_stream *s, uint64_t upto)
{
    while (s->first != NULL && s->first->seq <= upto) {
        struct fake_op *op = s->first;
        for (const struct fake_wait *w = op->waits; w != NULL; w = w->next) {
            fake_run(w->stream, w->seq); /* what was queued before this, so it ends */
        }
        s->first = op->next;
        s->last = s->first == NULL ? NULL : s->last;
        fake_execute(op);
        s->done = op->seq;
        free_op(op);
    }
}

static void add_wait(struct fake_op *op, struct fake_stream *s, uint64_t seq)
{
    if (s->done < seq) {
        struct fake_wait *w = fake_zalloc(sizeof *w);
        *w = (struct fake_wait){s, seq, op->waits};
        op->waits = w;
    }
}

static bool synchronises(const struct fake_stream *s, const struct fake_stream *other)
{
    return s != other && s->context == other->context && s->blocking && other->blocking &&
           (s->legacy || other->legacy);
}

void fake_submit_order(struct fake_stream *s)
{
    fake_clock_join(&s->clock, &fake_host);
    for (struct fake_stream *o = all; o != NULL; o = o->next) {
        if (synchronises(s, o)) {
            fake_clock_join(&s->clock, &o->clock);
        }
    }
    s->clock.at[s->component]++;
    fake_host.at[FAKE_HOST]++;
}

static struct fake_op *queue(struct fake_stream *s, const struct fake_op *what)
{
    struct fake_op *op = fake_zalloc(sizeof *op);

    *op = *what;
    op->next = NULL;
    op->waits = NULL;
    op->seq = ++s->tail;
    for (struct fake_stream *o = all; o != NULL; o = o->next) {
        if (synchronises(s, o)) {
            add_wait(op, o, o->tail);
        }
    }
    if (s->last != NULL) {
        s->last->next = op;
    } else {
        s->first = op;
    }
    s->last = op;
    return op;
}

void fake_submit(struct fake_stream *s, const struct fake_op *op)
{
    (void)queue(s, op);
    fake_submitted();
}

void fake_wait_for(struct fake_stream *s, struct fake_stream *other, uint64_t seq,
                   const struct fake_clock *clock)
{
    struct fake_op mark = {.kind = FAKE_OP_MARK};

    fake_submit_order(s);
    fake_clock_join(&s->clock, clock);
    add_wait(queue(s, &mark), other, seq);
    fake_submitted();
}

void fake_submitted(void)
{
    if (mode == FAKE_CUDA_EAGER) {
        fake_run_all();
    } else {
        fake_progress();
    }
}

void fake_run_all(void)
{
    for (struct fake_stream *s = all; s != NULL; s = s->next) {
        fake_run(s, s->tail);
    }
}

/* Nothing up to there is held, nor what that waits for. */
static bool runs_to(const struct fake_stream *s, uint64_t upto)
{
    bool runs = true;

    for (const struct fake_op *op = s->first; op != NULL && op->seq <= upto && runs;
         op = op->next) {
        runs = !op->holds;
        for (const struct fake_wait *w = op->waits; w != NULL && runs; w = w->next) {
            runs = runs_to(w->stream, w->seq);
        }
    }
    return runs;
}

static bool may_go_on(const struct fake_stream *s)
{
    return s->first != NULL && runs_to(s, s->first->seq);
}

void fake_progress(void)
{
    unsigned n = 0, some = mode == FAKE_CUDA_RANDOM ? (unsigned)(fake_random() % 4) : 0;

    for (const struct fake_stream *s = all; s != NULL && some > 0; s = s->next) {
        n += may_go_on(s);
    }
    for (; some > 0 && n > 0; some--) {
        unsigned which = (unsigned)(fake_random() % n);
        for (struct fake_stream *s = all; s != NULL; s = s->next) {
            if (may_go_on(s) && which-- == 0) {
                fake_run(s, s->first->seq);
                break;
            }
        }
    }
}

void fake_host_joins(struct fake_stream *s)
{
    fake_run(s, s->tail);
    fake_clock_join(&fake_host, &s->clock);
}

void fake_sync_device(int device)
{
    for (struct fake_stream *s = all; s != NULL; s = s->next) {
        if (device < 0 || s->context->device == device) {
            fake_host_joins(s);
        }
    }
}

bool fake_is_queued(uint64_t lo, size_t len)
{
    for (const struct fake_stream *s = all; s != NULL; s = s->next) {
        for (const struct fake_op *op = s->first; op != NULL; op = op->next) {
            if (op->kind == FAKE_OP_MARK) {
                continue;
            }
            bool to = op->to < lo + len && lo < op->to + op->len,
                 from = op->kind == FAKE_OP_COPY && op->snapshot == NULL && op->from < lo + len &&
                        lo < op->from + op->len;
            if (to || from) {
                return true;
            }
        }
    }
    return false;
}

fl_CUresult fake_cuStreamSynchronize(fl_CUstream stream)
{
    FAKE_ENTER(cuStreamSynchronize, FAKE_CONTEXT);
    struct fake_stream *s = fake_stream_of(stream);

    FAKE_REFUSE(s == NULL, FAKE_DEAD);
    if (s->capturing) {
        fake_violation("cuStreamSynchronize breaks a capture");
        return fake_leave(FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    FAKE_REFUSE(fake_stream_is_implicit(s), FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    fake_host_joins(s);
    for (struct fake_stream *o = all; o != NULL; o = o->next) {
        if (s->legacy && synchronises(s, o)) {
            fake_host_joins(o);
        }
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamQuery(fl_CUstream stream)
{
    FAKE_ENTER(cuStreamQuery, FAKE_CONTEXT);
    struct fake_stream *s = fake_stream_of(stream);

    FAKE_REFUSE(s == NULL, FAKE_DEAD);
    if (s->capturing || fake_stream_is_implicit(s)) {
        fake_violation("cuStreamQuery breaks a capture");
        return fake_leave(FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    FAKE_REFUSE(s->first != NULL, FL_CUDA_ERROR_NOT_READY);
    fake_host_joins(s);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamGetId(fl_CUstream stream, unsigned long long *id)
{
    FAKE_ENTER(cuStreamGetId, FAKE_CONTEXT);
    const struct fake_stream *s = fake_stream_anywhere(stream);

    FAKE_REFUSE(s == NULL, FAKE_DEAD);
    FAKE_REFUSE(fake_stream_is_implicit(s), FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (s->capturing) { /* cuda.h is silent; so on 580.159.04 */
        fake_violation("cuStreamGetId breaks a capture");
        return fake_leave(FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    *id = s->id;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamGetCtx(fl_CUstream stream, fl_CUcontext *context)
{
    FAKE_ENTER(cuStreamGetCtx, FAKE_CONTEXT);
    struct fake_stream *s = fake_stream_anywhere(stream);

    FAKE_REFUSE(s == NULL, FAKE_DEAD);
    *context = (fl_CUcontext)(void *)s->context;
    return fake_leave(FL_CUDA_SUCCESS);
}

void fake_schedule(enum fake_cuda_mode to, uint64_t seed)
{
    (void)seed;
    mode = to;
    if (mode == FAKE_CUDA_EAGER) {
        fake_run_all();
    }
}

void fake_stream_reset(void)
{
    fake_event_reset();
    while (all != NULL) {
        struct fake_stream *s = all;
        all = s->next;
        while (s->first != NULL) {
            struct fake_op *op = s->first;
            s->first = op->next;
            free_op(op);
        }
        free(s);
    }
    memset(handles, 0, sizeof handles);
    last_ended = 0;
    fake_capture_as(0);
}
