/* What PyTorch asks of the CUDA runtime to be initialised, and then for its allocators and its
 * streams: there are two devices, of compute capability 8.8, and one of them is current, as is its
 * primary context. Nothing is captured, and memory is for faultless alone to give. The runtime
 * itself does not run on the fake driver. Preloaded; and in the driver's place where PyTorch looks
 * for libcuda.so.1 itself. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Each is called from elsewhere, by its name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static _Thread_local int now;

EXPORT int cudaGetDevice(int *device)
{
    *device = now;
    return 0;
}

EXPORT int cudaSetDevice(int device)
{
    void *driver = dlopen(getenv("FAULTLESS_GPU_DRIVER"), RTLD_NOW), *found[2] = {NULL, NULL};
    int (*retain)(void **context, int device), (*set_current)(void *context);
    void *context = NULL;

    if (driver != NULL) {
        found[0] = dlsym(driver, "cuDevicePrimaryCtxRetain");
        found[1] = dlsym(driver, "cuCtxSetCurrent");
    }
    if (found[0] == NULL || found[1] == NULL) {
        return 100; /* cudaErrorNoDevice */
    }
    memcpy(&retain, &found[0], sizeof retain);
    memcpy(&set_current, &found[1], sizeof set_current);
    int code = retain(&context, device);
    code = code == 0 ? set_current(context) : code;
    now = code == 0 ? device : now;
    return code;
}

EXPORT int cudaGetDeviceCount(int *count)
{
    *count = 2;
    return 0;
}

EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 8;
    return 0;
}

EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return 0;
}

EXPORT int cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return 0;
}

/* The first members of CUDA 13's struct cudaDeviceProp, up to the capability. */
struct properties {
    char name[256], uuid[16], luid[8];
    unsigned luid_mask;
    size_t memory, shared;
    int registers, warp;
    size_t pitch;
    int threads, dimension[3], grid[3];
    size_t constant;
    int major, minor;
};

EXPORT int cudaGetDeviceProperties(void *out, int device)
{
    struct properties p = {.name = "fake", .major = 8, .minor = 8, .warp = 32};

    (void)device;
    memcpy(out, &p, sizeof p);
    return 0;
}

EXPORT int cudaGetLastError(void)
{
    return 0;
}

EXPORT int cudaThreadExchangeStreamCaptureMode(int *mode)
{
    *mode = 0;
    return 0;
}

EXPORT int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device;
    (void)peer;
    *can = 0;
    return 0;
}

EXPORT int cudaStreamIsCapturing(void *stream, int *is)
{
    (void)stream;
    *is = 0;
    return 0;
}

EXPORT int cudaStreamGetCaptureInfo(void *stream, int *is, void *id, void *graph, void *nodes,
                                    void *edges, void *count)
{
    (void)id;
    (void)graph;
    (void)nodes;
    (void)edges;
    (void)count;
    return cudaStreamIsCapturing(stream, is);
}

EXPORT int cudaDeviceSynchronize(void)
{
    return 0;
}

EXPORT int cudaMalloc(void **out, size_t size)
{
    (void)size;
    *out = NULL;
    return 2; /* cudaErrorMemoryAllocation */
}

EXPORT int cudaMemGetInfo(size_t *is_free, size_t *total)
{
    *is_free = *total = (size_t)1 << 30;
    return 0;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 1;
    return 0;
}
