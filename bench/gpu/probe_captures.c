/* What a call answers while a stream is captured into a graph, and whether the capture survives it.
 * For each call one line with seven answers: the capture's mode; "relaxed_thread": the calling
 * thread is relaxed (cuThreadExchangeStreamCaptureMode); "other_thread": another began the capture.
 * An answer is [code of the call, code and status of cuStreamIsCapturing after it (1: active, 2:
 * broken), code of the capture's end]. Calls on the legacy stream: a blocking one is captured. */
#include "gpu/probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* What calls act on: made before each capture begins. */
static struct {
    fl_CUstream other, victim, captured;
    fl_CUevent done, event;
    fl_CUdeviceptr memory, freed;
    void *pinned;
    unsigned char *pages, *registered;
} the;

/* What they write to. */
static struct {
    fl_CUstreamCaptureStatus status;
    fl_CUevent event;
    fl_CUstream stream;
    size_t size[2];
    fl_CUdeviceptr address;
    void *pointer;
    unsigned long long id;
    fl_CUcontext context;
} out;

/* X(suffix of the name, call, its arguments) */
#define CALLS(X)                                                                                   \
    X(, cuCtxSynchronize, )                                                                        \
    X(, cuStreamSynchronize, the.other)                                                            \
    X(, cuStreamQuery, the.other)                                                                  \
    X(, cuStreamIsCapturing, the.other, &out.status)                                               \
    X(, cuEventQuery, the.done)                                                                    \
    X(, cuEventSynchronize, the.done)                                                              \
    X(, cuEventRecord, the.event, the.other)                                                       \
    X(, cuStreamWaitEvent, the.other, the.done, 0)                                                 \
    X(, cuEventCreate, &out.event, FL_CU_EVENT_DISABLE_TIMING)                                     \
    X(, cuEventDestroy, the.event)                                                                 \
    X(, cuStreamCreate, &out.stream, FL_CU_STREAM_NON_BLOCKING)                                    \
    X(, cuStreamDestroy, the.victim)                                                               \
    X(, cuMemGetInfo, &out.size[0], &out.size[1])                                                  \
    X(, cuMemAlloc, &out.address, MIB(4))                                                          \
    X(, cuMemFree, the.freed)                                                                      \
    X(, cuMemHostAlloc, &out.pointer, MIB(2), 0)                                                   \
    X(, cuMemFreeHost, the.pinned)                                                                 \
    X(, cuMemHostRegister, the.pages, MIB(2), 0)                                                   \
    X(, cuMemHostUnregister, the.registered)                                                       \
    X(, cuMemcpyHtoDAsync, the.memory, the.registered, KIB(4), the.other)                          \
    X(_captured, cuStreamQuery, the.captured)                                                      \
    X(_captured, cuStreamGetId, the.captured, &out.id)                                             \
    X(_captured, cuStreamGetCtx, the.captured, &out.context)                                       \
    X(_captured, cuStreamSynchronize, the.captured)                                                \
    X(_captured, cuEventRecord, the.event, the.captured)                                           \
    X(_captured, cuStreamWaitEvent, the.captured, the.done, 0)                                     \
    X(_legacy, cuStreamIsCapturing, NULL, &out.status)                                             \
    X(_legacy, cuStreamGetId, NULL, &out.id)                                                       \
    X(_legacy, cuStreamQuery, NULL)                                                                \
    X(_legacy, cuEventRecord, the.event, NULL)                                                     \
    X(_legacy, cuStreamWaitEvent, NULL, the.done, 0)                                               \
    X(_legacy, cuStreamSynchronize, NULL)                                                          \
    X(_legacy, cuMemcpyHtoDAsync, the.memory, the.registered, KIB(4), NULL)

#define X(suffix, name, ...)                                                                       \
    static fl_CUresult ask_##name##suffix(void)                                                    \
    {                                                                                              \
        return CALL(name, __VA_ARGS__);                                                            \
    }
CALLS(X)
#undef X

static const struct {
    const char *name;
    fl_CUresult (*ask)(void);
} asked[] = {
#define X(suffix, name, ...) {"capture" #suffix "/" #name, ask_##name##suffix},
    CALLS(X)
#undef X
};

static const struct way {
    const char *name;
    fl_CUstreamCaptureMode mode;
    bool relaxed, elsewhere;
} ways[] = {
    {"global", 0, false, false},
    {"global_relaxed_thread", 0, true, false},
    {"global_other_thread", 0, false, true},
    {"local", 1, false, false},
    {"local_relaxed_thread", 1, true, false},
    {"local_other_thread", 1, false, true},
    {"relaxed", FL_CU_STREAM_CAPTURE_MODE_RELAXED, false, false},
};

static fl_CUresult begin(fl_CUstreamCaptureMode mode)
{
    if (fake != NULL) {
        fake->capture_as(mode);
        fake->capture(the.captured, true);
        return FL_CUDA_SUCCESS;
    }
    return CALL(cuStreamBeginCapture, the.captured, mode);
}

static fl_CUresult end(void)
{
    probe_CUgraph graph = NULL;

    if (fake != NULL) {
        fake->capture(the.captured, false);
        return FL_CUDA_SUCCESS;
    }
    fl_CUresult code = CALL(cuStreamEndCapture, the.captured, &graph);
    (void)(graph != NULL ? CALL(cuGraphDestroy, graph) : 0);
    return code;
}

