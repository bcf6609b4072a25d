/* PyTorch's own calls of the at::HostAllocator, on the fake driver; its runtime is replaced. */
#include "faultless/torch_host.hpp"

#include <cstdio>
#include <cstring>

#define CHECK(condition)                                                                           \
    if (!(condition)) {                                                                            \
        std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                               \
        return 1;                                                                                  \
    }

int main()
{
    faultless::gpu gpu(0);
    faultless::pool pool(gpu, faultless::pool::defaults(FL_GPU_PINNED));
    static faultless::host_allocator pinned(pool.get());
    const c10::Stream stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, 0));

    at::setHostAllocator(at::kCUDA, &pinned, 1);
    at::HostAllocator *ours = at::getHostAllocator(at::kCUDA);
    CHECK(ours == &pinned);
    {
        at::DataPtr p = ours->allocate(1 << 20), none = ours->allocate(0);
        CHECK(none.get() == nullptr && p.get() != nullptr);
        std::memset(p.get(), 1, 1 << 20);
        CHECK(pool.stats().requested_bytes == 1 << 20);
        CHECK(ours->record_event(p.get(), p.get_context(), stream));
        CHECK(!ours->record_event(&pool, nullptr, stream)); /* not ours */
    }
    CHECK(pool.stats().occupied_bytes == 0);
    for (int i = 0; i < 100; i++) {
        at::DataPtr p = ours->allocate(4096); /* freed by the host: the same memory */
    }
    CHECK(pool.stats().driver_allocs == 1);
    ours->empty_cache();
    CHECK(pool.stats().free_bytes == 0);
    return 0;
}
