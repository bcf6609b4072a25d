/* What each probe begins with. */
#include "gpu/gpu_spin.h"
#include "gpu/probe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOLD_MS = 50 };

void fact(const char *name, const char *fields, ...)
{
    char line[4096];
    va_list args;

    va_start(args, fields);
    (void)vsnprintf(line, sizeof line, fields, args);
    va_end(args);
    printf("{\"kind\":\"fact\",\"section\":\"probes\",\"name\":\"%s\",%s}\n", name, line);
}

void promise(const char *name, bool kept, const char *text)
{
    *broken += !kept;
    printf("{\"kind\":\"test\",\"section\":\"probes\",\"name\":\"%s\",\"outcome\":\"%s\","
           "\"status\":%d,\"seconds\":0,\"text\":\"%s\"}\n",
           name, kept ? "passed" : "failed", !kept, kept ? "" : text);
}

void need(fl_CUresult code, const char *what)
{
    if (code != FL_CUDA_SUCCESS) {
        fact(what, "\"outcome\":\"not prepared\",\"code\":%d", code);
        fflush(stdout);
        _exit(1);
    }
}

void probe_context(void)
{
    fl_CUcontext context = NULL;

    need(CALL(cuInit, 0), "cuInit");
    need(CALL(cuDevicePrimaryCtxRetain, &context, 0), "cuDevicePrimaryCtxRetain");
    need(CALL(cuCtxSetCurrent, context), "cuCtxSetCurrent");
}

fl_CUstream probe_stream(unsigned flags)
{
    fl_CUstream s = NULL;

    need(CALL(cuStreamCreate, &s, flags), "cuStreamCreate");
    return s;
}

fl_CUdeviceptr probe_device(size_t len)
{
    fl_CUdeviceptr p = 0;

    need(CALL(cuMemAlloc, &p, len), "cuMemAlloc");
    return p;
}

fl_CUresult probe_hold(fl_CUstream stream)
{
    if (fake != NULL) {
        fake->schedule(FAKE_CUDA_LATE, 0);
        return FL_CUDA_SUCCESS;
    }
    return gpu_spin(cu_library, stream, HOLD_MS);
}

unsigned char *probe_pages(size_t len, unsigned char value)
{
    unsigned char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    need(p == MAP_FAILED ? FL_CUDA_ERROR_OUT_OF_MEMORY : FL_CUDA_SUCCESS, "mmap");
    (void)madvise(p, len, MADV_HUGEPAGE);
    memset(p, value, len);
    return p;
}

size_t probe_count(fl_CUdeviceptr from, size_t len, unsigned char value)
{
    unsigned char *p = malloc(len);
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    size_t n = 0;

    need(p == NULL ? FL_CUDA_ERROR_OUT_OF_MEMORY : FL_CUDA_SUCCESS, "malloc");
    need(CALL(cuMemcpyDtoHAsync, p, from, len, s), "cuMemcpyDtoHAsync");
    need(CALL(cuStreamSynchronize, s), "cuStreamSynchronize");
    for (size_t i = 0; i < len; i++) {
        n += p[i] == value;
    }
    free(p);
    return n;
}

double probe_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
