/* Streams that come and go, of threads and of devices; processes and drivers that go: what scripts
 * (test_gpu_pool_rules) cannot say of the rules S1 to S13. */
#include "gpu/pool_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

/* S2 */
CASE(what_is_not_there_is_not_freed)
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
    assert_int_equal(fl_gpu_pool_stream_lasts(p, FL_GPU_HOST), -EINVAL); /* is no stream */
    assert_int_equal(fl_gpu_pool_stream_retire(p, FL_GPU_HOST), -EINVAL);
    assert_int_equal(fl_gpu_pool_record_stream(p, y, FL_GPU_HOST), -EINVAL);
    pool_give(p, y, NULL);
    pool_end(p);
}

/* S12 */
CASE(a_forked_child_is_told_so)
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

/* S10: what is unregistered nothing waits for, so a trim leaves what a copy is queued from. */
static struct fl_gpu_pool *trimmed;
static uint64_t in_use, there;
static void *a;

static void copy_and_free(void *unused)
{
    (void)unused;
    if (in_use != 0 && gpu_calls.cuCtxSetCurrent(gpu->context) == 0) {
        uint64_t x = in_use;
        in_use = 0;
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(there, (void *)(uintptr_t)x, MIB(2), a), 0);
        pool_give(trimmed, x, a);
    }
}

CASE(pinned_memory_is_trimmed_beside_frees)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);

    if (fake == NULL) {
        skip();
    }
    fake->schedule(FAKE_CUDA_LATE, 0);
    o.target = FL_GPU_PINNED;
    trimmed = pool_with(&o);
    struct fl_gpu_pool *device = pool_of(FL_GPU_AUTO_GROWTH);
    a = gpu_stream();
    there = pool_take(device, MIB(2), a);
    in_use = pool_take(trimmed, MIB(2), a);
    uint64_t idle = pool_take(trimmed, MIB(2), a);
    pool_give(trimmed, idle, a);
    gpu_wait(a);
    fake->amid("cuMemHostUnregister", copy_and_free, NULL);
    size_t released = 0;
    assert_int_equal(fl_gpu_pool_trim(trimmed, 0, &released), 0);
    assert_int_equal(in_use, 0);
    assert_int_equal(released, MIB(2)); /* the idle one; the other has a copy queued */
    fake->amid(NULL, NULL, NULL);
    pool_give(device, there, a);
    pool_end(trimmed);
    pool_end(device);
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
    assert_true(pool_records(p) <= 4);
    pool_end(p);
}

/* Each has a record of its own that is found, however many there are, and none when it has been
 * retired. */
CASE(many_streams_are_told_apart)
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
    assert_true(p->streams.handles >= MANY);
    for (unsigned i = 0; i < MANY; i++) {
        const struct fl_pool_stream *s = fl_stream_lasting(p, fl_stream_named(p, stream[i]));
        assert_non_null(s);
        assert_ptr_equal(s->handle, stream[i]);
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(fl_gpu_pool_record_stream(p, at[i], stream[i]), 0);
        }
        assert_int_equal(s->uses, 1);
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

/* S13. The last: it has gone for good. */
CASE(a_driver_that_has_gone_is_left_in_peace)
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
