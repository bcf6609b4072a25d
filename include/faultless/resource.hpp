/* SPDX-License-Identifier: Apache-2.0 */
/* Memory resources for CCCL (cuda::mr) and RMM over faultless's pools. Header only; it wants CCCL's
 * headers and the CUDA runtime's.
 *
 *     faultless::device_resource device(pool.get());
 *     rmm::device_buffer b(bytes, stream, device);          // by rmm::device_async_resource_ref
 *     faultless::pinned_resource pinned(host_pool.get());
 *
 * A resource is a reference: the pool outlives it and what was allocated. It has the calls of both
 * of CCCL's generations: allocate(stream, bytes, alignment) and allocate_async. Without memory they
 * throw std::bad_alloc's child gpu_out_of_memory, else gpu_error. Threads: any. */
#ifndef FAULTLESS_RESOURCE_HPP
#define FAULTLESS_RESOURCE_HPP

#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* what older CCCLs ask for */
#endif

#include "gpu.hpp"

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

namespace faultless
{

template <enum fl_gpu_target Target> class resource
{
    struct fl_gpu_pool *pool_;

    void *take(std::size_t bytes, std::size_t alignment, void *stream)
    {
        std::uint64_t address = 0;

        if (alignment > most_aligned) {
            throw std::bad_alloc();
        }
        check(fl_gpu_pool_alloc(pool_, bytes, stream, &address));
        return reinterpret_cast<void *>(address); /* NOLINT(performance-no-int-to-ptr) */
    }
    void give(void *p, void *stream) noexcept
    {
        if (p != nullptr) {
            (void)fl_gpu_pool_free(pool_, reinterpret_cast<std::uintptr_t>(p), stream);
        }
    }

  public:
    static constexpr std::size_t most_aligned = 256;

    explicit resource(struct fl_gpu_pool *pool) noexcept : pool_(pool)
    {
    }
    struct fl_gpu_pool *pool() const noexcept
    {
        return pool_;
    }

    /* In the order of the stream. */
    void *allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment = most_aligned)
    {
        return take(bytes, alignment, stream.get());
    }
    void deallocate(cuda::stream_ref stream, void *p, std::size_t,
                    std::size_t = most_aligned) noexcept
    {
        give(p, stream.get());
    }
    void *allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream)
    {
        return take(bytes, alignment, stream.get());
    }
    void *allocate_async(std::size_t bytes, cuda::stream_ref stream)
    {
        return take(bytes, most_aligned, stream.get());
    }
    void deallocate_async(void *p, std::size_t, std::size_t, cuda::stream_ref stream) noexcept
    {
        give(p, stream.get());
    }
    void deallocate_async(void *p, std::size_t, cuda::stream_ref stream) noexcept
    {
        give(p, stream.get());
    }

    /* For any stream and the host, at once: what the legacy stream did with it before has ended.
     * And back: it is not used any more. */
    void *allocate_sync(std::size_t bytes, std::size_t alignment = most_aligned)
    {
        void *p = take(bytes, alignment, nullptr);

        if (Target == FL_GPU_DEVICE && cudaStreamSynchronize(nullptr) != cudaSuccess) {
            give(p, nullptr);
            throw gpu_error(-EIO);
        }
        return p;
    }
    void deallocate_sync(void *p, std::size_t, std::size_t = most_aligned) noexcept
    {
        give(p, nullptr);
    }
    void *allocate(std::size_t bytes, std::size_t alignment = most_aligned)
    {
        return allocate_sync(bytes, alignment);
    }
    void deallocate(void *p, std::size_t, std::size_t = most_aligned) noexcept
    {
        give(p, nullptr);
    }

    friend bool operator==(const resource &a, const resource &b) noexcept
    {
        return a.pool_ == b.pool_;
    }
    friend bool operator!=(const resource &a, const resource &b) noexcept
    {
        return a.pool_ != b.pool_;
    }
    friend constexpr void get_property(const resource &, cuda::mr::device_accessible) noexcept
    {
    }
};

/* Pinned memory is the host's as well. */
inline constexpr void get_property(const resource<FL_GPU_PINNED> &,
                                   cuda::mr::host_accessible) noexcept
{
}

using device_resource = resource<FL_GPU_DEVICE>;
using pinned_resource = resource<FL_GPU_PINNED>;

} // namespace faultless

#endif
