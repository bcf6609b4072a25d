/* An at::HostAllocator as PyTorch's header wants it. Compiled, not run. */
#include "faultless/torch_host.hpp"

void use(struct fl_gpu_pool *pool);
void use(struct fl_gpu_pool *pool)
{
    static faultless::host_allocator pinned(pool);

    at::setHostAllocator(at::kCUDA, &pinned, 1);
}
