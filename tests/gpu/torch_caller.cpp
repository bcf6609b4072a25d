/* As torch/csrc/cuda has it: a pool's id is a std::pair, the filter a std::function by value, hooks
 * are addresses that are cast. */
#include "gpu/torch_caller.h"

#include "gpu/fake_c10.hpp"

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <utility>

using id_type = std::pair<unsigned long long, unsigned long long>;
using stream_type = struct CUstream_st *;
using begin_type = void(int, id_type, std::function<bool(stream_type)>);
using pool_type = void(int, id_type);

/* PyTorch has them as numbers. */
template <typename T> static T *as(uintptr_t hook)
{
    return reinterpret_cast<T *>(hook);
}

static int filters;
static stream_type refused;
static void (*when_asked)();

/* Larger than what a std::function keeps within itself, and counted. */
struct filter {
    stream_type stream;
    bool all;
    char padding[64];
    filter(stream_type s, bool a) : stream(s), all(a)
    {
        filters++;
    }
    filter(const filter &f) : stream(f.stream), all(f.all)
    {
        filters++;
    }
    ~filter()
    {
        filters--;
    }
    /* PyTorch's throws where the driver refuses to say what the stream captures. */
    bool operator()(stream_type s) const
    {
        if (refused != nullptr && s == refused) {
            throw std::runtime_error("the filter cannot ask");
        }
        if (when_asked != nullptr) {
            when_asked();
        }
        return all || s == stream;
    }
};

extern "C" int torch_filters(void)
{
    return filters;
}

extern "C" void torch_when_asked(void (*fn)())
{
    when_asked = fn;
}

extern "C" void torch_refuse(void *stream)
{
    refused = static_cast<stream_type>(stream);
}

static bool caught_memory;

extern "C" int torch_caught_memory(void)
{
    return caught_memory ? 1 : 0;
}

extern "C" int torch_errors(void)
{
    return c10::errors;
}

extern "C" void *torch_alloc(ssize_t size, int device, void *stream, char *what, size_t room)
{
    std::function<void *(size_t, int, stream_type)> alloc =
        reinterpret_cast<void *(*)(size_t, int, stream_type)>(fl_gpu_torch_alloc);
    what[0] = '\0';
    try {
        return alloc(static_cast<size_t>(size), device, static_cast<stream_type>(stream));
    } catch (const std::exception &e) {
        caught_memory = dynamic_cast<const c10::OutOfMemoryError *>(&e) != nullptr;
        std::strncpy(what, e.what(), room - 1);
        what[room - 1] = '\0';
        return nullptr;
    }
}

extern "C" void torch_begin(int device, unsigned long long first, unsigned long long second,
                            void *stream)
{
    std::function<begin_type> begin =
        as<begin_type>(reinterpret_cast<uintptr_t>(fl_gpu_torch_begin_allocate_to_pool));
    begin(device, {first, second}, filter(static_cast<stream_type>(stream), stream == nullptr));
}

extern "C" void torch_end(int device, unsigned long long first, unsigned long long second)
{
    std::function<pool_type> end =
        as<pool_type>(reinterpret_cast<uintptr_t>(fl_gpu_torch_end_allocate_to_pool));
    end(device, {first, second});
}

extern "C" void torch_release(int device, unsigned long long first, unsigned long long second)
{
    std::function<pool_type> release =
        as<pool_type>(reinterpret_cast<uintptr_t>(fl_gpu_torch_release_pool));
    release(device, {first, second});
}
