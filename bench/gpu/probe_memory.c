/* Device memory: what an allocation takes, a batch of copies. */
#include "gpu/probe.h"

#include <stdio.h>

/* How much less is free after an allocation: limits count that. */
static void granularity(int unused)
{
    static const size_t sizes[] = {1,      KIB(64),    MIB(1) - 1, MIB(1), MIB(1) + 1,
                                   MIB(2), MIB(2) + 1, MIB(3),     MIB(8), MIB(8) + KIB(1)};

    (void)unused;
    probe_context();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t before = 0, after = 0, total = 0;
        fl_CUdeviceptr p[4];
        char name[64];

        need(CALL(cuMemGetInfo, &before, &total), "cuMemGetInfo");
        for (int k = 0; k < 4; k++) {
            p[k] = probe_device(sizes[i]);
        }
        need(CALL(cuMemGetInfo, &after, &total), "cuMemGetInfo");
        (void)snprintf(name, sizeof name, "granularity/%zu", sizes[i]);
        fact(name, "\"allocations\":4,\"taken\":%lld,\"apart\":%llu",
             (long long)before - (long long)after, p[1] > p[0] ? p[1] - p[0] : p[0] - p[1]);
        for (int k = 0; k < 4; k++) {
            need(CALL(cuMemFree, p[k]), "cuMemFree");
        }
    }
}

/* 16 copies in one call; on the legacy stream, too. `variant` 1: that one. */
static void batch(int variant)
{
    enum { N = 16, LEN = 4096 };
    struct fl_CUmemcpyAttributes attribute = {.srcAccessOrder =
                                                  FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    fl_CUdeviceptr to[N], from[N];
    size_t len[N], first = 0, failed = 0;

    probe_context();
    fl_CUstream s = variant == 1 ? NULL : probe_stream(FL_CU_STREAM_NON_BLOCKING);
    unsigned char *host = probe_pages(MIB(2), 9);
    fl_CUdeviceptr base = probe_device(MIB(2));
    need(CALL(cuMemHostRegister, host, MIB(2), 0), "batch/register");
    for (size_t i = 0; i < N; i++) {
        from[i] = (uintptr_t)host + 2 * i * LEN;
        to[i] = base + i * LEN;
        len[i] = LEN;
    }
    fl_CUresult code =
        CALL(cuMemcpyBatchAsync, to, from, len, N, &attribute, &first, 1, &failed, s);
    fl_CUresult end = CALL(cuStreamSynchronize, s);
    bool right =
        code == FL_CUDA_SUCCESS && probe_count(base, (size_t)N * LEN, 9) == (size_t)N * LEN;
    fact(variant == 1 ? "batch/legacy" : "batch", "\"code\":%d,\"sync\":%d,\"right\":%s", code, end,
         right ? "true" : "false");
}

const struct probe probes_of_memory[] = {
    {"granularity", granularity, 0, false},
    {"batch", batch, 0, false},
    {"batch/legacy", batch, 1, false},
    {NULL, NULL, 0, false},
};
