/* Streams that last without the program's word for it: all of an older driver's, which gives them
 * no numbers (before CUDA 12.0), and all of a pool with lazy events. Run once on each driver. */
#include "gpu/pool_fixture.h"

#include <errno.h>
#include <pthread.h>

static void *a, *b;

static void begin(void)
{
    fake->schedule(FAKE_CUDA_LATE, 0);
    a = gpu_stream();
    b = gpu_stream();
}

static void finish(void)
{
    gpu_stream_end(a);
    gpu_stream_end(b);
}

/* On an older driver the default is enough. */
static struct fl_gpu_pool *lazy(enum fl_gpu_strategy strategy)
{
    return fl_cuda.cuStreamGetId == NULL ? pool_of(strategy) : pool_lasting(strategy);
}

static const enum fl_gpu_strategy all[] = {FL_GPU_NAIVE, FL_GPU_NAIVE_BEST_FIT, FL_GPU_AUTO_GROWTH,
                                           FL_GPU_PLANNED};
enum { ALL = sizeof all / sizeof *all };

/* What a captured stream frees a graph may use: no stream gets it, the same one neither. */
static void what_a_graph_drops_is_kept(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < ALL; i++) {
        struct fl_gpu_pool *p = lazy(all[i]);
        for (unsigned step = 0; step < 3; step++) {
            assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
            pool_give(p, pool_take(p, MIB(1), a), a);
        }
        assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
        uint64_t before = pool_take(p, MIB(1), a);
        fake->capture(a, true);
        uint64_t graphs = pool_take(p, MIB(1), a);
        pool_give(p, graphs, a);
        pool_give(p, before, a);
        fake->capture(a, false);
        for (unsigned k = 0; k < 4; k++) {
            assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
            uint64_t y = pool_take(p, MIB(1), k % 2 == 0 ? a : b);
            assert_int_not_equal(y, graphs);
            assert_int_not_equal(y, before);
            pool_give(p, y, k % 2 == 0 ? a : b);
        }
        pool_end(p);
    }
    finish();
}

/* The program's word for it costs the question, and its answer. */
static void a_stream_that_is_said_to_last_is_not_asked(void **state)
{
    struct fl_gpu_pool *p = lazy(FL_GPU_AUTO_GROWTH);

    (void)state;
    begin();
    pool_give(p, pool_take(p, MIB(1), a), a);
    uint64_t before = fake->calls("cuStreamIsCapturing");
    pool_give(p, pool_take(p, MIB(1), a), a);
    assert_int_equal(fake->calls("cuStreamIsCapturing"), before + 1);
    assert_int_equal(fl_gpu_pool_stream_lasts(p, a), 0);
    before = gpu_driver_calls();
    pool_give(p, pool_take(p, MIB(1), a), a);
    assert_int_equal(gpu_driver_calls(), before);
    pool_end(p);
    finish();
}

/* One event, when it is wanted, covers all frees before it. */
static void events_are_recorded_when_they_are_wanted(void **state)
{
    struct fl_gpu_pool *p = lazy(FL_GPU_AUTO_GROWTH);
    uint64_t x[4];

    (void)state;
    begin();
    for (unsigned i = 0; i < 4; i++) {
        x[i] = pool_take(p, MIB(2), a);
        gpu_fill(a, x[i], MIB(2), 1);
    }
    for (unsigned i = 0; i < 4; i++) {
        pool_give(p, x[i], a);
    }
    assert_int_equal(fake->calls("cuEventRecord"), 0);
    uint64_t y = pool_take(p, MIB(2), b); /* a is busy still */
    for (unsigned i = 0; i < 4; i++) {
        assert_int_not_equal(x[i], y);
    }
    assert_int_equal(fake->calls("cuEventRecord"), 1);
    gpu_wait(a);
    uint64_t z[4];
    for (unsigned i = 0; i < 4; i++) {
        z[i] = pool_take(p, MIB(2), b);
        gpu_fill(b, z[i], MIB(2), 2);
    }
    assert_int_equal(fake->calls("cuEventRecord"), 1);
    assert_int_equal(pool_stats(p).driver_allocs, 5);
    for (unsigned i = 0; i < 4; i++) {
        pool_give(p, z[i], b);
    }
    pool_give(p, y, b);
    pool_end(p);
    finish();
}

/* Retired before it is destroyed: a stream with the same handle is another one. */
static void a_handle_comes_again_after_retiring(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < ALL; i++) {
        struct fl_gpu_pool *p = lazy(all[i]);
        for (unsigned round = 0; round < 4; round++) {
            assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
            uint64_t x = pool_take(p, MIB(2), a);
            gpu_fill(a, x, MIB(2), 1);
            pool_give(p, x, a);
            assert_int_equal(fl_gpu_pool_stream_retire(p, a), 0);
            void *was = a;
            gpu_stream_end(a);
            a = gpu_stream();
            assert_ptr_equal(a, was);
            uint64_t y = pool_take(p, MIB(2), a);
            gpu_fill(a, y, MIB(2), 2); /* a race, if it were the same memory */
            pool_give(p, y, a);
        }
        pool_end(p);
    }
    finish();
}

