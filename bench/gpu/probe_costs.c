/* What a call costs the thread that makes it, in ns: the median of 11 rounds. */
#include "gpu/probe.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 11 };

static struct {
    fl_CUcontext context;
    fl_CUstream stream, other;
    fl_CUevent event;
    fl_CUdeviceptr memory;
    unsigned char *pages;
} the;

static fl_CUresult push_pop(void)
{
    fl_CUcontext c;
    fl_CUresult code = CALL(cuCtxPushCurrent, the.context);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuCtxPopCurrent, &c);
}

static fl_CUresult get_current(void)
{
    fl_CUcontext c;

    return CALL(cuCtxGetCurrent, &c);
}

static fl_CUresult exchange_twice(void)
{
    fl_CUstreamCaptureMode mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED;
    fl_CUresult code = CALL(cuThreadExchangeStreamCaptureMode, &mode);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuThreadExchangeStreamCaptureMode, &mode);
}

static fl_CUresult is_capturing(void)
{
    fl_CUstreamCaptureStatus status;

    return CALL(cuStreamIsCapturing, the.stream, &status);
}

static fl_CUresult get_id(void)
{
    unsigned long long id;

    return CALL(cuStreamGetId, the.stream, &id);
}

static fl_CUresult record(void)
{
    return CALL(cuEventRecord, the.event, the.stream);
}

static fl_CUresult query(void)
{
    return CALL(cuEventQuery, the.event);
}

static fl_CUresult wait_event(void)
{
    return CALL(cuStreamWaitEvent, the.other, the.event, 0);
}

static fl_CUresult event_pair(void)
{
    fl_CUevent e = NULL;
    fl_CUresult code = CALL(cuEventCreate, &e, FL_CU_EVENT_DISABLE_TIMING);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuEventDestroy, e);
}

static fl_CUresult stream_pair(void)
{
    fl_CUstream s = NULL;
    fl_CUresult code = CALL(cuStreamCreate, &s, FL_CU_STREAM_NON_BLOCKING);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuStreamDestroy, s);
}

static fl_CUresult memory_pair(size_t len)
{
    fl_CUdeviceptr p = 0;
    fl_CUresult code = CALL(cuMemAlloc, &p, len);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuMemFree, p);
}

static fl_CUresult small_pair(void)
{
    return memory_pair(KIB(64));
}

static fl_CUresult large_pair(void)
{
    return memory_pair(MIB(64));
}

static fl_CUresult info(void)
{
    size_t a, b;

    return CALL(cuMemGetInfo, &a, &b);
}

static fl_CUresult host_pair(void)
{
    void *p = NULL;
    fl_CUresult code = CALL(cuMemHostAlloc, &p, MIB(2), 0);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuMemFreeHost, p);
}

static fl_CUresult register_pair(void)
{
    fl_CUresult code = CALL(cuMemHostRegister, the.pages, MIB(2), 0);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuMemHostUnregister, the.pages);
}

static fl_CUresult fill(void)
{
    return CALL(cuMemsetD8Async, the.memory, 0, 4096, the.stream);
}

static const struct {
    const char *name;
    fl_CUresult (*call)(void);
    unsigned n; /* calls a round: a round is followed by a synchronisation that does not count */
} rows[] = {
    {"cost/cuCtxGetCurrent", get_current, 1000},
    {"cost/cuCtxPushCurrent_and_pop", push_pop, 1000},
    {"cost/cuThreadExchangeStreamCaptureMode_twice", exchange_twice, 1000},
    {"cost/cuStreamIsCapturing", is_capturing, 1000},
    {"cost/cuStreamGetId", get_id, 1000},
    {"cost/cuEventRecord", record, 200},
    {"cost/cuEventQuery", query, 1000},
    {"cost/cuStreamWaitEvent", wait_event, 200},
    {"cost/cuEventCreate_and_destroy", event_pair, 200},
    {"cost/cuStreamCreate_and_destroy", stream_pair, 20},
    {"cost/cuMemsetD8Async_4_KiB", fill, 200},
    {"cost/cuMemGetInfo", info, 50},
    {"cost/cuMemAlloc_and_free_64_KiB", small_pair, 50},
    {"cost/cuMemAlloc_and_free_64_MiB", large_pair, 20},
    {"cost/cuMemHostAlloc_and_free_2_MiB", host_pair, 10},
    {"cost/cuMemHostRegister_and_unregister_2_MiB", register_pair, 10},
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void prepare(void)
{
    probe_context();
    need(CALL(cuCtxGetCurrent, &the.context), "cuCtxGetCurrent");
    the.stream = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    the.other = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    need(CALL(cuEventCreate, &the.event, FL_CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    the.memory = probe_device(MIB(2));
    the.pages = probe_pages(MIB(2), 1);
}

static void costs(int unused)
{
    (void)unused;
    prepare();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned n = smoke ? 2 : rows[i].n;
        double took[ROUNDS];
        fl_CUresult code = FL_CUDA_SUCCESS;

        for (int r = 0; r < ROUNDS && code == FL_CUDA_SUCCESS; r++) {
            double start = probe_ns();
            for (unsigned k = 0; k < n && code == FL_CUDA_SUCCESS; k++) {
                code = rows[i].call();
            }
            took[r] = (probe_ns() - start) / n;
            need(CALL(cuCtxSynchronize), "cuCtxSynchronize");
        }
        if (code != FL_CUDA_SUCCESS) {
            fact(rows[i].name, "\"code\":%d", code);
            continue;
        }
        qsort(took, ROUNDS, sizeof took[0], by_size);
        fact(rows[i].name, "\"code\":0,\"ns\":%.0f", took[ROUNDS / 2]);
    }
}

static unsigned char *from, *to;
static size_t len;

static fl_CUresult copy_by_the_host(void)
{
    memcpy(to, from, len);
    return FL_CUDA_SUCCESS;
}

static fl_CUresult copy_pageable(void)
{
    fl_CUresult code = CALL(cuMemcpyHtoDAsync, the.memory, from, len, the.stream);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuStreamSynchronize, the.stream);
}

static fl_CUresult copy_pinned(void)
{
    fl_CUresult code = CALL(cuMemcpyHtoDAsync, the.memory, to, len, the.stream);

    return code != FL_CUDA_SUCCESS ? code : CALL(cuStreamSynchronize, the.stream);
}

/* The best of four, in GB/s. */
static double speed(fl_CUresult (*copy)(void))
{
    double best = 0;

    for (int i = 0; i < 4; i++) {
        double start = probe_ns();
        need(copy(), "a copy");
        double now = (double)len / (probe_ns() - start);
        best = now > best ? now : best;
    }
    return best;
}

/* What one thread can stage at the most, and what the driver does by itself with such memory. */
static void bandwidth(int unused)
{
    void *pinned;

    (void)unused;
    len = smoke ? MIB(1) : MIB(128);
    probe_context();
    the.stream = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    the.memory = probe_device(len);
    from = probe_pages(len, 1);
    need(CALL(cuMemHostAlloc, &pinned, len, 0), "cuMemHostAlloc");
    to = pinned;
    double host = speed(copy_by_the_host), pageable = speed(copy_pageable);
    fact("cost/bandwidth",
         "\"memcpy_to_pinned_gb_s\":%.2f,\"pageable_gb_s\":%.2f,\"pinned_gb_s\":%.2f", host,
         pageable, speed(copy_pinned));
}

const struct probe probes_of_costs[] = {
    {"cost", costs, 0, false},
    {"cost/bandwidth", bandwidth, 0, false},
    {NULL, NULL, 0, false},
};
