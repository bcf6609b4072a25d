/* What is captured into a graph, and what that forbids: see cuThreadExchangeStreamCaptureMode and
 * cuStreamIsCapturing in cuda.h. */
#include "gpu/fake/internal.h"

static fl_CUstreamCaptureMode begin_as;                   /* captures to come */
static _Thread_local fl_CUstreamCaptureMode capture_mode; /* 0: global, the driver's default */

static bool is_implicit(const struct fake_stream *s)
{
    const struct fake_stream *o = s->legacy ? fake_streams() : NULL;

    while (o != NULL && !(o->capturing && o->blocking && o->context == s->context)) {
        o = o->next;
    }
    return o != NULL;
}

bool fake_stream_is_implicit(const struct fake_stream *s)
{
    if (!is_implicit(s)) {
        return false;
    }
    fake_violation("%s on the legacy stream breaks the capture of a blocking one", fake_call_now());
    return true;
}

/* cuda.h: in global mode what this thread captures unless relaxed, and what others capture
 * globally; thread-local: the first alone; relaxed: nothing, but for what a capture cannot stand at
 * all. */
bool fake_capture_forbids(bool whole_context)
{
    const struct fake_context *c = fake_context_now();

    for (const struct fake_stream *s = fake_streams(); s != NULL; s = s->next) {
        bool mine = pthread_equal(s->capture_thread, pthread_self()) != 0;
        bool forbids = mine ? s->capture_mode != FL_CU_STREAM_CAPTURE_MODE_RELAXED
                            : s->capture_mode == 0 && capture_mode == 0;
        if (s->capturing && ((whole_context && s->context == c) ||
                             (forbids && capture_mode != FL_CU_STREAM_CAPTURE_MODE_RELAXED))) {
            return true;
        }
    }
    return false;
}

fl_CUresult fake_cuThreadExchangeStreamCaptureMode(fl_CUstreamCaptureMode *next)
{
    FAKE_ENTER(cuThreadExchangeStreamCaptureMode, 0);
    const fl_CUstreamCaptureMode was = capture_mode;

    capture_mode = *next;
    *next = was;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuStreamIsCapturing(fl_CUstream stream, int *status)
{
    FAKE_ENTER(cuStreamIsCapturing, FAKE_CONTEXT);
    const struct fake_stream *s = fake_stream_anywhere(stream);

    FAKE_REFUSE(s == NULL, FAKE_DEAD);
    if (is_implicit(s)) {
        return fake_leave(FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT); /* and *status is anything */
    }
    *status = s->capturing ? 1 : FL_CU_STREAM_CAPTURE_STATUS_NONE;
    return fake_leave(FL_CUDA_SUCCESS);
}

void fake_capture(void *stream, bool on)
{
    struct fake_stream *s = fake_stream_of(stream);

    if (s != NULL) {
        s->capturing = on;
        s->capture_mode = begin_as;
        s->capture_thread = pthread_self();
    }
}

void fake_capture_as(int as)
{
    begin_as = as;
}
