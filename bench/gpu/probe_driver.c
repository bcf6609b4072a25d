/* The driver and what it has. */
#include "gpu/gpu_spin.h"
#include "gpu/probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void device(int unused)
{
    static const struct {
        const char *name;
        fl_CUdevice_attribute attribute;
    } rows[] = {
        {"compute_major", 75},         {"compute_minor", 76},
        {"multiprocessors", 16},       {"integrated", 18},
        {"can_map_host", 19},          {"async_engines", 40},
        {"unified_address", 41},       {"managed", 83},
        {"pageable_access", 88},       {"host_registered_same_pointer", 91},
        {"pageable_host_tables", 100}, {"host_numa_node", FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
    };
    char name[128] = "";
    int version = 0;
    size_t left = 0, total = 0;

    (void)unused;
    probe_context();
    (void)CALL(cuDeviceGetName, name, sizeof name, 0);
    need(CALL(cuDriverGetVersion, &version), "cuDriverGetVersion");
    need(CALL(cuMemGetInfo, &left, &total), "cuMemGetInfo");
    fact("device", "\"device\":\"%s\",\"cuda\":%d,\"free\":%zu,\"total\":%zu", name, version, left,
         total);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char field[64];
        int value = 0;
        fl_CUresult code = CALL(cuDeviceGetAttribute, &value, rows[i].attribute, 0);
        (void)snprintf(field, sizeof field, "device/%s", rows[i].name);
        fact(field, "\"code\":%d,\"value\":%d", code, value);
    }
}

/* As the library asks: by name and version; and the name that dlsym knows. */
static void symbols(int unused)
{
    static const struct {
        const char *name, *symbol;
        int version;
    } rows[] = {
#define X(need, name, suffix, version, parameters) {#name, #name suffix, version},
        FL_CUDA_CALLS(X)
#undef X
            {"cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", 13000},
        {"cuStreamBeginCapture", "cuStreamBeginCapture_v2", 10010},
    };
    fl_cuGetProcAddress *get;
    void *found = dlsym(cu_library, "cuGetProcAddress_v2");

    (void)unused;
    memcpy(&get, &found, sizeof get);
    need(CALL(cuInit, 0), "cuInit");
    fact("symbol/cuGetProcAddress_v2", "\"dlsym\":%s", get != NULL ? "true" : "false");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fl_CUdriverProcAddressQueryResult status = -1;
        fl_CUresult code = FL_CUDA_ERROR_NOT_FOUND;
        char name[64];
        void *by_version = NULL, *by_name = dlsym(cu_library, rows[i].symbol);

        if (get != NULL) {
            code = get(rows[i].name, &by_version, rows[i].version, FL_CU_GET_PROC_ADDRESS_DEFAULT,
                       &status);
        }
        (void)snprintf(name, sizeof name, "symbol/%s", rows[i].symbol);
        fact(name, "\"version\":%d,\"code\":%d,\"status\":%d,\"found\":%s,\"dlsym\":%s",
             rows[i].version, code, status, by_version != NULL ? "true" : "false",
             by_name != NULL ? "true" : "false");
    }
}

/* A kernel from PTX loads and keeps a stream busy: what the probes that hold a stream rest on. */
static void kernel(int unused)
{
    (void)unused;
    probe_context();
    fl_CUstream s = probe_stream(FL_CU_STREAM_NON_BLOCKING);
    double start = probe_ns();
    fl_CUresult ptx = fake == NULL ? gpu_spin_load(cu_library) : FL_CUDA_SUCCESS,
                held = probe_hold(s); /* by the host, where there is no kernel */
    (void)CALL(cuStreamSynchronize, s);
    double first = probe_ns();
    fl_CUresult code = held == FL_CUDA_SUCCESS ? probe_hold(s) : held;
    fl_CUresult busy = CALL(cuStreamQuery, s), end = CALL(cuStreamSynchronize, s);
    fact("kernel", "\"ptx\":%d,\"code\":%d,\"query\":%d,\"sync\":%d,\"first_ms\":%.1f,\"ms\":%.1f",
         ptx, code, busy, end, (first - start) / 1e6, (probe_ns() - first) / 1e6);
}

const struct probe probes_of_driver[] = {
    {"device", device, 0, false},
    {"symbol", symbols, 0, false},
    {"kernel", kernel, 0, false},
    {NULL, NULL, 0, false},
};
