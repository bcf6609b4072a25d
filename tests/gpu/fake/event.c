/* Events. A handle is not given out again before all others were, so that a stale one is found. */
#include "gpu/fake/internal.h"

#include <string.h>

enum { EVENTS = 4096 };

static struct fake_event {
    bool alive, captured;
    struct fake_context *context;
    struct fake_stream *stream; /* NULL: never recorded, which counts as done */
    uint64_t seq;
    struct fake_clock clock;
} events[EVENTS];
static unsigned next_event;

static struct fake_event *event_of(fl_CUevent handle)
{
    struct fake_event *e = (struct fake_event *)(void *)handle;

    if (e < events || e >= events + EVENTS || !e->alive) {
        fake_violation("%s: no such event", fake_call_now());
        return NULL;
    }
    return e;
}

fl_CUresult fake_cuEventCreate(fl_CUevent *event, unsigned flags)
{
    FAKE_ENTER(cuEventCreate, FAKE_CONTEXT);
    struct fake_event *e = NULL;

    (void)flags;
    for (unsigned i = 0; i < EVENTS && e == NULL; i++) {
        e = events[next_event].alive ? NULL : &events[next_event];
        next_event = (next_event + 1) % EVENTS;
    }
    FAKE_REFUSE(e == NULL, FL_CUDA_ERROR_OUT_OF_MEMORY);
    e->alive = true;
    fake_figures.live++;
    e->captured = false;
    e->stream = NULL;
    e->context = fake_context_now();
    *event = (fl_CUevent)(void *)e;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuEventDestroy(fl_CUevent event)
{
    FAKE_ENTER(cuEventDestroy, FAKE_CONTEXT);
    struct fake_event *e = event_of(event);

    FAKE_REFUSE(e == NULL, FL_CUDA_ERROR_INVALID_HANDLE);
    e->alive = false;
    fake_figures.live--;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuEventRecord(fl_CUevent event, fl_CUstream stream)
{
    FAKE_ENTER(cuEventRecord, FAKE_CONTEXT);
    struct fake_event *e = event_of(event);
    struct fake_stream *s = fake_stream_anywhere(stream);
    struct fake_op mark = {.kind = FAKE_OP_MARK};

    FAKE_REFUSE(e == NULL || s == NULL, FL_CUDA_ERROR_INVALID_HANDLE);
    if (e->context != s->context) {
        fake_violation("cuEventRecord of an event of another context");
        return fake_leave(FL_CUDA_ERROR_INVALID_HANDLE);
    }
    FAKE_REFUSE(fake_stream_is_implicit(s), FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    e->captured = s->capturing;
    if (!s->capturing) {
        fake_submit_order(s);
        e->stream = s;
        e->clock = s->clock;
        e->seq = s->tail + 1; /* the mark's */
        fake_submit(s, &mark);
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

/* What the host asks of: a captured one it may not. NULL: see `out`. */
static struct fake_event *asked(fl_CUevent event, fl_CUresult *out)
{
    struct fake_event *e = event_of(event);

    *out = e == NULL ? FL_CUDA_ERROR_INVALID_HANDLE : FL_CUDA_ERROR_CAPTURED_EVENT;
    if (e != NULL && e->captured) {
        fake_violation("%s of a captured event", fake_call_now());
    }
    return e != NULL && !e->captured ? e : NULL;
}

fl_CUresult fake_cuEventQuery(fl_CUevent event)
{
    FAKE_ENTER(cuEventQuery, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    fl_CUresult code;
    const struct fake_event *e = asked(event, &code);

    FAKE_REFUSE(e == NULL, code);
    if (e->stream != NULL) {
        if (e->stream->done < e->seq) {
            return fake_leave(FL_CUDA_ERROR_NOT_READY);
        }
        fake_clock_join(&fake_host, &e->clock);
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuEventSynchronize(fl_CUevent event)
{
    FAKE_ENTER(cuEventSynchronize, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    fl_CUresult code;
    const struct fake_event *e = asked(event, &code);

    FAKE_REFUSE(e == NULL, code);
    if (e->stream != NULL) {
        fake_run(e->stream, e->seq);
        fake_clock_join(&fake_host, &e->clock);
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamWaitEvent(fl_CUstream stream, fl_CUevent event, unsigned flags)
{
    FAKE_ENTER(cuStreamWaitEvent, FAKE_CONTEXT);
    struct fake_stream *s = fake_stream_anywhere(stream);
    struct fake_event *e = event_of(event);

    FAKE_REFUSE(e == NULL || s == NULL, FL_CUDA_ERROR_INVALID_HANDLE);
    if (e->captured != s->capturing) {
        fake_violation("cuStreamWaitEvent from %s a capture", s->capturing ? "within" : "outside");
        return fake_leave(FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    FAKE_REFUSE(fake_stream_is_implicit(s), FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    FAKE_REFUSE(flags != 0, FL_CUDA_ERROR_INVALID_VALUE);
    if (e->stream != NULL && !s->capturing) {
        fake_wait_for(s, e->stream, e->seq, &e->clock);
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

void fake_event_reset(void)
{
    memset(events, 0, sizeof events[0] * EVENTS);
    next_event = 0;
}
