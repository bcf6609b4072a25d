/* What of the CUDA driver's interface is called here, in our own words: the build needs no toolkit.
 * Where there is one, tests/gpu/abi_check.c and abi_calls.c hold each type, value and prototype
 * below against its cuda.h.
 *
 * Names are the driver's, so that its documentation can be searched for them. Versions are those in
 * which the symbol appeared with this prototype (cuGetProcAddress asks by it). */
#ifndef FL_GPU_DRIVER_CUDA_ABI_H
#define FL_GPU_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifndef FL_CUDA_ABI_TYPES /* abi_calls.c has the driver's own */
typedef int fl_CUresult;
typedef int fl_CUdevice;
typedef unsigned long long fl_CUdeviceptr;
typedef struct CUctx_st *fl_CUcontext;
typedef struct CUstream_st *fl_CUstream;
typedef struct CUevent_st *fl_CUevent;
typedef struct CUmod_st *fl_CUmodule;
typedef struct CUfunc_st *fl_CUfunction;
/* Of the driver's enumerations, which have no negative values: as wide as int. */
typedef int fl_CUdevice_attribute;
typedef int fl_CUstreamCaptureStatus;
typedef int fl_CUstreamCaptureMode;
typedef int fl_CUdriverProcAddressQueryResult;

struct fl_CUmemLocation {
    int type, id;
};

struct fl_CUmemcpyAttributes {
    int srcAccessOrder;
    struct fl_CUmemLocation srcLocHint, dstLocHint;
    unsigned flags;
};
#endif

enum {
    FL_CUDA_SUCCESS = 0,
    FL_CUDA_ERROR_INVALID_VALUE = 1,
    FL_CUDA_ERROR_OUT_OF_MEMORY = 2,
    FL_CUDA_ERROR_NOT_INITIALIZED = 3,
    FL_CUDA_ERROR_DEINITIALIZED = 4,
    FL_CUDA_ERROR_STUB_LIBRARY = 34,
    FL_CUDA_ERROR_NO_DEVICE = 100,
    FL_CUDA_ERROR_INVALID_DEVICE = 101,
    FL_CUDA_ERROR_INVALID_CONTEXT = 201,
    FL_CUDA_ERROR_INVALID_HANDLE = 400,
    FL_CUDA_ERROR_NOT_FOUND = 500,
    FL_CUDA_ERROR_NOT_READY = 600,
    FL_CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    FL_CUDA_ERROR_NOT_PERMITTED = 800,
    FL_CUDA_ERROR_NOT_SUPPORTED = 801,
    FL_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT =
        906, /* the legacy stream, while a blocking one is captured */
    FL_CUDA_ERROR_CAPTURED_EVENT = 907,
    FL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, /* the last of capture's own */
    FL_CUDA_ERROR_UNKNOWN = 999,
};

enum {
    FL_CU_EVENT_DISABLE_TIMING = 2,
    FL_CU_STREAM_NON_BLOCKING = 1,
    FL_CU_MEMHOSTREGISTER_PORTABLE = 1,
    FL_CU_MEMHOSTALLOC_PORTABLE = 1,
    FL_CU_STREAM_CAPTURE_STATUS_NONE = 0,
    FL_CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    FL_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID = 134,
    FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
    FL_CU_GET_PROC_ADDRESS_DEFAULT = 0,
};

/* X(need, name, suffix, version, parameters): `need` is REQUIRED or OPTIONAL. The symbol that dlsym
 * knows has SUFFIX behind it. */
