/* The C++ handles on the fake driver: what they own ends once, moves, and throws. */
#include "faultless/gpu.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifdef FL_TEST_DLPACK
#include <ATen/dlpack.h>

#include "faultless/dlpack.hpp"
#endif

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "test_gpu_cxx: line %d: %s\n", __LINE__, #condition);             \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (false)

static constexpr std::size_t mib = std::size_t{1} << 20;

static void what_is_owned_ends_once(faultless::pool &pool)
{
    {
        faultless::buffer a = pool.take(mib, nullptr), b = std::move(a), c;
        EXPECT(!a && b && !c && b.size() == mib && b.data() != nullptr);
        c = std::move(b);
        c = pool.take(2 * mib, nullptr); /* the one before goes with the one that was moved */
        EXPECT(c.size() == 2 * mib);
        c.record(nullptr);
    }
    EXPECT(pool.stats().occupied_bytes == 0 && pool.stats().allocs == pool.stats().frees);
    EXPECT(pool.trim() != 0 && pool.stats().free_bytes == 0);
}

static void what_cannot_be_throws(faultless::gpu &device, faultless::pool &pool)
{
    try {
        faultless::buffer b = pool.take(std::size_t{1} << 46, nullptr);
        EXPECT(false);
    } catch (const std::bad_alloc &e) {
        EXPECT(std::strstr(e.what(), "no memory") != nullptr);
    }
    try {
        faultless::gpu none(-1);
        EXPECT(false);
    } catch (const faultless::gpu_error &e) {
        EXPECT(e.status() != 0 && std::strlen(e.what()) != 0);
    }
    faultless::pool::options o = faultless::pool::defaults(FL_GPU_PINNED);
    o.initial = o.regrow = 4 * mib;
    faultless::pool pinned(device, o), moved = std::move(pinned);
    EXPECT(pinned.get() == nullptr && moved.get() != nullptr);
    faultless::buffer b = moved.take(100, nullptr);
    std::memset(b.data(), 1, 100);
}

#ifdef FL_TEST_DLPACK
static void a_tensor_has_the_buffer_until_its_deleter(faultless::pool &pool)
{
    const DLDataType real = {kDLFloat, 32, 1};
    DLManagedTensor *t = faultless::to_dlpack(pool.take(mib, nullptr), real, {256, 1024});

    EXPECT(t->dl_tensor.ndim == 2 && t->dl_tensor.shape[1] == 1024);
    /* DLPack 1.2 and later: strides are there, in elements. */
    EXPECT(t->dl_tensor.strides != nullptr && t->dl_tensor.strides[0] == 1024 &&
           t->dl_tensor.strides[1] == 1);
    EXPECT(t->dl_tensor.device.device_type == kDLCUDA && t->dl_tensor.device.device_id == 0);
    EXPECT(pool.stats().occupied_bytes == mib);
    t->deleter(t);
    EXPECT(pool.stats().occupied_bytes == 0);
    try {
        (void)faultless::to_dlpack(pool.take(mib, nullptr), real, {257, 1024});
        EXPECT(false);
    } catch (const std::length_error &) {
        EXPECT(pool.stats().occupied_bytes == 0);
    }
}
#endif

int main()
{
    faultless::gpu device(0);
    faultless::pool pool(device, faultless::pool::defaults(FL_GPU_DEVICE));

    what_is_owned_ends_once(pool);
    what_cannot_be_throws(device, pool);
#ifdef FL_TEST_DLPACK
    a_tensor_has_the_buffer_until_its_deleter(pool);
#endif
    return 0;
}
