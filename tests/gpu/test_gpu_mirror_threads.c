/* Threads that copy ranges of one mirror, on streams of their own that come and go, beside the one
 * that begins and pushes. */
#include "gpu/mirror_fixture.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 100, EACH = 64 << 10 };

static struct fl_gpu_mirror *mirror;

/* Out, to the device's side, and back again: what was sent comes. Behind the slots. */
static void *copy_ranges(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    unsigned char *mine = mirror_host(mirror, MIB(1) + me * EACH);

    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        void *s = gpu_stream();
        mirror_write(mine, EACH, (unsigned char)(i + me));
        assert_ok(fl_gpu_mirror_push_range(mirror, mine, EACH, s));
        gpu_wait(s);
        mirror_write(mine, EACH, 0xee);
        assert_ok(fl_gpu_mirror_pull_range(mirror, mine, EACH, s));
        gpu_wait(s);
        assert_true(all_are(mine, EACH, (unsigned char)(i + me)));
        gpu_stream_end(s);
    }
    return NULL;
}

CASE(ranges_are_copied_by_any_late)
{
    if (fake != NULL) {
        fake->schedule(FAKE_CUDA_LATE, 0);
    }
    pthread_t t[THREADS];
    void *s = gpu_stream();

    mirror = mirror_of_input(MIB(1), 1);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, copy_ranges, (void *)(uintptr_t)i), 0);
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        mirror_write(mirror_begin(mirror), KIB(4), (unsigned char)i);
        assert_ok(fl_gpu_mirror_push(mirror, s));
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
    }
    mirror_end(mirror);
}

/* Each thread's own stream: one handle, and not in order with each other. */
#define OWN ((void *)(uintptr_t)2) /* NOLINT(performance-no-int-to-ptr) */

static unsigned times;

static void *pull_on_own_stream(void *arg)
{
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    assert_ok(fl_gpu_mirror_pull_range(mirror, arg, KIB(64), OWN));
    return NULL;
}

/* Within the first thread's record: the second's comes between its copy and its event. */
static void another_pulls(void *arg)
{
    pthread_t t;

    if (times++ == 0) {
        assert_int_equal(pthread_create(&t, NULL, pull_on_own_stream, arg), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
    }
}

GPU_FAKE_TEST(threads_own_streams_are_told_apart)
{
    fake->schedule(FAKE_CUDA_LATE, 0);
    mirror = mirror_of_input(MIB(1), 1);
    void *base = mirror_begin(mirror);
    times = 0;
    fake->amid("cuEventRecord", another_pulls, (char *)base + KIB(512));
    assert_ok(fl_gpu_mirror_pull_range(mirror, base, KIB(64), OWN));
    fake->amid(NULL, NULL, NULL);
    assert_int_equal(times, 2);
    base = mirror_begin(mirror); /* both have ended */
    fake->host_access(base, MIB(1), true);
    mirror_end(mirror);
}

MIRROR_MAIN("test_gpu_mirror_threads")
