/* Who may have what another stream freed, and when: the rules S1 to S13 of the pools, each as a
 * test. */
#include "gpu/two_streams.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* S1 */
GPU_TEST(the_legacy_stream_has_two_names_and_is_one)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x = pool_take(p, KIB(64), NULL);

    pool_give(p, x, (void *)1);
    assert_int_equal(pool_take(p, KIB(64), NULL), x);
    pool_give(p, x, NULL);
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    assert_int_equal(pool_stats(p).cross_stream_hits, 0);
    pool_end(p);
}

static uint64_t others;

static void *take_on_own_stream(void *arg)
{
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    others = pool_take(arg, KIB(64), (void *)2);
    gpu_fill((void *)2, others, KIB(64), 2);
    pool_give(arg, others, (void *)2);
    return NULL;
}

/* S1: 2 names a stream of each thread's. */
GPU_SCHEDULED(each_thread_has_a_stream_of_its_own)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    pthread_t t;
    uint64_t x = pool_take(p, KIB(64), (void *)2);

    gpu_fill((void *)2, x, KIB(64), 1);
    pool_give(p, x, (void *)2);
    assert_int_equal(pthread_create(&t, NULL, take_on_own_stream, p), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    uint64_t y = pool_take(p, KIB(64), (void *)2);
    gpu_fill((void *)2, y, KIB(64), 3);
    assert_true(gpu_holds((void *)2, y, KIB(64), 3));
    pool_give(p, y, (void *)2);
    pool_end(p);
}

/* S2 */
GPU_TEST(what_is_not_there_is_not_freed)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x = pool_take(p, KIB(64), NULL), y = pool_take(p, KIB(64), NULL);

    assert_int_equal(fl_gpu_pool_free(p, x + 256, NULL), -ENOENT);
    assert_int_equal(fl_gpu_pool_free(p, 256, NULL), -ENOENT);
    pool_give(p, x, NULL);
    assert_int_equal(fl_gpu_pool_free(p, x, NULL), -ENOENT);
    assert_int_equal(fl_gpu_pool_inplace(p, x, 1), -ENOENT);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, NULL), -ENOENT);
    assert_int_equal(pool_stats(p).frees, 1);
    pool_give(p, y, NULL);
    pool_end(p);
}

/* S2, S3: neither a hit nor a free says anything to the driver. */
GPU_TEST(a_hit_makes_no_driver_call)
{
    static const enum fl_gpu_strategy all[] = {FL_GPU_NAIVE, FL_GPU_ROUND, FL_GPU_NAIVE_BEST_FIT,
                                               FL_GPU_AUTO_GROWTH};

    begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct fl_gpu_pool *p = pool_of(all[i]);
        uint64_t x[8];
        assert_int_equal(fl_gpu_pool_stream_lasts(p, a), 0);
        for (unsigned round = 0; round < 3; round++) {
            uint64_t calls = gpu_driver_calls();
            for (unsigned k = 0; k < 8; k++) {
                x[k] = pool_take(p, KIB(100) * (k + 1), a);
            }
            for (unsigned k = 0; k < 8; k++) {
                pool_give(p, x[(k * 3) % 8], a);
            }
            assert_true(round == 0 || gpu_driver_calls() == calls);
        }
        assert_true(pool_stats(p).hits >= 16);
        pool_end(p);
    }
}

/* S3 */
GPU_SCHEDULED(a_stream_is_in_order_after_itself)
{
    begin();
    struct fl_gpu_pool *p = pool_lasting(FL_GPU_AUTO_GROWTH, a);
    uint64_t x = pool_take(p, MIB(1), a);
    gpu_hold(a);
    gpu_fill(a, x, MIB(1), 1);
    pool_give(p, x, a);
    assert_int_equal(pool_take(p, MIB(1), a), x);
    gpu_fill(a, x, MIB(1), 2);
    assert_true(gpu_holds(a, x, MIB(1), 2));
    assert_int_equal(pool_stats(p).events, 0);
    pool_give(p, x, a);
    pool_end(p);
}