#define FL_CUDA_CALLS(X)                                                                           \
    X(REQUIRED, cuInit, "", 2000, (unsigned flags))                                                \
    X(REQUIRED, cuGetErrorName, "", 6000, (fl_CUresult code, const char **name))                   \
    X(REQUIRED, cuDeviceGet, "", 2000, (fl_CUdevice * device, int ordinal))                        \
    X(REQUIRED, cuDeviceGetCount, "", 2000, (int *count))                                          \
    X(REQUIRED, cuDeviceGetAttribute, "", 2000,                                                    \
      (int *value, fl_CUdevice_attribute attribute, fl_CUdevice device))                           \
    X(REQUIRED, cuDevicePrimaryCtxRetain, "", 7000, (fl_CUcontext * context, fl_CUdevice device))  \
    X(REQUIRED, cuDevicePrimaryCtxRelease, "_v2", 11000, (fl_CUdevice device))                     \
    X(REQUIRED, cuCtxGetCurrent, "", 4000, (fl_CUcontext * context))                               \
    X(REQUIRED, cuCtxPushCurrent, "_v2", 4000, (fl_CUcontext context))                             \
    X(REQUIRED, cuCtxPopCurrent, "_v2", 4000, (fl_CUcontext * context))                            \
    X(REQUIRED, cuCtxGetDevice, "", 2000, (fl_CUdevice * device))                                  \
    X(REQUIRED, cuCtxSynchronize, "", 2000, (void))                                                \
    X(REQUIRED, cuMemGetInfo, "_v2", 3020, (size_t * free, size_t * total))                        \
    X(REQUIRED, cuMemAlloc, "_v2", 3020, (fl_CUdeviceptr * address, size_t len))                   \
    X(REQUIRED, cuMemFree, "_v2", 3020, (fl_CUdeviceptr address))                                  \
    X(REQUIRED, cuMemHostAlloc, "", 2020, (void **address, size_t len, unsigned flags))            \
    X(REQUIRED, cuMemFreeHost, "", 2000, (void *address))                                          \
    X(REQUIRED, cuMemHostRegister, "_v2", 6050, (void *address, size_t len, unsigned flags))       \
    X(REQUIRED, cuMemHostUnregister, "", 4000, (void *address))                                    \
    X(REQUIRED, cuMemcpyHtoDAsync, "_v2", 3020,                                                    \
      (fl_CUdeviceptr to, const void *from, size_t len, fl_CUstream stream))                       \
    X(REQUIRED, cuMemcpyDtoHAsync, "_v2", 3020,                                                    \
      (void *to, fl_CUdeviceptr from, size_t len, fl_CUstream stream))                             \
    X(REQUIRED, cuStreamCreate, "", 2000, (fl_CUstream * stream, unsigned flags))                  \
    X(REQUIRED, cuStreamDestroy, "_v2", 4000, (fl_CUstream stream))                                \
    X(REQUIRED, cuStreamSynchronize, "", 2000, (fl_CUstream stream))                               \
    X(REQUIRED, cuStreamWaitEvent, "", 3020,                                                       \
      (fl_CUstream stream, fl_CUevent event, unsigned flags))                                      \
    X(REQUIRED, cuEventCreate, "", 2000, (fl_CUevent * event, unsigned flags))                     \
    X(REQUIRED, cuEventDestroy, "_v2", 4000, (fl_CUevent event))                                   \
    X(REQUIRED, cuEventRecord, "", 2000, (fl_CUevent event, fl_CUstream stream))                   \
    X(REQUIRED, cuEventQuery, "", 2000, (fl_CUevent event))                                        \
    X(REQUIRED, cuEventSynchronize, "", 2000, (fl_CUevent event))                                  \
    X(REQUIRED, cuStreamGetId, "", 12000, (fl_CUstream stream, unsigned long long *id))            \
    X(REQUIRED, cuStreamGetCtx, "", 9020, (fl_CUstream stream, fl_CUcontext * context))            \
    X(REQUIRED, cuThreadExchangeStreamCaptureMode, "", 10010, (fl_CUstreamCaptureMode * mode))     \
    X(REQUIRED, cuStreamIsCapturing, "", 10000,                                                    \
      (fl_CUstream stream, fl_CUstreamCaptureStatus * status))                                     \
    X(OPTIONAL, cuMemcpyBatchAsync, "", 12080,                                                     \
      (fl_CUdeviceptr * to, fl_CUdeviceptr * from, size_t * len, size_t count,                     \
       struct fl_CUmemcpyAttributes * attribute, size_t * attribute_index, size_t attributes,      \
       size_t * failed, fl_CUstream stream))

typedef fl_CUresult fl_cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags,
                                        fl_CUdriverProcAddressQueryResult *status);

#endif