static void prepare(bool blocking)
{
    the.other = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    the.victim = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    the.captured = probe_stream(blocking ? 0 : FL_CU_STREAM_NON_BLOCKING);
    need(CALL(cuEventCreate, &the.done, FL_CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    need(CALL(cuEventCreate, &the.event, FL_CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    need(CALL(cuEventRecord, the.done, the.other), "cuEventRecord");
    the.memory = probe_device(MIB(2));
    the.freed = probe_device(MIB(2));
    need(CALL(cuMemHostAlloc, &the.pinned, MIB(2), 0), "cuMemHostAlloc");
    the.pages = probe_pages(MIB(2), 1);
    the.registered = probe_pages(MIB(2), 1);
    need(CALL(cuMemHostRegister, the.registered, MIB(2), 0), "cuMemHostRegister");
    need(CALL(cuCtxSynchronize), "cuCtxSynchronize");
}

/* The thread that captures, where it is not the one that calls. */
struct capturer {
    pthread_barrier_t step;
    fl_CUcontext context;
    fl_CUstreamCaptureMode mode;
    fl_CUresult begun, ended;
};

static void *capture_elsewhere(void *arg)
{
    struct capturer *c = arg;

    (void)CALL(cuCtxSetCurrent, c->context);
    c->begun = begin(c->mode);
    pthread_barrier_wait(&c->step);
    pthread_barrier_wait(&c->step);
    c->ended = end();
    return NULL;
}

/* The answer is appended to `line`. */
static void ask_one(int which, const struct way *w, char *line, size_t room)
{
    struct capturer c = {.mode = w->mode};
    fl_CUstreamCaptureMode mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED;
    fl_CUstreamCaptureStatus status = -1;
    pthread_t thread;

    prepare(strncmp(asked[which].name, "capture_legacy", 14) == 0);
    (void)CALL(cuCtxGetCurrent, &c.context);
    pthread_barrier_init(&c.step, NULL, 2);
    if (w->elsewhere) {
        need(pthread_create(&thread, NULL, capture_elsewhere, &c), "pthread_create");
        pthread_barrier_wait(&c.step);
    } else {
        c.begun = begin(w->mode);
    }
    need(c.begun, "cuStreamBeginCapture");
    (void)(w->relaxed ? CALL(cuThreadExchangeStreamCaptureMode, &mode) : 0);
    fl_CUresult code = asked[which].ask();
    (void)(w->relaxed ? CALL(cuThreadExchangeStreamCaptureMode, &mode) : 0);
    fl_CUresult after = CALL(cuStreamIsCapturing, the.captured, &status);
    if (w->elsewhere) {
        pthread_barrier_wait(&c.step);
        pthread_join(thread, NULL);
    } else {
        c.ended = end();
    }
    size_t len = strlen(line);
    (void)snprintf(line + len, room - len, "%s\"%s\":[%d,%d,%d,%d]", len > 0 ? "," : "", w->name,
                   code, after, status, c.ended);
}

static void capture(int which)
{
    char line[1024] = "";

    probe_context();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ask_one(which, &ways[i], line, sizeof line);
    }
    fact(asked[which].name, "%s", line);
}

/* A thread captures a blocking stream, again and again, while this one does what a pool does at a
 * free on the legacy stream: it asks whether that is captured, and records an event if not. */
static atomic_bool stop;

struct race {
    fl_CUcontext context;
    unsigned captures, broken;
};

static void *capture_again(void *arg)
{
    struct race *r = arg;

    (void)CALL(cuCtxSetCurrent, r->context);
    for (; !atomic_load(&stop); r->captures++) {
        need(begin(0), "cuStreamBeginCapture");
        fl_CUstreamCaptureStatus status = 0;
        fl_CUresult code = CALL(cuStreamIsCapturing, the.captured, &status);
        r->broken += end() != FL_CUDA_SUCCESS || code != FL_CUDA_SUCCESS || status != 1;
    }
    return NULL;
}

static void race(int records_too)
{
    struct race r = {.captures = 0};
    unsigned records = 0, refused = 0;
    pthread_t thread;

    probe_context();
    prepare(true);
    need(CALL(cuCtxGetCurrent, &r.context), "cuCtxGetCurrent");
    double end_at = probe_ns() + (smoke ? 1e7 : 2e9);
    need(pthread_create(&thread, NULL, capture_again, &r), "pthread_create");
    while (probe_ns() < end_at) {
        fl_CUstreamCaptureStatus status = 0;
        if (CALL(cuStreamIsCapturing, NULL, &status) == FL_CUDA_SUCCESS && status == 0 &&
            records_too != 0) {
            records++;
            refused += CALL(cuEventRecord, the.event, NULL) != FL_CUDA_SUCCESS;
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    fact(records_too != 0 ? "capture_race/record" : "capture_race/ask",
         "\"captures\":%u,\"broken\":%u,\"records\":%u,\"refused\":%u", r.captures, r.broken,
         records, refused);
}

enum index {
#define X(suffix, name, ...) INDEX_##name##suffix,
    CALLS(X)
#undef X
};

const struct probe probes_of_captures[] = {
#define X(suffix, name, ...) {"capture" #suffix "/" #name, capture, INDEX_##name##suffix, true},
    CALLS(X)
#undef X
        {"capture_race/ask", race, 0, false},
    {"capture_race/record", race, 1, false},
    {NULL, NULL, 0, false},
};
