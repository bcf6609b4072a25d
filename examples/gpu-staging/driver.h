/* The few calls of the CUDA driver that these programs make themselves, as any program that uses
 * CUDA would: a stream, a copy on the device, a wait. With the toolkit the types are its own;
 * without it, these do. */
#ifndef DRIVER_H
#define DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDA_TOOLKIT
#include <cuda.h>
#else
typedef int CUresult, CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef unsigned long long CUdeviceptr;
#define CU_STREAM_NON_BLOCKING 1
#endif

struct driver {
    CUresult (*device_get)(CUdevice *device, int ordinal);
    CUresult (*retain)(CUcontext *context, CUdevice device);
    CUresult (*set_current)(CUcontext context);
    CUresult (*stream_create)(CUstream *stream, unsigned flags);
    CUresult (*stream_wait)(CUstream stream);
    CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, size_t len, CUstream stream);
};

/* Where faultless finds it, too. */
static inline bool driver_find(struct driver *d)
{
    static const char *const names[] = {"cuDeviceGet",         "cuDevicePrimaryCtxRetain",
                                        "cuCtxSetCurrent",     "cuStreamCreate",
                                        "cuStreamSynchronize", "cuMemcpyDtoDAsync_v2"};
    void *found[sizeof names / sizeof names[0]];
    const char *path = getenv("FAULTLESS_GPU_DRIVER");
    void *library = dlopen(path == NULL ? "libcuda.so.1" : path, RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found[i] = library == NULL ? NULL : dlsym(library, names[i]);
        if (found[i] == NULL) {
            return false;
        }
    }
    memcpy(d, found, sizeof found);
    return true;
}

/* The device's primary context, current for this thread, and a stream in it. */
static inline bool driver_begin(struct driver *d, int ordinal, CUstream *stream)
{
    CUdevice device;
    CUcontext context;

    return driver_find(d) && d->device_get(&device, ordinal) == 0 &&
           d->retain(&context, device) == 0 && d->set_current(context) == 0 &&
           d->stream_create(stream, CU_STREAM_NON_BLOCKING) == 0;
}

#endif
