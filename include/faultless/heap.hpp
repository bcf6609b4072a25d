/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps for C++17: an owner, a std::pmr::memory_resource, and an allocator for containers. Header
 * only, over heap.h.
 *
 *     faultless::heap table(std::size_t{1} << 30, "table", FL_HEAP_PREFAULTED, 1); // 1 GiB, node 1
 *
 *     std::vector<float, faultless::allocator<float>> v(1000, table);
 *
 *     faultless::heap_resource blocks(table);
 *     std::pmr::vector<float> w(1000, &blocks);
 *
 * Resources and allocators are references: the heap outlives them and what was allocated. A block
 * takes 64 bytes at least, and all heaps share a lock: for many small blocks put a
 * std::pmr::unsynchronized_pool_resource in front. Without room they throw std::bad_alloc. */
#ifndef FAULTLESS_HEAP_HPP
#define FAULTLESS_HEAP_HPP

#include "heap.h"

#include <cerrno>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory_resource>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace faultless
{

/* Owns a heap. It is moved, never copied; what was moved from owns nothing. Its end is the
 * process's where blocks are allocated still: std::terminate, for they would lose their memory. */
class heap
{
    struct fl_heap *handle_ = nullptr;

    static void check(int status)
    {
        if (status == -ENOMEM) {
            throw std::bad_alloc();
        }
        if (status != 0) {
            throw std::system_error(-status, std::generic_category(), "faultless::heap");
        }
    }

  public:
    using options = struct fl_heap_options;
    using statistics = struct fl_heap_stats;

    explicit heap(const options &o)
    {
        check(fl_heap_create(&o, &handle_));
    }
    heap(std::size_t bytes, const char *name, enum fl_heap_kind kind = FL_HEAP_TOUCH, int node = -1)
    {
        options o;

        fl_heap_defaults(&o);
        o.bytes = bytes;
        o.name = name;
        o.kind = kind;
        o.node = node;
        check(fl_heap_create(&o, &handle_));
    }
    heap(heap &&from) noexcept : handle_(std::exchange(from.handle_, nullptr))
    {
    }
    heap &operator=(heap &&from) noexcept
    {
        std::swap(handle_, from.handle_);
        return *this;
    }
    ~heap()
    {
        if (handle_ != nullptr && fl_heap_destroy(handle_) == -EBUSY) {
            std::terminate();
        }
    }
    struct fl_heap *get() const noexcept
    {
        return handle_;
    }
    statistics stats() const
    {
        statistics s = {};

        s.size = sizeof s;
        check(fl_heap_stats_read(handle_, &s));
        return s;
    }
    void *allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        void *p = nullptr;

        check(fl_heap_alloc(handle_, bytes, alignment, &p));
        return p;
    }
    void deallocate(void *p, std::size_t bytes) noexcept
    {
        (void)fl_heap_free(handle_, p, bytes);
    }
};

/* What std::pmr's containers and resources take from a heap. */
class heap_resource final : public std::pmr::memory_resource
{
    heap *heap_;

    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return heap_->allocate(bytes, alignment);
    }
    void do_deallocate(void *p, std::size_t bytes, std::size_t) override
    {
        heap_->deallocate(p, bytes);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        const auto *same = dynamic_cast<const heap_resource *>(&other);

        return same != nullptr && same->heap_ == heap_;
    }

  public:
    explicit heap_resource(heap &from) noexcept : heap_(&from)
    {
    }
};

/* An allocator for the standard containers. One that is moved or swapped goes with its
 * container. */
template <class T> class allocator
{
    heap *heap_;

    template <class U> friend class allocator;

  public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    allocator(heap &from) noexcept : heap_(&from) /* NOLINT(google-explicit-constructor) */
    {
    }
    template <class U>
    allocator(const allocator<U> &from) noexcept /* NOLINT(google-explicit-constructor) */
        : heap_(from.heap_)
    {
    }
    T *allocate(std::size_t n)
    {
        if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return static_cast<T *>(heap_->allocate(n * sizeof(T), alignof(T)));
    }
    void deallocate(T *p, std::size_t n) noexcept
    {
        heap_->deallocate(p, n * sizeof(T));
    }
    template <class U> bool operator==(const allocator<U> &other) const noexcept
    {
        return heap_ == other.heap_;
    }
    template <class U> bool operator!=(const allocator<U> &other) const noexcept
    {
        return heap_ != other.heap_;
    }
};

} // namespace faultless

#endif
