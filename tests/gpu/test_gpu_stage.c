/* What is staged is what it was at the call, whatever the caller does with it next; and what is
 * read from a file is there, and on its way. */
#include "gpu/mirror_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static fl_CUdeviceptr device_bytes(size_t len)
{
    fl_CUdeviceptr p = 0;

    assert_int_equal(fl_cuda.cuMemAlloc(&p, len), 0);
    return p;
}

static void stage_and_spoil(uint64_t to, size_t len, unsigned char value, void *stream)
{
    unsigned char *from = malloc(len);

    assert_non_null(from);
    memset(from, value, len);
    assert_ok(fl_gpu_stage(gpu, to, from, len, stream));
    memset(from, 0xee, len);
    free(from);
}

static void lengths_of_all_kinds(void)
{
    static const size_t lens[] = {1,      4095,   KIB(64),    KIB(64) + 1,
                                  MIB(1), MIB(8), MIB(8) + 1, MIB(45)};
    void *stream = gpu_stream();
    fl_CUdeviceptr to = device_bytes(MIB(64));

    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        stage_and_spoil(to + i, lens[i], (unsigned char)(i + 1), stream);
        assert_true(gpu_holds(stream, to + i, lens[i], (unsigned char)(i + 1)));
    }
    assert_ok(fl_gpu_stage(gpu, to, lens, 0, stream));
    assert_int_equal(fl_cuda.cuMemFree(to), 0);
    gpu_stream_end(stream);
}

/* More than there are buffers, on two streams, before anything is looked at. */
static void more_than_there_is_room_for(void)
{
    enum { SHORTS = 200, LONGS = 9 };
    void *stream[2] = {gpu_stream(), gpu_stream()};
    fl_CUdeviceptr small = device_bytes(SHORTS * KIB(4)), large = device_bytes(LONGS * MIB(3));

    for (size_t i = 0; i < SHORTS; i++) {
        stage_and_spoil(small + i * KIB(4), KIB(4), (unsigned char)(i + 1), stream[i % 2]);
        if (i < LONGS) {
            stage_and_spoil(large + i * MIB(3), MIB(3), (unsigned char)(i + 7), stream[i % 2]);
        }
    }
    for (size_t i = 0; i < SHORTS; i++) {
        assert_true(gpu_holds(stream[i % 2], small + i * KIB(4), KIB(4), (unsigned char)(i + 1)));
        if (i < LONGS) {
            assert_true(
                gpu_holds(stream[i % 2], large + i * MIB(3), MIB(3), (unsigned char)(i + 7)));
        }
    }
    if (fake != NULL) {
        assert_int_equal(fake->implicit_syncs(), 0);
    }
    assert_int_equal(fl_cuda.cuMemFree(small), 0);
    assert_int_equal(fl_cuda.cuMemFree(large), 0);
    gpu_stream_end(stream[0]);
    gpu_stream_end(stream[1]);
}

static void in_each_schedule(void (*body)(void))
{
    fl_stage_end(gpu); /* what a fresh fake knows nothing of */
    for (int i = 0; i < (fake != NULL ? 4 : 1); i++) {
        if (fake != NULL) {
            fake->reset(true);
            fake->schedule(i == 0   ? FAKE_CUDA_EAGER
                           : i == 1 ? FAKE_CUDA_LATE
                                    : FAKE_CUDA_RANDOM,
                           (uint64_t)i);
        }
        body();
        fl_stage_end(gpu);
        if (fake != NULL) {
            assert_string_equal(fake->report(), "");
            assert_int_equal(fake->registered(), 0);
        }
    }
}

static void the_source_may_change_at_once(void **state)
{
    (void)state;
    in_each_schedule(lengths_of_all_kinds);
}

static void buffers_are_used_again_when_they_were_read(void **state)
{
    (void)state;
    in_each_schedule(more_than_there_is_room_for);
}

static fl_CUdeviceptr shared;

