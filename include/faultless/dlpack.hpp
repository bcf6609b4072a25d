/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer of faultless's as a DLPack tensor, for whatever takes those (PyTorch, CuPy, JAX, cuDF).
 * Header only; include DLPack's own header before: <dlpack/dlpack.h>, or PyTorch's <ATen/dlpack.h>.
 *
 *     DLManagedTensor *t = faultless::to_dlpack(pool.take(4 * n, stream), {kDLFloat, 32, 1}, {n});
 *     at::Tensor tensor = at::fromDLPack(t);   // its deleter gives the buffer back
 *
 * The tensor has the buffer; its deleter, which any thread may call once, frees it in the order of
 * the buffer's stream. Other streams that use it are recorded before (buffer::record), or have
 * ended. The pool outlives it. */
#ifndef FAULTLESS_DLPACK_HPP
#define FAULTLESS_DLPACK_HPP

#include "gpu.hpp"

#include <memory>
#include <vector>

#ifndef DLPACK_DLL
#error "include DLPack's own header before this one"
#endif

namespace faultless
{

namespace detail
{
struct dlpack_tensor {
    DLManagedTensor tensor = {};
    buffer held;
    std::vector<std::int64_t> shape, strides; /* strides: in elements; DLPack 1.2 wants them */
};
} // namespace detail

/* Dense, in C's order. What is larger than the buffer throws std::length_error, and the buffer is
 * given back. */
inline DLManagedTensor *to_dlpack(buffer &&from, DLDataType type, std::vector<std::int64_t> shape)
{
    auto whole = std::make_unique<detail::dlpack_tensor>();
    struct fl_gpu_block block = {};
    std::size_t bytes = (static_cast<std::size_t>(type.bits) * type.lanes + 7) / 8;

    whole->held = std::move(from);
    whole->shape = std::move(shape);
    for (std::int64_t n : whole->shape) {
        if (n < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(n), &bytes)) {
            throw std::length_error("faultless: a shape of no size");
        }
    }
    if (bytes > whole->held.size()) {
        throw std::length_error("faultless: the tensor is larger than its buffer");
    }
    whole->strides.assign(whole->shape.size(), 1);
    for (std::size_t i = whole->shape.size(); i-- > 1;) {
        /* Beside an empty dimension they may be more than fits, and mean nothing. */
        (void)__builtin_mul_overflow(whole->strides[i], whole->shape[i], &whole->strides[i - 1]);
    }
    block.size = sizeof block;
    check(whole->held.find(&block));
    DLTensor &t = whole->tensor.dl_tensor;
    t.data = whole->held.data();
    t.device.device_type = block.target == FL_GPU_PINNED ? kDLCUDAHost : kDLCUDA;
    t.device.device_id = block.target == FL_GPU_PINNED ? 0 : block.device;
    t.ndim = static_cast<std::int32_t>(whole->shape.size());
    t.dtype = type;
    t.shape = whole->shape.data();
    t.strides = whole->strides.data();
    t.byte_offset = 0;
    whole->tensor.manager_ctx = whole.get();
    whole->tensor.deleter = [](DLManagedTensor *self) {
        delete static_cast<detail::dlpack_tensor *>(self->manager_ctx);
    };
    return &whole.release()->tensor;
}

} // namespace faultless

#endif
