/* Each prototype of src/gpu/driver/cuda_abi.h is the one that the CUDA Toolkit has for that version
 * of the call, and those that bench/gpu/probe.h adds are the symbol's. Compiled where there is a
 * toolkit;
 * there is nothing to run. */
#include <cuda.h>
#include <cudaTypedefs.h>

#define FL_CUDA_ABI_TYPES
typedef CUresult fl_CUresult;
typedef CUdevice fl_CUdevice;
typedef CUdeviceptr fl_CUdeviceptr;
typedef CUcontext fl_CUcontext;
typedef CUstream fl_CUstream;
typedef CUevent fl_CUevent;
typedef CUdevice_attribute fl_CUdevice_attribute;
typedef CUstreamCaptureStatus fl_CUstreamCaptureStatus;
typedef CUstreamCaptureMode fl_CUstreamCaptureMode;
typedef CUdriverProcAddressQueryResult fl_CUdriverProcAddressQueryResult;
#define fl_CUmemLocation CUmemLocation_st
#define fl_CUmemcpyAttributes CUmemcpyAttributes_st
typedef CUgraph probe_CUgraph;
#include "gpu/probe.h"

#define X(need, name, suffix, version, parameters)                                                 \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(fl_CUresult(*) parameters, PFN_##name##_v##version), #name);
FL_CUDA_CALLS(X)
#undef X

/* cuda.h gives the plain name the version that it is at: the one asked for here. */
#define X(name, suffix, parameters)                                                                \
    _Static_assert(__builtin_types_compatible_p(fl_CUresult(*) parameters, __typeof__(&name)),     \
                   #name suffix);
PROBE_CALLS(X)
#undef X

_Static_assert(__builtin_types_compatible_p(fl_cuGetProcAddress *, PFN_cuGetProcAddress_v12000),
               "cuGetProcAddress");
