/* What PyTorch calls: a pool for each device, made at the first request; stream order; other
 * streams that are recorded. */
#include "gpu/pool_script.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

ROWS(GPU_TEST_AMONG(in_order_of_streams),
     {"S3: what a stream frees it has again", "T", NULL, ONCE, "x=L1M ^L .xL -xL y=L1M y~x"},
     {"S3: what a stream frees it has again", "T", NULL, ONCE, "x=a1M ^a .xa -xa y=a1M y~x"},
     {"S5: its own stream waits for one that was recorded", "T", NULL, ONCE,
      "x=a4M .xa _a ^b .xb @xb -xa y=a4M y#x .ya"}, )

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
