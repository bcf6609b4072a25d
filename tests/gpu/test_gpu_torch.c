/* What PyTorch calls: a pool for each device, made at the first request; stream order; other
 * streams that are recorded. */
#include "gpu/gpu_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *same_of(void *stream)
{
    void *a = fl_gpu_torch_alloc(1 << 20, 0, stream);

    assert_non_null(a);
    fl_gpu_torch_free(a, 1 << 20, 0, stream);
    return a;
}

/* At once, and of the legacy stream, which lasts, without a call of the driver. */
static void has_again(void *s)
{
    void *first = same_of(s);
    gpu_hold(s);
    gpu_fill(s, (uintptr_t)first, 1 << 20, 7);
    uint64_t calls = gpu_driver_calls();
    for (int i = 0; i < 100; i++) {
        assert_ptr_equal(same_of(s), first);
    }
    assert_true(s != NULL || gpu_driver_calls() == calls);
    gpu_wait(s);
}

GPU_TEST_AMONG(what_a_stream_frees_it_has_again)
{
    has_again(NULL);
    has_again(gpu_stream());
}

/* tensor.record_stream: the block's own stream does not have it either, until the other is done. */
GPU_TEST_AMONG(a_recorded_stream_is_waited_for)
{
    void *s = gpu_stream(), *t = gpu_stream();
    void *p = fl_gpu_torch_alloc(4 << 20, 0, s);
    gpu_fill(s, (uintptr_t)p, 4 << 20, 1);
    gpu_wait(s);
    gpu_hold(t);
    gpu_fill(t, (uintptr_t)p, 4 << 20, 2);
    fl_gpu_torch_record_stream(p, t);
    fl_gpu_torch_free(p, 4 << 20, 0, s);
    void *q = fl_gpu_torch_alloc(4 << 20, 0, s);
    assert_ptr_not_equal(p, q);
    gpu_fill(s, (uintptr_t)q, 4 << 20, 3);
    gpu_wait(s);
    gpu_wait(t);
    fl_gpu_torch_free(q, 4 << 20, 0, s);
}

GPU_TEST_AMONG(each_device_has_a_pool_of_its_own)
{
    void *a = fl_gpu_torch_alloc(1 << 20, 0, NULL), *b = fl_gpu_torch_alloc(1 << 20, 1, NULL);
    assert_non_null(a);
    if (fake != NULL) { /* it has two */
        assert_non_null(b);
        assert_true(fake->used(1) >= 1 << 20);
        fl_gpu_torch_record_stream(b, NULL);
    }
    fl_gpu_torch_free(a, 1 << 20, 0, NULL);
    fl_gpu_torch_free(b, 1 << 20, 1, NULL);
}

GPU_TEST_AMONG(what_cannot_be_is_survived)
{
    /* With a C++ library, a sanitizer's or not, these throw: test_gpu_torch_graph. */
    if (dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD) == NULL) {
        assert_null(fl_gpu_torch_alloc(-1, 0, NULL));
        assert_null(fl_gpu_torch_alloc(4096, -1, NULL));
        assert_null(fl_gpu_torch_alloc(4096, 63, NULL));
        assert_null(fl_gpu_torch_alloc(4096, 64, NULL));
        assert_null(fl_gpu_torch_alloc((ssize_t)1 << 60, 0, NULL));
    }
    fl_gpu_torch_free(NULL, 4096, 0, NULL);
    fl_gpu_torch_free(&fake, 4096, 0, NULL);
    fl_gpu_torch_free(&fake, 4096, 63, NULL);
    fl_gpu_torch_record_stream(NULL, NULL);
    fl_gpu_torch_record_stream(&fake, NULL);
    void *p = fl_gpu_torch_alloc(0, 0, NULL);
    assert_non_null(p);
    fl_gpu_torch_free(p, 0, 0, NULL);
    fl_gpu_torch_free(p, 0, 0, NULL); /* twice */
}

/* A fork's child changes and waits for nothing of its parent's: another thread of that may have had
 * its locks. */
GPU_TEST_AMONG(a_forks_child_changes_nothing)
{
    struct fl_stats_gpu before, after;
    int status = 1;

    fl_gpu_torch_free(fl_gpu_torch_alloc(4096, 0, NULL), 4096, 0, NULL);
    assert_true(fl_gpu_account_read(0, false, &before));
    pid_t child = fork();
    if (child == 0) {
        fl_gpu_fork_child();
        fl_gpu_torch_memory_fraction(0.25, 0);
        (void)fl_gpu_account_read(0, false, &after);
        _exit((after.limit_bytes != before.limit_bytes) +
              2 * (fl_gpu_torch_use(FL_GPU_ROUND) != -ECHILD));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

int main(void)
{
    gpu_main("test_gpu_torch", NULL);
    return gpu_tests(gpu_all_late);
}