static void *one_of_many(void *arg)
{
    size_t k = (size_t)(uintptr_t)arg;
    static __thread unsigned char from[KIB(80)];
    fl_CUstream stream = NULL;
    bool fine = fl_gpu_open(0, &(struct fl_gpu *){NULL}) == 0 &&
                gpu_calls.cuCtxSetCurrent(gpu->context) == 0 &&
                fl_cuda.cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING) == 0;

    for (int i = 0; i < 60 && fine; i++) {
        size_t len = i % 3 == 0 ? KIB(80) : KIB(8);
        memset(from, (int)(k * 60 + (size_t)i) & 0xff, sizeof from);
        fine = fl_gpu_stage(gpu, shared + k * KIB(80), from, len, stream) == 0;
    }
    fine = fine && fl_cuda.cuStreamSynchronize(stream) == 0 &&
           fl_cuda.cuStreamDestroy(stream) == 0 && fl_gpu_close(gpu) == 0;
    (void)gpu_calls.cuCtxSetCurrent(NULL);
    return fine ? NULL : arg == NULL ? &shared : arg;
}

static void threads_share_the_buffers(void **state)
{
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    void *failed = NULL, *stream = gpu_stream();
    (void)state;
    shared = device_bytes(THREADS * KIB(80));
    for (size_t k = 0; k < THREADS; k++) {
        assert_int_equal(pthread_create(&thread[k], NULL, one_of_many, (void *)(uintptr_t)k), 0);
    }
    for (size_t k = 0; k < THREADS; k++) {
        assert_int_equal(pthread_join(thread[k], &failed), 0);
        assert_null(failed);
        assert_true(gpu_holds(stream, shared + k * KIB(80), KIB(8), (unsigned char)(k * 60 + 59)));
    }
    assert_int_equal(fl_cuda.cuMemFree(shared), 0);
    gpu_stream_end(stream);
    fl_stage_end(gpu);
}

static void refusals_are_told_and_leave_nothing(void **state)
{
    char from[64] = {1};
    void *stream = gpu_stream();
    fl_CUdeviceptr to = device_bytes(MIB(1));
    (void)state;
    assert_int_equal(fl_gpu_stage(NULL, to, from, 1, stream), -EINVAL);
    assert_int_equal(fl_gpu_stage(gpu, 0, from, 1, stream), -EINVAL);
    assert_int_equal(fl_gpu_stage(gpu, to, NULL, 1, stream), -EINVAL);
    for (unsigned n = 1; fake != NULL; n++) {
        fl_stage_end(gpu);
        unsigned before = fake->live();
        fake->refuse(NULL, n, FL_CUDA_ERROR_UNKNOWN, false);
        int rc = fl_gpu_stage(gpu, to, from, sizeof from, stream);
        bool fired = fake->refused();
        fake->refuse(NULL, 0, 0, false);
        assert_true(rc == 0 || fired);
        assert_ok(fl_gpu_stage(gpu, to, from, sizeof from, stream)); /* as if nothing had been */
        fl_stage_end(gpu);
        assert_int_equal(fake->live(), before);
        if (!fired) {
            break;
        }
    }
    assert_int_equal(fl_cuda.cuMemFree(to), 0);
    gpu_stream_end(stream);
}

/* ---- files ---- */

static int file_of(size_t len)
{
    char path[] = "test_gpu_stage.XXXXXX";
    int fd = mkstemp(path);
    unsigned char *p = malloc(len);

    assert_true(fd >= 0 && p != NULL && unlink(path) == 0);
    for (size_t i = 0; i < len; i++) {
        p[i] = (unsigned char)(1 + i / KIB(4) % 251);
    }
    assert_true(write(fd, p, len) == (ssize_t)len);
    free(p);
    return fd;
}

static bool is_of_file(const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != (unsigned char)(1 + i / KIB(4) % 251)) {
            return false;
        }
    }
    return true;
}