static void *pairs_of_a_thread(void *pool)
{
    void *mine = (void *)(uintptr_t)FL_STREAM_PER_THREAD; /* NOLINT(performance-no-int-to-ptr) */

    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t x = pool_take(pool, MIB(2), mine);
        gpu_fill(mine, x, MIB(2), 1);
        pool_give(pool, x, mine);
    }
    return NULL;
}

static void *pairs_on_a(void *pool)
{
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    for (unsigned i = 0; i < 100; i++) {
        pool_give(pool, pool_take(pool, MIB(1), a), a);
    }
    return NULL;
}

/* The program says that a stream lasts while other threads use it: from then on it is not asked. */
static void a_stream_is_said_to_last_amid_its_use(void **state)
{
    (void)state;
    begin();
    for (unsigned planned = 0; planned < 2; planned++) {
        struct fl_gpu_pool *p = lazy(planned != 0 ? FL_GPU_PLANNED : FL_GPU_AUTO_GROWTH);
        pthread_t t[2];
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&t[i], NULL, pairs_on_a, p), 0);
        }
        assert_int_equal(fl_gpu_pool_stream_lasts(p, a), 0);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(t[i], NULL), 0);
        }
        uint64_t before = gpu_driver_calls();
        pool_give(p, pool_take(p, MIB(1), a), a);
        assert_int_equal(gpu_driver_calls(), before);
        pool_end(p);
    }
    finish();
}

/* Threads' own streams have one handle, and are told apart all the same. */
static void threads_own_streams_are_told_apart(void **state)
{
    struct fl_gpu_pool *p = lazy(FL_GPU_AUTO_GROWTH);
    pthread_t t[3];

    (void)state;
    begin();
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, pairs_of_a_thread, p), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
    }
    gpu_wait_all();
    pool_end(p);
    finish();
}

/* As PyTorch frees: on the stream that it was taken on, without the driver's being asked of it. */
static void what_torch_takes_in_a_capture_is_kept(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < ALL; i++) {
        struct fl_gpu_pool *p = lazy(all[i]);
        p->is_blind = true;
        for (unsigned step = 0; step < 3; step++) {
            assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
            assert_int_equal(fl_pool_free(p, pool_take(p, MIB(1), a), a, false), 0);
        }
        assert_true(p->plan == NULL || fl_gpu_pool_step(p) == 0);
        fake->capture(a, true);
        uint64_t x = pool_take(p, MIB(1), a), y = pool_take(p, MIB(1), a);
        assert_int_equal(fl_pool_free(p, x, a, false), 0);
        fake->capture(a, false);
        assert_int_equal(fl_pool_free(p, y, a, false), 0);
        for (unsigned k = 0; k < 3; k++) {
            uint64_t z = pool_take(p, MIB(1), a);
            assert_true(z != x && z != y);
            assert_int_equal(fl_pool_free(p, z, a, false), 0);
        }
        pool_end(p);
    }
    finish();
}

struct beside {
    struct fl_gpu_pool *pool;
    uint64_t taken;
};

static void take_beside(void *arg)
{
    struct beside *e = arg;

    if (e->taken == 0 && gpu_calls.cuCtxSetCurrent(gpu->context) == 0) {
        e->taken = pool_take(e->pool, MIB(1), a);
    }
}

/* Two threads name a stream for the first time at once: it is one. */
static void two_threads_see_one_stream(void **state)
{
    struct fl_gpu_pool *p = lazy(FL_GPU_AUTO_GROWTH);
    struct beside e = {.pool = p};

    (void)state;
    begin();
    fake->amid("cuStreamGetCtx", take_beside, &e);
    uint64_t x = pool_take(p, MIB(1), a);
    fake->amid(NULL, NULL, NULL);
    assert_int_not_equal(e.taken, 0);
    assert_ptr_equal(p->streams->next, NULL);
    pool_give(p, e.taken, a);
    pool_give(p, x, a);
    assert_int_equal(pool_stats(p).quarantined, 0);
    pool_end(p);
    finish();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, gpu_each, gpu_end)
    const struct CMUnitTest tests[] = {
        TEST(what_a_graph_drops_is_kept),
        TEST(a_stream_that_is_said_to_last_is_not_asked),
        TEST(events_are_recorded_when_they_are_wanted),
        TEST(a_handle_comes_again_after_retiring),
        TEST(threads_own_streams_are_told_apart),
        TEST(what_torch_takes_in_a_capture_is_kept),
        TEST(two_threads_see_one_stream),
        TEST(a_stream_is_said_to_last_amid_its_use),
    };

    gpu_main("test_gpu_pool_old", NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