/* S4: the other stream's is had when its work has run, and not before. */
GPU_SCHEDULED(another_streams_is_had_when_it_is_done)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    begin();
    uint64_t x = pool_take(p, MIB(2), a);
    gpu_hold(a);
    gpu_fill(a, x, MIB(2), 1);
    pool_give(p, x, a);
    uint64_t y = pool_take(p, MIB(2), b);
    gpu_fill(b, y, MIB(2), 2);
    gpu_wait(a);
    uint64_t z = pool_take(p, MIB(2), b);
    gpu_fill(b, z, MIB(2), 3);
    assert_true(y == x || z == x);
    assert_true(gpu_holds(b, z, MIB(2), 3));
    struct fl_gpu_pool_stats s = pool_stats(p);
    assert_int_equal(s.cross_stream_hits, 1);
    assert_int_equal(s.waits, 0);
    assert_int_equal(s.implicit_syncs, 0);
    pool_give(p, y, b);
    pool_give(p, z, b);
    pool_end(p);
}

/* S4: one event is enough for all that was freed before it. */
GPU_TEST(one_event_covers_many_frees)
{
    uint64_t x[64];

    begin();
    struct fl_gpu_pool *p = pool_lasting(FL_GPU_NAIVE, a);
    for (unsigned i = 0; i < 64; i++) {
        x[i] = pool_take(p, KIB(4), a);
    }
    for (unsigned i = 0; i < 64; i++) {
        pool_give(p, x[i], a);
    }
    gpu_wait(a);
    /* The event is recorded now; a device may not have got to it when it is asked at once. */
    uint64_t first = pool_take(p, KIB(4), b);
    gpu_wait(a);
    for (unsigned i = 0; i < 64; i++) {
        x[i] = pool_take(p, KIB(4), b);
    }
    struct fl_gpu_pool_stats s = pool_stats(p);
    assert_int_equal(s.cross_stream_hits, 64);
    assert_int_equal(s.events, 1);
    pool_give(p, first, b);
    for (unsigned i = 0; i < 64; i++) {
        pool_give(p, x[i], b);
    }
    pool_end(p);
}

/* S5 */
GPU_SCHEDULED(what_another_stream_uses_waits_for_it)
{
    begin();
    struct fl_gpu_pool *p = pool_lasting(FL_GPU_AUTO_GROWTH, a);
    uint64_t x = pool_take(p, MIB(1), a);
    gpu_fill(a, x, MIB(1), 1);
    gpu_wait(a);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, b), 0);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, b), 0);
    gpu_hold(b);
    gpu_fill(b, x, MIB(1), 2);
    pool_give(p, x, a);
    assert_int_equal(pool_stats(p).events, 1);
    uint64_t y = pool_take(p, MIB(1), a);
    gpu_fill(a, y, MIB(1), 3);
    gpu_wait(b);
    uint64_t z = pool_take(p, MIB(1), a);
    gpu_fill(a, z, MIB(1), 4);
    assert_true(y == x || z == x);
    assert_true(gpu_holds(a, z, MIB(1), 4));
    pool_give(p, y, a);
    pool_give(p, z, a);
    pool_end(p);
}

/* S7 */
GPU_TEST(neighbours_of_two_streams_stay_apart)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.chunk = MIB(2));
    begin();
    uint64_t x = pool_take(p, MIB(1), a), y = pool_take(p, MIB(1), a);
    assert_int_equal(pool_held(p), MIB(2));
    gpu_fill(a, x, MIB(1), 1);
    gpu_fill(b, y, MIB(1), 2);
    pool_give(p, x, a);
    pool_give(p, y, b);
    gpu_wait(a);
    gpu_wait(b);
    assert_true(pool_check(p));
    uint64_t z = pool_take(p, MIB(2), a); /* both are safe by now, and one */
    assert_int_equal(pool_held(p), MIB(2));
    pool_give(p, z, a);
    pool_end(p);
}

