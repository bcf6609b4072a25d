/* The resources are what CCCL's concepts and RMM's references ask for. Compiled, not run. */
#include "faultless/resource.hpp"

#if __has_include(<rmm/resource_ref.hpp>)
#include <rmm/device_buffer.hpp>
#include <rmm/resource_ref.hpp>
#endif

using faultless::device_resource;
using faultless::pinned_resource;

#if __has_include(<cuda/__memory_resource/any_resource.h>) || __has_include(<rmm/resource_ref.hpp>)
static_assert(cuda::mr::resource_with<device_resource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::resource_with<device_resource, cuda::mr::host_accessible>);
static_assert(cuda::mr::resource_with<pinned_resource, cuda::mr::device_accessible,
                                      cuda::mr::host_accessible>);
static_assert(cuda::mr::synchronous_resource<device_resource>);
#else
static_assert(cuda::mr::async_resource_with<device_resource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::async_resource_with<device_resource, cuda::mr::host_accessible>);
static_assert(cuda::mr::async_resource_with<pinned_resource, cuda::mr::device_accessible,
                                            cuda::mr::host_accessible>);
#endif

#if __has_include(<rmm/resource_ref.hpp>)
rmm::device_buffer use(device_resource &device, pinned_resource &pinned, cuda::stream_ref s);
rmm::device_buffer use(device_resource &device, pinned_resource &pinned, cuda::stream_ref s)
{
    rmm::device_async_resource_ref d(device);
    rmm::host_device_async_resource_ref p(pinned);
    void *host = p.allocate(s, 100, 256);

    p.deallocate(s, host, 100, 256);
    return rmm::device_buffer(100, s, d);
}
#endif
