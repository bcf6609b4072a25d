/* Registered memory: what giving it back does to work that is queued, and what the driver says to
 * memory that is odd. */
#include "gpu/probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { BEFORE = 0x11, AFTER = 0xEE };

static size_t size(void)
{
    return smoke ? MIB(2) : MIB(256);
}

/* The ways to give memory back behind queued work. */
enum way {
    UNREGISTER_BEHIND_KERNEL,
    UNREGISTER_BEHIND_COPY,
    FREE_HOST_BEHIND_COPY,
    FREE_BEHIND_FILL
};
static const char *const names[] = {
    "give_back/cuMemHostUnregister_behind_kernel",
    "give_back/cuMemHostUnregister_behind_copy",
    "give_back/cuMemFreeHost_behind_copy",
    "give_back/cuMemFree_behind_fill",
};

static unsigned char *host_of(enum way way)
{
    void *p = NULL;

    if (way == FREE_HOST_BEHIND_COPY) {
        need(CALL(cuMemHostAlloc, &p, size(), 0), "cuMemHostAlloc");
        memset(p, BEFORE, size());
    } else {
        p = probe_pages(size(), BEFORE);
        need(CALL(cuMemHostRegister, p, size(), 0), "cuMemHostRegister");
    }
    return p;
}

static fl_CUresult submit(enum way way, fl_CUdeviceptr to, const void *from, fl_CUstream s)
{
    switch (way) {
    case UNREGISTER_BEHIND_KERNEL:
        return FL_CUDA_SUCCESS;
    case FREE_BEHIND_FILL:
        return CALL(cuMemsetD8Async, to, BEFORE, size(), s);
    default:
        return CALL(cuMemcpyHtoDAsync, to, from, size(), s);
    }
}

static fl_CUresult give_back(enum way way, fl_CUdeviceptr to, void *from)
{
    switch (way) {
    case FREE_BEHIND_FILL:
        return CALL(cuMemFree, to);
    case FREE_HOST_BEHIND_COPY:
        return CALL(cuMemFreeHost, from);
    default:
        return CALL(cuMemHostUnregister, from);
    }
}

/* A stream is busy for 50 ms, then reads the memory; it is given back at once. Has the call waited?
 * What the host writes after it: has the device seen that ("new"), or what was there ("old")? */
static void given_back(int variant)
{
    enum way way = (enum way)variant;

    probe_context();
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    fl_CUdeviceptr to = probe_device(size());
    unsigned char *from = host_of(way);
    need(probe_hold(s), "hold"); /* loads the kernel */
    need(CALL(cuStreamSynchronize, s), "cuStreamSynchronize");
    need(probe_hold(s), "hold");
    fl_CUresult submitted = submit(way, to, from, s);
    double start = probe_ns();
    fl_CUresult code = give_back(way, to, from);
    double took = probe_ns() - start;
    fl_CUresult query = CALL(cuStreamQuery, s);
    if (way == UNREGISTER_BEHIND_COPY) {
        memset(from, AFTER, size());
    }
    fl_CUresult end = CALL(cuCtxSynchronize);
    fact(names[way], "\"submit\":%d,\"code\":%d,\"ms\":%.2f,\"query\":%d,\"sync\":%d", submitted,
         code, took / 1e6, query, end);
    if (way == FREE_BEHIND_FILL) {
        promise("cuMemFree waits for the stream's work", submitted == 0 && code == 0 && query == 0,
                "chunks are given back on that ground: src/gpu/pool/chunk.c");
    }
    if (way == UNREGISTER_BEHIND_COPY && end == FL_CUDA_SUCCESS) {
        size_t old = probe_count(to, size(), BEFORE), new = probe_count(to, size(), AFTER);
        fact("give_back/bytes_behind_copy", "\"bytes\":%zu,\"old\":%zu,\"new\":%zu", size(), old,
             new);
    }
}