static void read_step_by_step(void)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(12), .input = true}, {.size = MIB(12)}};
    void *stream = gpu_stream(), *base = NULL;
    struct fl_gpu_mirror *m = mirror_of_blocks(slot, 2);
    int fd = file_of(MIB(12));

    for (int i = 0; i < 4; i++) {
        assert_ok(fl_gpu_mirror_begin(m, &base));
        assert_ok(fl_gpu_mirror_read(m, fd, 0, base, MIB(12), stream));
        assert_true(is_of_file(base, MIB(12)));
        void *back = mirror_host(m, slot[1].offset);
        gpu_copy(stream, mirror_twin(m, slot[1].offset), fl_gpu_twin(fl_gpu_mirror_map(m), base),
                 MIB(12));
        assert_ok(fl_gpu_mirror_pull_range(m, back, MIB(12), stream));
        gpu_wait(stream);
        assert_true(is_of_file(back, MIB(12)));
    }
    assert_int_equal(fl_gpu_mirror_read(m, fd, MIB(11), base, MIB(2), stream), -ENODATA);
    assert_int_equal(fl_gpu_mirror_read(m, -1, 0, base, MIB(2), stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_read(m, fd, UINT64_MAX, base, MIB(2), stream), -EINVAL);
    assert_int_equal(fl_gpu_mirror_read(m, fd, 0, &fd, 1, stream), -EINVAL);
    gpu_wait(stream);
    close(fd);
    mirror_end(m);
    gpu_stream_end(stream);
}

static void files_come_to_the_device(void **state)
{
    (void)state;
    gpu_schedules(read_step_by_step);
}

static void without_a_device_the_host_has_it(void **state)
{
    struct fl_gpu_slot slot[] = {{.size = MIB(3), .input = true}};
    struct fl_gpu_mirror_options o = mirror_options(slot, 1);
    struct fl_gpu_mirror *m = NULL;
    void *base = NULL;
    (void)state;
    int fd = file_of(MIB(3));
    assert_ok(fl_gpu_mirror_create(NULL, &o, &m));
    assert_int_equal(fl_gpu_mirror_map(m)->delta, 0);
    assert_ok(fl_gpu_mirror_begin(m, &base));
    assert_int_equal(fl_gpu_mirror_read(m, fd, 0, base, MIB(3), NULL), -ENODEV);
    assert_true(is_of_file(base, MIB(3)));
    assert_int_equal(fl_gpu_mirror_push(m, NULL), -ENODEV);
    assert_int_equal(fl_gpu_mirror_pull_range(m, base, 1, NULL), -ENODEV);
    assert_ok(fl_gpu_mirror_destroy(m));
    close(fd);
}

/* The device is closed while one of its streams is captured: the buffers wait for their copies
 * alone. */
static void an_end_breaks_no_capture(void **state)
{
    struct fl_gpu *other = NULL;
    fl_CUdeviceptr to = 0;
    static char from[4096];

    (void)state;
    if (fake == NULL) {
        return;
    }
    fake->schedule(FAKE_CUDA_LATE, 0);
    void *context = fake->context_new(1);
    assert_ok(fl_gpu_open(1, &other));
    void *captured = gpu_stream(), *stream = gpu_stream();
    assert_int_equal(fl_cuda.cuMemAlloc(&to, sizeof from), 0);
    memset(from, 3, sizeof from);
    assert_ok(fl_gpu_stage(other, to, from, sizeof from, stream));
    fake->capture(captured, true);
    assert_ok(fl_gpu_close(other));
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(fake->registered(), 0);
    fake->capture(captured, false);
    assert_true(fake->holds(to, sizeof from, 3));
    fake->context_end(context);
}

int main(void)
{
#define each(test) cmocka_unit_test_setup_teardown(test, gpu_each, gpu_end)
    const struct CMUnitTest tests[] = {
        each(the_source_may_change_at_once), each(buffers_are_used_again_when_they_were_read),
        each(threads_share_the_buffers),     each(refusals_are_told_and_leave_nothing),
        each(files_come_to_the_device),      each(without_a_device_the_host_has_it),
        each(an_end_breaks_no_capture),
    };
    mirror_main("test_gpu_stage");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
