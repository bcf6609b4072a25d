/* What PyTorch asks of the CUDA runtime to be initialised, and then for its allocators and its
 * streams: there are two devices, of compute capability 8.8, and one of them is current, as is its
 * primary context. Nothing is captured, and memory is for faultless alone to give. The runtime
 * itself does not run on the fake driver. Preloaded; and in the driver's place where PyTorch looks
 * for libcuda.so.1 itself. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Each is called from elsewhere, by its name. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"

enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100 };

#define CALL __attribute__((visibility("default"))) int
/* One that says this, and does so much before. */
#define SAYS(code, name, parameters, ...)                                                          \
    CALL name parameters                                                                           \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
        return code;                                                                               \
    }

static _Thread_local int now;

CALL cudaSetDevice(int device)
{
    void *driver = dlopen(getenv("FAULTLESS_GPU_DRIVER"), RTLD_NOW), *found[2] = {NULL, NULL};
    int (*retain)(void **context, int device), (*set_current)(void *context);
    void *context = NULL;

    if (driver != NULL) {
        found[0] = dlsym(driver, "cuDevicePrimaryCtxRetain");
        found[1] = dlsym(driver, "cuCtxSetCurrent");
    }
    if (found[0] == NULL || found[1] == NULL) {
        return NO_DEVICE;
    }
    memcpy(&retain, &found[0], sizeof retain);
    memcpy(&set_current, &found[1], sizeof set_current);
    int code = retain(&context, device);
    code = code == 0 ? set_current(context) : code;
    now = code == 0 ? device : now;
    return code;
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

SAYS(0, cudaGetDeviceProperties, (struct properties * out, int device),
     *out = (struct properties){.name = "fake", .major = 8, .minor = 8, .warp = 32})
SAYS(0, cudaGetDevice, (int *device), *device = now)
SAYS(0, cudaGetDeviceCount, (int *count), *count = 2)
SAYS(0, cudaDeviceGetAttribute, (int *value, int attribute, int device), *value = 8)
SAYS(0, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), *least = *greatest = 0)
SAYS(0, cudaDriverGetVersion, (int *version), *version = 13000)
SAYS(0, cudaGetLastError, (void), )
SAYS(0, cudaThreadExchangeStreamCaptureMode, (int *mode), *mode = 0)
SAYS(0, cudaDeviceCanAccessPeer, (int *can, int device, int peer), *can = 0)
SAYS(0, cudaStreamIsCapturing, (void *stream, int *is), *is = 0)
SAYS(0, cudaStreamGetCaptureInfo,
     (void *stream, int *is, void *id, void *graph, void *nodes, void *edges, void *count), *is = 0)
SAYS(0, cudaDeviceSynchronize, (void), )
SAYS(OUT_OF_MEMORY, cudaMalloc, (void **out, size_t size), *out = NULL)
SAYS(0, cudaMemGetInfo, (size_t * is_free, size_t *total), *is_free = *total = (size_t)1 << 30)
SAYS(0, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active),
     (*flags = 0, *active = 1))