/* S9 */
GPU_FAKE_TEST(a_captured_stream_has_what_is_safe_for_all)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    begin();
    uint64_t before = pool_take(p, MIB(1), a), y = 0;
    pool_give(p, before, a);
    fake->capture(a, true);
    uint64_t x = pool_take(p, MIB(1), a);
    assert_true(x != before); /* may its number be asked? Another's of that handle, perhaps */
    assert_int_equal(fl_gpu_pool_alloc(p, GIB(2), a, &y), -EINPROGRESS);
    assert_int_equal(pool_stats(p).capture_refusals, 1);
    y = pool_take(p, MIB(1), a); /* more memory is none of the graph's */
    pool_give(p, y, a);
    assert_int_equal(fl_gpu_pool_record_stream(p, x, b), 0);
    pool_give(p, x, a);
    fake->capture(a, false);
    uint64_t z = pool_take(p, MIB(1), a); /* the graph may use the others whenever it runs */
    assert_int_equal(z, before);
    pool_give(p, z, a);
    pool_end(p);
}

/* S10 */
GPU_SCHEDULED(the_host_is_on_no_stream)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_ROUND, o.target = FL_GPU_PINNED),
                       *device = pool_of(FL_GPU_ROUND);
    begin();
    uint64_t there = pool_take(device, MIB(1), a);
    for (unsigned i = 0; i < 6; i++) {
        uint64_t x = pool_take(p, MIB(1), a);
        unsigned char *host = (unsigned char *)(uintptr_t)x;
        if (fake != NULL) {
            fake->host_access(host, MIB(1), true);
        }
        for (size_t k = 0; k < MIB(1); k += 4096) {
            host[k] = (unsigned char)i;
        }
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(there, host, MIB(1), a), 0);
        pool_give(p, x, a);
        if (i == 3) {
            gpu_wait(a);
        }
    }
    assert_true(pool_stats(p).hits >= 1);
    pool_give(device, there, a);
    pool_end(p);
    pool_end(device);
}

/* S12 */
GPU_TEST(a_forked_child_is_told_so)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    uint64_t x = pool_take(p, MIB(1), NULL), y;
    int status = 0;

    pid_t child = fork();
    if (child == 0) {
        fl_gpu_fork_child();
        struct fl_gpu_pool_stats s = {.size = sizeof s};
        _exit(!(fl_gpu_pool_alloc(p, 1, NULL, &y) == -ECHILD &&
                fl_gpu_pool_free(p, x, NULL) == -ECHILD &&
                fl_gpu_pool_inplace(p, x, 1) == -ECHILD &&
                fl_gpu_pool_record_stream(p, x, NULL) == -ECHILD &&
                fl_gpu_pool_stream_retire(p, NULL) == -ECHILD &&
                fl_gpu_pool_trim(p, 0, NULL) == -ECHILD && fl_gpu_pool_collect(p) == -ECHILD &&
                fl_gpu_pool_stats(p, &s) == -ECHILD && fl_gpu_pool_destroy(p) == -ECHILD));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    pool_give(p, x, NULL);
    pool_end(p);
}

/* S13 */
GPU_TEST(a_driver_that_has_gone_is_left_in_peace)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH), *q = pool_of(FL_GPU_AUTO_GROWTH);
    struct fl_gpu_device_stats s = {.size = sizeof s};
    uint64_t x = pool_take(p, MIB(1), NULL), y;

    if (fake == NULL) {
        pool_give(p, x, NULL);
        pool_end(p);
        pool_end(q);
        return;
    }
    fake->set(FAKE_CUDA_GONE, 1);
    assert_int_equal(fl_gpu_pool_alloc(p, MIB(4), NULL, &y), -ESHUTDOWN);
    uint64_t calls = gpu_driver_calls();
    assert_int_equal(fl_gpu_pool_alloc(p, 1, NULL, &y), -ESHUTDOWN);
    assert_int_equal(fl_gpu_pool_free(p, x, NULL), -ESHUTDOWN);
    assert_int_equal(fl_gpu_pool_destroy(p), 0);
    assert_int_equal(fl_gpu_device_stats(0, &s), 0);
    assert_int_equal(s.held_bytes, 0); /* it counts against no limit of those that stay */
    (void)fl_gpu_pool_alloc(q, 1, NULL, &y);
    assert_int_equal(fl_gpu_pool_destroy(q), 0);
    assert_int_equal(gpu_driver_calls(), calls);
    fake->reset(true);
}

GPU_MAIN("test_gpu_pool_streams")
