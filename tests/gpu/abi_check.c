/* Each value, size and offset of src/gpu/driver/cuda_abi.h is the CUDA Toolkit's. Compiled where there is a toolkit; there is nothing to
 * run. */
#include "gpu/driver/cuda_abi.h"

#include <cuda.h>

#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

VALUE(FL_CUDA_SUCCESS, CUDA_SUCCESS);
VALUE(FL_CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
VALUE(FL_CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
VALUE(FL_CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
VALUE(FL_CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_DEINITIALIZED);
VALUE(FL_CUDA_ERROR_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY);
VALUE(FL_CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
VALUE(FL_CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
VALUE(FL_CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_CONTEXT);
VALUE(FL_CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
VALUE(FL_CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
VALUE(FL_CUDA_ERROR_NOT_READY, CUDA_ERROR_NOT_READY);
VALUE(FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_CONTEXT_IS_DESTROYED);
VALUE(FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
VALUE(FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
VALUE(FL_CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_NOT_PERMITTED);
VALUE(FL_CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_NOT_SUPPORTED);
VALUE(FL_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
VALUE(FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
VALUE(FL_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
VALUE(FL_CUDA_ERROR_STREAM_CAPTURE_ISOLATION, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
VALUE(FL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
VALUE(FL_CUDA_ERROR_CAPTURED_EVENT, CUDA_ERROR_CAPTURED_EVENT);
VALUE(FL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
VALUE(FL_CUDA_ERROR_UNKNOWN, CUDA_ERROR_UNKNOWN);

VALUE(FL_CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
VALUE(FL_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
VALUE(FL_CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
VALUE(FL_CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
VALUE(FL_CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE);
VALUE(FL_CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
VALUE(FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
VALUE(FL_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
VALUE(FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
VALUE(FL_CU_DEVICE_ATTRIBUTE_VMM_SUPPORTED,
      CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
VALUE(FL_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
VALUE(FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
VALUE(FL_CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
VALUE(FL_CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
VALUE(FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
VALUE(FL_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
VALUE(FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
VALUE(FL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
VALUE(FL_CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_DEFAULT);

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define FIELD(ours, theirs, field)                                                                 \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, field) &&                             \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->field),                 \
                   #theirs "." #field)

SIZE(fl_CUresult, CUresult);
SIZE(fl_CUdevice, CUdevice);
SIZE(fl_CUdeviceptr, CUdeviceptr);
SIZE(fl_CUmemGenericAllocationHandle, CUmemGenericAllocationHandle);
SIZE(fl_CUdevice_attribute, CUdevice_attribute);
SIZE(fl_CUmemAllocationGranularity_flags, CUmemAllocationGranularity_flags);
SIZE(fl_CUmemPool_attribute, CUmemPool_attribute);
SIZE(fl_CUstreamCaptureStatus, CUstreamCaptureStatus);
SIZE(fl_CUstreamCaptureMode, CUstreamCaptureMode);
SIZE(fl_CUdriverProcAddressQueryResult, CUdriverProcAddressQueryResult);

SIZE(struct fl_CUmemLocation, CUmemLocation);
FIELD(struct fl_CUmemLocation, CUmemLocation, type);
FIELD(struct fl_CUmemLocation, CUmemLocation, id);
SIZE(struct fl_CUmemAllocationProp, CUmemAllocationProp);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, type);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, requestedHandleTypes);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, location);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, win32HandleMetaData);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, allocFlags);
FIELD(struct fl_CUmemAllocationProp, CUmemAllocationProp, allocFlags.usage);
SIZE(struct fl_CUmemAccessDesc, CUmemAccessDesc);
FIELD(struct fl_CUmemAccessDesc, CUmemAccessDesc, location);
FIELD(struct fl_CUmemAccessDesc, CUmemAccessDesc, flags);
SIZE(struct fl_CUmemPoolProps, CUmemPoolProps);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, allocType);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, handleTypes);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, location);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, win32SecurityAttributes);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, maxSize);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, usage);
FIELD(struct fl_CUmemPoolProps, CUmemPoolProps, reserved);
SIZE(struct fl_CUmemcpyAttributes, CUmemcpyAttributes);
FIELD(struct fl_CUmemcpyAttributes, CUmemcpyAttributes, srcAccessOrder);
FIELD(struct fl_CUmemcpyAttributes, CUmemcpyAttributes, srcLocHint);
FIELD(struct fl_CUmemcpyAttributes, CUmemcpyAttributes, dstLocHint);
FIELD(struct fl_CUmemcpyAttributes, CUmemcpyAttributes, flags);