static void odd(int unused)
{
    size_t len = MIB(4);

    (void)unused;
    probe_context();
    unsigned char *p = probe_pages(len, 1);
    fl_CUresult first = CALL(cuMemHostRegister, p, MIB(2), 0),
                twice = CALL(cuMemHostRegister, p, MIB(2), 0),
                over = CALL(cuMemHostRegister, p + MIB(1), MIB(2), 0),
                inside = CALL(cuMemHostUnregister, p + MIB(1)), gone = CALL(cuMemHostUnregister, p),
                again = CALL(cuMemHostUnregister, p);
    fact("register/again",
         "\"first\":%d,\"twice\":%d,\"overlap\":%d,\"unregister_inside\":%d,\"unregister\":%d,"
         "\"unregister_again\":%d",
         first, twice, over, inside, gone, again);
    fl_CUresult part = CALL(cuMemHostRegister, p + 100, 5000, 0);
    (void)CALL(cuMemHostUnregister, p + 100);
    fl_CUresult none = CALL(cuMemHostRegister, p, 0, 0);
    (void)mprotect(p, MIB(2), PROT_READ);
    fl_CUresult read_only = CALL(cuMemHostRegister, p, MIB(2), 0);
    (void)CALL(cuMemHostUnregister, p);
    (void)mprotect(p, MIB(2), PROT_NONE);
    fl_CUresult closed = CALL(cuMemHostRegister, p, MIB(2), 0);
    (void)CALL(cuMemHostUnregister, p);
    (void)munmap(p, MIB(2));
    fl_CUresult hole = CALL(cuMemHostRegister, p, len, 0);
    fact("register/odd",
         "\"unaligned\":%d,\"empty\":%d,\"read_only\":%d,\"no_access\":%d,\"hole\":%d", part, none,
         read_only, closed, hole);
}

/* One copy over two registrations that lie side by side. */
static void adjacent(int unused)
{
    (void)unused;
    probe_context();
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    unsigned char *p = probe_pages(MIB(4), 5);
    fl_CUdeviceptr to = probe_device(MIB(4));
    need(CALL(cuMemHostRegister, p, MIB(2), 0), "cuMemHostRegister");
    need(CALL(cuMemHostRegister, p + MIB(2), MIB(2), 0), "cuMemHostRegister");
    fl_CUresult code = CALL(cuMemcpyHtoDAsync, to, p + MIB(1), MIB(2), s),
                end = CALL(cuStreamSynchronize, s);
    bool right = code == 0 && end == 0 && probe_count(to, MIB(2), 5) == MIB(2);
    fact("register/adjacent", "\"code\":%d,\"sync\":%d,\"right\":%s", code, end,
         right ? "true" : "false");
}

/* The VmFlags line of the mapping of `p`. */
static void flags_of(const void *p, char *flags, size_t room)
{
    char line[512];
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "r");

    flags[0] = '\0';
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2) {
            inside = (uintptr_t)p >= from && (uintptr_t)p < to;
        } else if (inside && strncmp(line, "VmFlags: ", 9) == 0) {
            line[strcspn(line, "\n")] = '\0';
            (void)snprintf(flags, room, "%.*s", (int)room - 1, line + 9);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

/* What registering does to the mapping; and MADV_DONTNEED under it: who sees what. */
static void under_registration(int unused)
{
    char before[128], after[128];

    (void)unused;
    probe_context();
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    unsigned char *p = probe_pages(MIB(2), 3);
    fl_CUdeviceptr to = probe_device(MIB(2));
    flags_of(p, before, sizeof before);
    fl_CUresult code = CALL(cuMemHostRegister, p, MIB(2), 0);
    flags_of(p, after, sizeof after);
    fact("register/vm_flags", "\"code\":%d,\"before\":\"%s\",\"after\":\"%s\"", code, before,
         after);
    int rc = madvise(p, MIB(2), MADV_DONTNEED);
    fl_CUresult copied = CALL(cuMemcpyHtoDAsync, to, p, MIB(2), s),
                end = CALL(cuStreamSynchronize, s);
    unsigned host = p[0];
    size_t old = end == FL_CUDA_SUCCESS ? probe_count(to, MIB(2), 3) : 0;
    fact("register/dontneed",
         "\"madvise\":%d,\"host_reads\":%u,\"copy\":%d,\"sync\":%d,\"old\":%zu", rc, host, copied,
         end, old);
}

const struct probe probes_of_pinned[] = {
    {"give_back/cuMemHostUnregister_behind_kernel", given_back, UNREGISTER_BEHIND_KERNEL, false},
    {"give_back/cuMemHostUnregister_behind_copy", given_back, UNREGISTER_BEHIND_COPY, false},
    {"give_back/cuMemFreeHost_behind_copy", given_back, FREE_HOST_BEHIND_COPY, false},
    {"give_back/cuMemFree_behind_fill", given_back, FREE_BEHIND_FILL, false},
    {"register/odd", odd, 0, false},
    {"register/adjacent", adjacent, 0, false},
    {"register/under", under_registration, 0, false},
    {NULL, NULL, 0, false},
};
