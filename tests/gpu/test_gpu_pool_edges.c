/* What is rare, and must be right all the same: odd limits, streams that come and go, a driver that
 * refuses in the middle of a free. */
#include "gpu/pool_fixture.h"

#include <errno.h>
#include <math.h>

/* Whatever the limit is, an address is a multiple of 256. */
GPU_TEST(an_odd_limit_gives_no_odd_address)
{
    static const enum fl_gpu_strategy both[] = {FL_GPU_AUTO_GROWTH, FL_GPU_NAIVE_BEST_FIT};
    uint64_t at[3];

    for (unsigned i = 0; i < 2; i++) {
        struct fl_gpu_pool_options o = pool_options(both[i]);
        o.limit = MIB(10) + 100;
        o.chunk = o.initial = o.regrow = MIB(20);
        struct fl_gpu_pool *p = pool_with(&o);
        for (unsigned k = 0; k < 3; k++) {
            at[k] = pool_take(p, 1000, NULL);
            assert_int_equal(at[k] % 256, 0);
        }
        assert_true(pool_held(p) <= o.limit);
        for (unsigned k = 0; k < 3; k++) {
            pool_give(p, at[k], NULL);
        }
        pool_end(p);
    }
}

GPU_TEST(bad_arguments_are_said_so)
{
    struct fl_gpu_pool *none;
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);

    o.gc_gb = NAN;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &none), -EINVAL);
    o = pool_options(FL_GPU_AUTO_GROWTH);
    o.gc_fraction = NAN;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &none), -EINVAL);
}

/* Streams that come and go leave nothing: neither records nor events. */
GPU_FAKE_TEST(streams_that_go_leave_nothing)
{
    size_t live = 0;

    fake->schedule(FAKE_CUDA_LATE, 0);
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    void *home = gpu_stream();
    for (unsigned i = 0; i < 200; i++) {
        void *guest = gpu_stream();
        uint64_t x = pool_take(p, MIB(1), guest);
        gpu_fill(guest, x, MIB(1), 1);
        pool_give(p, x, guest);
        gpu_wait(guest);
        x = pool_take(p, MIB(1), home);
        gpu_fill(home, x, MIB(1), 2);
        pool_give(p, x, home);
        assert_int_equal(fl_gpu_pool_stream_retire(p, guest), 0);
        gpu_wait(home);
        gpu_stream_end(guest);
        if (i == 20) {
            live = fake->live();
        }
    }
    assert_true(fake->live() <= live);
    unsigned records = 0;
    for (const struct fl_pool_stream *s = p->streams; s != NULL; s = s->next) {
        records++;
    }
    assert_true(records <= 4);
    pool_end(p);
}

/* Each has a record of its own that is found, however many there are, and none when it has been
 * retired. */
GPU_TEST(many_streams_are_told_apart)
{
    enum { MANY = 100 };
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    void *stream[MANY];
    uint64_t at[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        stream[i] = gpu_stream();
        assert_int_equal(fl_gpu_pool_stream_lasts(p, stream[i]), 0);
        at[i] = pool_take(p, 1000, stream[i]);
    }
    assert_true(p->handles >= MANY);
    for (unsigned i = 0; i < MANY; i++) {
        const struct fl_pool_stream *s = fl_stream_lasting(p, fl_stream_named(p, stream[i]));
        assert_non_null(s);
        assert_ptr_equal(s->handle, stream[i]);
        pool_give(p, at[i], stream[i]);
        assert_int_equal(s->blocks, 1);
    }
    for (unsigned i = 0; i < MANY; i += 2) {
        assert_int_equal(fl_gpu_pool_stream_retire(p, stream[i]), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        assert_true((fl_stream_lasting(p, fl_stream_named(p, stream[i])) != NULL) == (i % 2 != 0));
    }
    pool_end(p);
    for (unsigned i = 0; i < MANY; i++) {
        gpu_stream_end(stream[i]);
    }
}

static void *a, *b;

GPU_TEST(peaks_begin_anew)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x = pool_take(p, MIB(4), NULL), y = pool_take(p, MIB(2), NULL);

    assert_int_equal(fl_gpu_pool_reset_peaks(NULL), -EINVAL);
    pool_give(p, x, NULL);
    assert_int_equal(pool_stats(p).occupied_peak_bytes, MIB(6));
    assert_int_equal(fl_gpu_pool_reset_peaks(p), 0);
    assert_int_equal(pool_stats(p).occupied_peak_bytes, MIB(2));
    pool_give(p, y, NULL);
    assert_int_equal(fl_gpu_pool_trim(p, 0, NULL), 0);
    assert_true(pool_stats(p).held_peak_bytes >= MIB(6));
    assert_int_equal(fl_gpu_pool_reset_peaks(p), 0);
    assert_int_equal(pool_stats(p).occupied_peak_bytes, 0);
    assert_true(pool_stats(p).held_peak_bytes == pool_stats(p).free_bytes);
    pool_end(p);
}

/* What another stream wants while one is captured is asked of the driver without an end to the
 * capture. */
GPU_TEST(others_go_on_while_a_stream_is_captured)
{
    fl_CUstreamCaptureMode mode = 0;

    a = gpu_stream();
    b = gpu_stream();
    struct fl_gpu_pool *p = pool_lasting(FL_GPU_AUTO_GROWTH, a);
    const uint64_t x = pool_take(p, MIB(4), a);
    pool_give(p, x, a);
    if (fake != NULL) {
        fake->capture(a, true);
    }
    const uint64_t y = pool_take(p, MIB(8), b), z = pool_take(p, MIB(4), b);
    assert_true(fake == NULL || z != x);
    assert_int_equal(fl_cuda.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, 0);
    if (fake != NULL) {
        fake->capture(a, false);
    }
    pool_give(p, y, b);
    pool_give(p, z, b);
    pool_end(p);
}

GPU_MAIN("test_gpu_pool_edges")
