/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's pinned memory from a pinned pool of faultless's: an at::HostAllocator, for C++ programs
 * and extensions built against PyTorch 2.9 or later, which has at::setHostAllocator. Header only.
 *
 *     static faultless::host_allocator pinned(pool.get());        // FL_GPU_PINNED; both stay
 *     at::setHostAllocator(at::kCUDA, &pinned, 1);                // before the first pinned tensor
 *
 * A block is given out again when every stream that PyTorch recorded on it is past its free, as by
 * PyTorch's own allocator; with none recorded at once, and without a call of the driver. One that a
 * graph copies from is kept until the pool ends: the graph may run at any time. One allocator
 * serves all devices. */
#ifndef FAULTLESS_TORCH_HOST_HPP
#define FAULTLESS_TORCH_HOST_HPP

#include "gpu.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <functional>
#include <memory>
#include <utility>

namespace faultless
{

class host_allocator final : public at::HostAllocator
{
    struct fl_gpu_pool *pool_;

    struct block {
        struct fl_gpu_pool *pool;
        std::uint64_t address;
    };
    static void give(void *context)
    {
        auto *b = static_cast<block *>(context);

        (void)fl_gpu_pool_free(b->pool, b->address, FL_GPU_HOST);
        delete b;
    }

  public:
    explicit host_allocator(struct fl_gpu_pool *pool) : pool_(pool)
    {
    }
    at::DataPtr allocate(size_t size) override
    {
        if (size == 0) {
            return {nullptr, nullptr, &give_nothing, at::Device(at::kCPU)};
        }
        auto b = std::make_unique<block>(block{pool_, 0});
        check(fl_gpu_pool_alloc(pool_, size, FL_GPU_HOST, &b->address));
        auto *p = reinterpret_cast<void *>(b->address); /* NOLINT(performance-no-int-to-ptr) */
        return {p, b.release(), &give, at::Device(at::kCPU)};
    }
    /* False: the address, of a block's first byte or another, is not ours. */
    bool record_event(void *p, void *, c10::Stream stream) override
    {
        struct fl_gpu_block found = {};

        found.size = sizeof found;
        if (fl_gpu_pool_find(pool_, reinterpret_cast<std::uintptr_t>(p), &found) != 0) {
            return false;
        }
        /* Each device has a default stream, and all have the same handle. */
        const c10::DeviceGuard current(stream.device());
        return fl_gpu_pool_record_stream(pool_, found.address,
                                         c10::cuda::CUDAStream(stream).stream()) == 0;
    }
    void empty_cache() override
    {
        (void)fl_gpu_pool_trim(pool_, 0, nullptr);
    }
    void copy_data(void *to, const void *from, std::size_t count) const override
    {
        default_copy_data(to, from, count);
    }
    /* What PyTorch counts of its own allocator: fl_gpu_pool_stats has ours. */
    at::HostStats get_stats() override
    {
        return {};
    }
    void reset_accumulated_stats() override
    {
    }
    void reset_peak_stats() override
    {
    }

    /* Around a graph's capture, from PyTorch 2.10 on; before that they override nothing. There is
     * nothing to do: the pool sees by itself that a recorded stream is captured. */
    using graph_id = std::pair<unsigned long long, unsigned long long>; /* c10::MempoolId_t */
#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Winconsistent-missing-override"
#endif
    virtual void begin_allocate_to_pool(graph_id, std::function<bool(c10::Stream)>)
    {
    }
    virtual void end_allocate_to_pool(graph_id)
    {
    }
    virtual void release_pool(graph_id)
    {
    }
#ifdef __clang__
#pragma clang diagnostic pop
#endif

  private:
    static void give_nothing(void *)
    {
    }
};

} // namespace faultless

#endif
