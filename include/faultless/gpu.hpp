/* SPDX-License-Identifier: Apache-2.0 */
/* faultless on GPUs, for C++17: handles that end themselves, and exceptions. Header only, over
 * gpu.h.
 *
 *     faultless::gpu device(0);
 *     faultless::pool pool(device, faultless::pool::defaults(FL_GPU_DEVICE));
 *     faultless::buffer b = pool.take(bytes, stream);   // freed in the order of `stream`
 *
 * An owner is moved, never copied; what was moved from owns nothing. Destructors never throw. */
#ifndef FAULTLESS_GPU_HPP
#define FAULTLESS_GPU_HPP

#include "gpu.h"

#include <cerrno>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

namespace faultless
{

/* A call that failed: its status, a negative errno, and fl_gpu_error's text. */
class gpu_error : public std::runtime_error
{
    int status_;

  public:
    explicit gpu_error(int status) : std::runtime_error(fl_gpu_error()), status_(status)
    {
    }
    int status() const noexcept
    {
        return status_;
    }
};

/* No memory of the device. */
class gpu_out_of_memory : public std::bad_alloc
{
  public:
    const char *what() const noexcept override
    {
        return "faultless: no memory of the device";
    }
};

inline void check(int status)
{
    if (status == -ENOMEM) {
        throw gpu_out_of_memory();
    }
    if (status != 0) {
        throw gpu_error(status);
    }
}

/* A device that is open. It outlives its pools. */
class gpu
{
    struct fl_gpu *handle_ = nullptr;

  public:
    explicit gpu(int device)
    {
        check(fl_gpu_open(device, &handle_));
    }
    gpu(gpu &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
    {
    }
    gpu &operator=(gpu &&from) noexcept
    {
        std::swap(handle_, from.handle_);
        return *this;
    }
    ~gpu()
    {
        if (handle_ != nullptr) {
            (void)fl_gpu_close(handle_);
        }
    }
    struct fl_gpu *get() const noexcept
    {
        return handle_;
    }
};

/* Bytes of a pool, in the order of a stream. It ends before its pool. */
class buffer
{
    struct fl_gpu_pool *pool_ = nullptr;
    std::uint64_t address_ = 0;
    std::size_t size_ = 0;
    void *stream_ = nullptr;

  public:
    buffer() = default;
    buffer(struct fl_gpu_pool *pool, std::size_t size, void *stream)
        : pool_(pool), size_(size), stream_(stream)
    {
        check(fl_gpu_pool_alloc(pool, size, stream, &address_));
    }
    buffer(buffer &&from) noexcept
        : pool_(from.pool_), address_(std::exchange(from.address_, 0)), size_(from.size_),
          stream_(from.stream_)
    {
    }
    buffer &operator=(buffer &&from) noexcept
    {
        std::swap(pool_, from.pool_);
        std::swap(address_, from.address_);
        std::swap(size_, from.size_);
        std::swap(stream_, from.stream_);
        return *this;
    }
    ~buffer()
    {
        if (address_ != 0) {
            (void)fl_gpu_pool_free(pool_, address_, stream_);
        }
    }
    void *data() const noexcept
    {
        return reinterpret_cast<void *>(address_); /* NOLINT(performance-no-int-to-ptr) */
    }
    std::size_t size() const noexcept
    {
        return size_;
    }
    /* The stream whose work is awaited before others have it: the last that uses it. */
    void stream(void *stream) noexcept
    {
        stream_ = stream;
    }
    /* Another stream uses it, too. */
    void record(void *stream)
    {
        check(fl_gpu_pool_record_stream(pool_, address_, stream));
    }
    /* As fl_gpu_pool_find: 0 or a status. */
    int find(struct fl_gpu_block *out) const noexcept
    {
        return fl_gpu_pool_find(pool_, address_, out);
    }
    explicit operator bool() const noexcept
    {
        return address_ != 0;
    }
};

/* A pool. What was taken from it is given back before it ends. */
class pool
{
    struct fl_gpu_pool *handle_ = nullptr;

  public:
    using options = struct fl_gpu_pool_options;

    static options defaults(enum fl_gpu_target target)
    {
        options o;
        fl_gpu_pool_defaults(&o, target);
        return o;
    }
    pool(const gpu &device, const options &o)
    {
        check(fl_gpu_pool_create(device.get(), &o, &handle_));
    }
    pool(pool &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
    {
    }
    pool &operator=(pool &&from) noexcept
    {
        std::swap(handle_, from.handle_);
        return *this;
    }
    ~pool()
    {
        if (handle_ != nullptr) {
            (void)fl_gpu_pool_destroy(handle_);
        }
    }
    struct fl_gpu_pool *get() const noexcept
    {
        return handle_;
    }
    buffer take(std::size_t size, void *stream)
    {
        return buffer(handle_, size, stream);
    }
    std::size_t trim(std::size_t keep = 0)
    {
        std::size_t released = 0;
        check(fl_gpu_pool_trim(handle_, keep, &released));
        return released;
    }
    struct fl_gpu_pool_stats stats() const
    {
        struct fl_gpu_pool_stats s = {};
        s.size = sizeof s;
        check(fl_gpu_pool_stats(handle_, &s));
        return s;
    }
};

} // namespace faultless

#endif
