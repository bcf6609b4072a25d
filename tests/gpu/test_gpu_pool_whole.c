/* What is free becomes whole chunks again, and these go back: whichever stream freed the parts. */
#include "gpu/two_streams.h"

#include <errno.h>

/* Free blocks of one stream with safe ones between and around them become one, all of them. */
GPU_SCHEDULED(all_that_touches_becomes_one)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_NAIVE_BEST_FIT);
    static const size_t size[] = {MIB(1), KIB(2560), MIB(1), KIB(2560), MIB(1)};
    uint64_t x[5];

    begin();
    o.initial = o.regrow = MIB(8);
    o.limit = MIB(8); /* so that b waits for a */
    struct fl_gpu_pool *p = pool_with(&o);
    pool_give(p, pool_take(p, KIB(64), b), b); /* the pool knows of two streams */
    for (size_t i = 0; i < 5; i++) {
        x[i] = pool_take(p, size[i], a);
        assert_true(i == 0 || x[i] == x[i - 1] + size[i - 1]);
    }
    for (size_t i = 0; i < 5; i += 2) {
        pool_give(p, x[i], a);
    }
    gpu_wait_all();
    assert_int_equal(fl_gpu_pool_trim(p, 0, NULL), 0); /* these three are for any stream */
    gpu_hold(a);
    gpu_fill(a, x[1], size[1], 1);
    pool_give(p, x[1], a);
    pool_give(p, x[3], a);
    uint64_t first = pool_take(p, MIB(2), b); /* a part; b waits for a, and has the rest */
    uint64_t rest = pool_take(p, MIB(5), b);
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    pool_give(p, first, b);
    pool_give(p, rest, b);
    pool_end(p);
}

/* Each of two streams has a part of a chunk that no event covers: the pool ends all the same. */
GPU_SCHEDULED(streams_that_share_a_chunk_let_it_go)
{
    static const size_t size[] = {KIB(2560), MIB(1), KIB(2560), MIB(2)};
    void *c = gpu_stream();
    uint64_t x[4], y[2];

    begin();
    struct fl_gpu_pool *p = POOL(FL_GPU_NAIVE_BEST_FIT, o.initial = o.regrow = MIB(8));
    for (size_t i = 0; i < 4; i++) {
        x[i] = pool_take(p, size[i], a);
    }
    gpu_hold(a);
    for (size_t i = 0; i < 2; i++) {
        gpu_fill(a, x[2 * i], size[2 * i], 1);
        pool_give(p, x[2 * i], a);
        y[i] = pool_take(p, KIB(2200), i == 0 ? b : c);
    }
    pool_give(p, y[0], a);
    pool_give(p, y[1], a);
    pool_give(p, x[1], a);
    pool_give(p, x[3], a);
    pool_end(p);
}

/* The same where both were freed when their streams may have gone. */
GPU_SCHEDULED(freed_without_its_stream_it_goes_too)
{
    begin();
    struct fl_gpu_pool *p = POOL(FL_GPU_NAIVE_BEST_FIT, o.initial = o.regrow = MIB(8));
    uint64_t x = pool_take(p, MIB(1), a), y = pool_take(p, MIB(1), b);
    gpu_hold(a);
    gpu_fill(a, x, MIB(1), 1);
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    assert_int_equal(fl_pool_free(p, x, a, false), 0); /* as PyTorch: the stream may have gone */
    assert_int_equal(fl_pool_free(p, y, b, false), 0);
    pool_end(p);
}

GPU_MAIN("test_gpu_pool_whole")
