/* Each hook has the signature that PyTorch's headers give to CUDAPluggableAllocator's setter for
 * it. Compiled, not run: begin_allocate_to_pool's filter is a std::function by value, which the C++
 * ABI passes by reference, as a C function has it; test_gpu_torch_graph runs that. */
#include "faultless/gpu.h"

#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <type_traits>
#include <utility>

using allocator = torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator;
using id_type = c10::cuda::MempoolId_t;

/* What a setter takes, as a plain function. */
template <typename Setter> struct taken;
template <typename Result, typename... Argument>
struct taken<void (allocator::*)(std::function<Result(Argument...)>)> {
    using type = Result(Argument...);
};
template <auto setter> using hook = typename taken<decltype(setter)>::type;

/* The same but for what a C header has in its own words: a stream is a void *. */
template <typename T> using plain = std::conditional_t<std::is_same_v<T, cudaStream_t>, void *, T>;
template <typename T> struct plainly;
template <typename Result, typename... Argument> struct plainly<Result(Argument...)> {
    using type = Result(plain<Argument>...);
};
template <auto setter, typename Ours>
inline constexpr bool is_hook = std::is_same_v<typename plainly<hook<setter>>::type, Ours>;

static_assert(is_hook<&allocator::set_init_fn, decltype(fl_gpu_torch_init)>);
static_assert(is_hook<&allocator::set_reset_fn, decltype(fl_gpu_torch_empty_cache)>);
static_assert(is_hook<&allocator::set_memory_fraction_fn, decltype(fl_gpu_torch_memory_fraction)>);
static_assert(is_hook<&allocator::set_base_alloc_fn, decltype(fl_gpu_torch_base_alloc)>);
static_assert(is_hook<&allocator::set_record_stream_fn, decltype(fl_gpu_torch_record_stream)>);

/* A pool's number, by value: two integers in registers, as a struct of two is. */
static_assert(std::is_same_v<hook<&allocator::set_end_allocate_to_pool_fn>, void(int, id_type)>);
static_assert(std::is_same_v<hook<&allocator::set_release_pool>, void(int, id_type)>);
static_assert(std::is_same_v<decltype(fl_gpu_torch_release_pool), void(int, fl_gpu_torch_id)>);
static_assert(
    std::is_same_v<decltype(fl_gpu_torch_end_allocate_to_pool), void(int, fl_gpu_torch_id)>);
static_assert(sizeof(id_type) == sizeof(fl_gpu_torch_id));
static_assert(std::is_trivially_copy_constructible_v<id_type>);
static_assert(std::is_trivially_destructible_v<id_type>);
static_assert(std::is_same_v<id_type::first_type, decltype(fl_gpu_torch_id::first)>);
static_assert(std::is_same_v<id_type::second_type, decltype(fl_gpu_torch_id::second)>);

using filter = std::function<bool(cudaStream_t)>;
static_assert(
    std::is_same_v<hook<&allocator::set_begin_allocate_to_pool>, void(int, id_type, filter)>);
static_assert(!std::is_trivially_copy_constructible_v<filter>); /* so it is passed by reference */
static_assert(std::is_same_v<decltype(fl_gpu_torch_begin_allocate_to_pool),
                             void(int, fl_gpu_torch_id, const void *)>);

/* The pair that Python names is cast to these; a size is as wide, and not negative. */
static_assert(std::is_constructible_v<allocator, std::function<void *(size_t, int, cudaStream_t)>,
                                      std::function<void(void *, size_t, int, cudaStream_t)>>);
static_assert(
    std::is_same_v<decltype(fl_gpu_torch_alloc), void *(std::make_signed_t<size_t>, int, void *)>);
static_assert(std::is_same_v<decltype(fl_gpu_torch_free),
                             void(void *, std::make_signed_t<size_t>, int, void *)>);

/* torch_error.c puts c10::OutOfMemoryError together: room, what it is made of, what it is. */
static_assert(sizeof(c10::OutOfMemoryError) <= 1024);
static_assert(alignof(c10::OutOfMemoryError) <= 16);
static_assert(sizeof(c10::SourceLocation) == 24 &&
              std::is_trivially_copyable_v<c10::SourceLocation>);
static_assert(std::is_constructible_v<c10::OutOfMemoryError, c10::SourceLocation, std::string>);
static_assert(std::is_base_of_v<c10::Error, c10::OutOfMemoryError>);
static_assert(sizeof(std::string) == 32);
