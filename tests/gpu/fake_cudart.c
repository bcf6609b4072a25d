/* What PyTorch's pluggable allocator and its streams ask of the CUDA runtime: there are two
 * devices, of compute capability 8.8, and one of them is current, as is its primary context. The
 * runtime itself does not run on the fake driver. Preloaded. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cudaGetDevice(int *device);
EXPORT int cudaSetDevice(int device);
EXPORT int cudaGetDeviceCount(int *count);
EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device);
EXPORT int cudaDeviceGetStreamPriorityRange(int *least, int *greatest);

static _Thread_local int now;

int cudaGetDevice(int *device)
{
    *device = now;
    return 0;
}

int cudaSetDevice(int device)
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

int cudaGetDeviceCount(int *count)
{
    *count = 2;
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)attribute;
    (void)device;
    *value = 8;
    return 0;
}

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return 0;
}
