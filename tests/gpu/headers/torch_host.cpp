/* PyTorch's own calls of the at::HostAllocator, on the fake driver; its runtime is replaced. */
#include "faultless/torch_host.hpp"

#include "../fake_cuda.h"

#include <c10/core/DeviceGuard.h>

#include <cstdio>
#include <cstring>
#include <cstdlib>
#include <dlfcn.h>

#define CHECK(condition)                                                                           \
    if (!(condition)) {                                                                            \
        std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                               \
        return 1;                                                                                  \
    }

/* From PyTorch 2.10 on: PyTorch calls these around each capture of a graph. */
template <typename A> auto captures(A *ours, int) -> decltype(ours->release_pool({1, 0}), true)
{
    ours->begin_allocate_to_pool({1, 0}, [](c10::Stream) { return true; });
    at::DataPtr p = ours->allocate(4096);
    ours->end_allocate_to_pool({1, 0});
    ours->release_pool({1, 0});
    return p.get() != nullptr;
}
bool captures(...)
{
    return true;
}

/* What libtorch_cuda, which needs a whole runtime, would tell libc10_cuda. */
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

/* A block that device 1 copies from on its default stream, NULL, while device 0 is current. */
int second_device(struct fl_gpu_pool *pool, at::HostAllocator *ours)
{
    void *driver = dlopen(std::getenv("FAULTLESS_GPU_DRIVER"), RTLD_NOW);
    auto *fake = static_cast<struct fake_cuda *>(dlsym(driver, "fake_cuda"));
    auto *alloc =
        reinterpret_cast<int (*)(std::uint64_t *, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
    auto *copy = reinterpret_cast<int (*)(std::uint64_t, const void *, std::size_t, void *)>(
        dlsym(driver, "cuMemcpyHtoDAsync_v2"));
    const c10::Device second(c10::kCUDA, 1);
    const c10::Stream stream(c10::Stream::DEFAULT, second);
    std::uint64_t to = 0;
    void *first = nullptr;

    fake->schedule(FAKE_CUDA_LATE, 0);
    {
        at::DataPtr p = ours->allocate(1 << 20);
        first = p.get();
        {
            const c10::DeviceGuard there(second);
            CHECK(alloc(&to, 1 << 20) == 0);
            CHECK(copy(to, first, 1 << 20, nullptr) == 0);
        }
        CHECK(ours->record_event(first, p.get_context(), stream));
    }
    CHECK(fl_gpu_pool_collect(pool) == 0); /* records what it waits for */
    (void)fake->holds(to, 1, 0);           /* all runs, and the host does not know */
    CHECK(fl_gpu_pool_collect(pool) == 0);
    at::DataPtr more[4];
    for (at::DataPtr &p : more) { /* perhaps the same memory: then nothing is at it any more */
        p = ours->allocate(1 << 20);
        fake->host_access(p.get(), 1 << 20, true);
    }
    std::fprintf(stderr, "%s", fake->report());
    return fake->races() != 0;
}

int main()
{
    faultless::gpu gpu(0);
    faultless::pool pool(gpu, faultless::pool::defaults(FL_GPU_PINNED));
    static faultless::host_allocator pinned(pool.get());
    const c10::Stream stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, 0));

    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
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
    CHECK(captures(ours, 0));
    CHECK(second_device(pool.get(), ours) == 0);
    ours->empty_cache(); /* waits for device 1, too */
    CHECK(pool.stats().free_bytes == 0);
    return 0;
}
