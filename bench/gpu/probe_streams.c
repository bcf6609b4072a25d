/* Streams that were destroyed, and what outlives them. cuda.h: "undefined behavior"; what a driver
 * answers, if it answers. */
#include "gpu/probe.h"

enum { PENDING = 100 }; /* the stream is destroyed while it is busy */

static const struct {
    const char *name, *busy;
} asked[] = {
    {"dead/cuStreamQuery", "dead_busy/cuStreamQuery"},
    {"dead/cuStreamIsCapturing", "dead_busy/cuStreamIsCapturing"},
    {"dead/cuStreamGetId", "dead_busy/cuStreamGetId"},
    {"dead/cuStreamGetCtx", "dead_busy/cuStreamGetCtx"},
    {"dead/cuEventRecord", "dead_busy/cuEventRecord"},
    {"dead/cuStreamWaitEvent", "dead_busy/cuStreamWaitEvent"},
    {"dead/cuMemcpyHtoDAsync", "dead_busy/cuMemcpyHtoDAsync"},
    {"dead/cuStreamSynchronize", "dead_busy/cuStreamSynchronize"},
    {"dead/cuStreamDestroy", "dead_busy/cuStreamDestroy"},
};

static fl_CUresult ask(int which, fl_CUstream dead, fl_CUevent event, fl_CUdeviceptr to)
{
    fl_CUstreamCaptureStatus status;
    fl_CUcontext context = NULL;
    unsigned long long id;
    char bytes[16] = "";

    switch (which) {
    case 0:
        return CALL(cuStreamQuery, dead);
    case 1:
        return CALL(cuStreamIsCapturing, dead, &status);
    case 2:
        return CALL(cuStreamGetId, dead, &id);
    case 3:
        return CALL(cuStreamGetCtx, dead, &context);
    case 4:
        return CALL(cuEventRecord, event, dead);
    case 5:
        return CALL(cuStreamWaitEvent, dead, event, 0);
    case 6:
        return CALL(cuMemcpyHtoDAsync, to, bytes, sizeof bytes, dead);
    case 7:
        return CALL(cuStreamSynchronize, dead);
    default:
        return CALL(cuStreamDestroy, dead);
    }
}

static void dead_stream(int variant)
{
    int which = variant % PENDING;
    fl_CUevent event = NULL;

    probe_context();
    fl_CUdeviceptr to = probe_device(KIB(4));
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING),
                other = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    need(CALL(cuEventCreate, &event, FL_CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    need(CALL(cuEventRecord, event, other), "cuEventRecord");
    if (variant >= PENDING) {
        need(probe_hold(s), "hold");
    }
    need(CALL(cuStreamDestroy, s), "cuStreamDestroy");
    fl_CUresult code = ask(which, s, event, to), after = CALL(cuCtxSynchronize);
    fact(variant >= PENDING ? asked[which].busy : asked[which].name, "\"code\":%d,\"context\":%d",
         code, after);
}

/* An event that was recorded before its stream was destroyed still says when the work is done. */
static void event_outlives(int unused)
{
    fl_CUevent event = NULL;

    (void)unused;
    probe_context();
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING),
                other = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    need(CALL(cuEventCreate, &event, FL_CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    need(probe_hold(s), "hold");
    need(CALL(cuEventRecord, event, s), "cuEventRecord");
    double start = probe_ns();
    fl_CUresult end = CALL(cuStreamDestroy, s);
    double destroyed = probe_ns();
    fl_CUresult query = CALL(cuEventQuery, event), waits = CALL(cuStreamWaitEvent, other, event, 0),
                sync = CALL(cuEventSynchronize, event), again = CALL(cuEventQuery, event);
    fact("event_outlives_stream",
         "\"destroy\":%d,\"destroy_ms\":%.2f,\"query\":%d,\"wait\":%d,\"sync\":%d,\"query_after\":%"
         "d",
         end, (destroyed - start) / 1e6, query, waits, sync, again);
}

/* A handle comes back; its number does not. */
static void handle_reuse(int unused)
{
    unsigned long long id[2] = {0};
    unsigned same = 0;

    (void)unused;
    probe_context();
    for (int i = 0; i < 100; i++) {
        fl_CUstream a = probe_stream(FL_CU_STREAM_NON_BLOCKING);
        fl_CUresult code = CALL(cuStreamGetId, a, &id[0]);
        need(CALL(cuStreamDestroy, a), "cuStreamDestroy");
        fl_CUstream b = probe_stream(FL_CU_STREAM_NON_BLOCKING);
        (void)CALL(cuStreamGetId, b, &id[1]);
        same += a == b && code == FL_CUDA_SUCCESS && id[0] != id[1];
        need(CALL(cuStreamDestroy, b), "cuStreamDestroy");
    }
    fact("stream_id/reuse", "\"of\":100,\"same_handle_new_id\":%u,\"last_id\":%llu", same, id[1]);
}

/* NULL, the legacy handle (1) and the thread's own (2). */
static void special_ids(int unused)
{
    unsigned long long id[3] = {0};
    fl_CUresult code[3];

    (void)unused;
    probe_context();
    for (uintptr_t i = 0; i < 3; i++) { /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
        code[i] = CALL(cuStreamGetId, (fl_CUstream)i, &id[i]);
    }
    fact("stream_id/special",
         "\"code_null\":%d,\"null\":%llu,\"code_legacy\":%d,\"legacy\":%llu,\"code_thread\":%d,"
         "\"thread\":%llu",
         code[0], id[0], code[1], id[1], code[2], id[2]);
}

const struct probe probes_of_streams[] = {
    {"dead/cuStreamQuery", dead_stream, 0, false},
    {"dead/cuStreamIsCapturing", dead_stream, 1, false},
    {"dead/cuStreamGetId", dead_stream, 2, false},
    {"dead/cuStreamGetCtx", dead_stream, 3, false},
    {"dead/cuEventRecord", dead_stream, 4, false},
    {"dead/cuStreamWaitEvent", dead_stream, 5, false},
    {"dead/cuMemcpyHtoDAsync", dead_stream, 6, false},
    {"dead/cuStreamSynchronize", dead_stream, 7, false},
    {"dead/cuStreamDestroy", dead_stream, 8, false},
    {"dead_busy/cuStreamQuery", dead_stream, PENDING + 0, false},
    {"dead_busy/cuStreamIsCapturing", dead_stream, PENDING + 1, false},
    {"dead_busy/cuStreamGetId", dead_stream, PENDING + 2, false},
    {"dead_busy/cuStreamGetCtx", dead_stream, PENDING + 3, false},
    {"dead_busy/cuEventRecord", dead_stream, PENDING + 4, false},
    {"dead_busy/cuStreamWaitEvent", dead_stream, PENDING + 5, false},
    {"dead_busy/cuMemcpyHtoDAsync", dead_stream, PENDING + 6, false},
    {"dead_busy/cuStreamSynchronize", dead_stream, PENDING + 7, false},
    {"dead_busy/cuStreamDestroy", dead_stream, PENDING + 8, false},
    {"event_outlives_stream", event_outlives, 0, false},
    {"stream_id/reuse", handle_reuse, 0, false},
    {"stream_id/special", special_ids, 0, false},
    {NULL, NULL, 0, false},
};
