/* What PyTorch and CuPy call: a pool for each device, made at the first request; how it is chosen,
 * found, limited; streams in order, and others that are recorded. */
#include "gpu/pool_script.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

CASE(the_strategy_is_chosen_before_the_first_pool)
{
    assert_int_equal(fl_gpu_torch_use((enum fl_gpu_strategy)99), -EINVAL);
    assert_int_equal(fl_gpu_torch_use(FL_GPU_ROUND), 0);
    struct fl_gpu_pool *p = fl_gpu_torch_pool(0);
    assert_non_null(p);
    assert_ptr_equal(fl_gpu_torch_pool(0), p);
    assert_ptr_equal(p->strategy, fl_strategy_get(FL_GPU_ROUND));
    assert_int_equal(fl_gpu_torch_use(FL_GPU_ROUND), -EBUSY);
    assert_null(fl_gpu_torch_pool(64));
    assert_null(fl_gpu_torch_pool(-1));
    fl_gpu_torch_init(1);
}

CASE(an_address_has_a_block_and_a_pool)
{
    struct fl_gpu_pool *p = fl_gpu_torch_pool(0), *q = pool_of(FL_GPU_NAIVE_BEST_FIT);
    struct fl_gpu_block b = {.size = sizeof b};
    size_t size = 0;

    void *x = fl_gpu_torch_alloc(1000, 0, NULL);
    uint64_t y = pool_take(q, 5000, NULL), z = pool_take(q, 5000, NULL);
    assert_int_equal(fl_gpu_pool_find(p, (uintptr_t)x + 999, &b), 0);
    assert_int_equal(b.address, (uintptr_t)x);
    assert_int_equal(b.bytes, 4096);
    assert_int_equal(b.requested_bytes, 1000);
    assert_true(b.base <= b.address && b.address + b.bytes <= b.base + b.base_bytes);
    assert_int_equal(b.device, 0);
    assert_int_equal(b.target, FL_GPU_DEVICE);
    assert_ptr_equal(fl_gpu_owner(y + 1, &b), q);
    assert_int_equal(b.address, y);
    uint64_t base = b.base;
    assert_ptr_equal(fl_gpu_owner(z, NULL), q);
    assert_ptr_equal(fl_gpu_owner(z, &b), q);
    assert_int_equal(b.base, base); /* both lie in the first chunk */
    assert_true(base <= y && base <= z && base + b.base_bytes >= fl_max(y, z) + 5000);
    assert_ptr_equal(fl_gpu_torch_base_alloc((void *)(uintptr_t)z, &size), /* NOLINT */
                     (void *)(uintptr_t)b.base);                           /* NOLINT */
    assert_int_equal(size, b.base_bytes);
    assert_true(size > 5000);
    assert_ptr_equal(fl_gpu_torch_base_alloc(&size, NULL), &size); /* of no pool */
    assert_int_equal(fl_gpu_pool_find(p, y, &b), -ENOENT);
    assert_int_equal(fl_gpu_pool_find(p, y, NULL), -EINVAL);
    pool_give(q, y, NULL);
    assert_int_equal(fl_gpu_pool_find(q, y, &b), -ENOENT);
    assert_null(fl_gpu_owner(y, &b));
    pool_give(q, z, NULL);
    fl_gpu_torch_free(x, 0, 0, NULL);
    pool_end(q);
}

CASE(a_fraction_is_of_the_device)
{
    struct fl_gpu_device_stats s = {.size = sizeof s};
    struct fl_gpu_pool *q = pool_of(FL_GPU_UNPOOLED);
    uint64_t x;

    fl_gpu_torch_memory_fraction(0.25, 0);
    assert_int_equal(fl_gpu_device_stats(0, &s), 0);
    assert_int_equal(s.limit_bytes, gpu->total / 4);
    assert_int_equal(fl_gpu_pool_alloc(q, gpu->total / 2, NULL, &x), -ENOMEM);
    fl_gpu_torch_memory_fraction(7, 0); /* no fraction */
    fl_gpu_torch_memory_fraction(0.5, 99);
    assert_int_equal(fl_gpu_pool_alloc(q, gpu->total / 2, NULL, &x), -ENOMEM);
    fl_gpu_torch_memory_fraction(1, 0);
    x = pool_take(q, gpu->total / 2, NULL);
    pool_give(q, x, NULL);
    pool_end(q);
}

/* Without a stream in the call: what was freed is given out when the legacy stream is past it. */
CASE(cupy_frees_for_all_streams)
{
    void *s = gpu_stream();

    void *p = fl_gpu_cupy_alloc(NULL, MIB(1), 0);
    assert_non_null(p);
    gpu_hold(NULL);
    gpu_fill(NULL, (uintptr_t)p, MIB(1), 1);
    fl_gpu_cupy_free(NULL, p, 0);
    void *q = fl_gpu_cupy_alloc(NULL, MIB(1), 0);
    assert_ptr_not_equal(p, q);
    gpu_fill(s, (uintptr_t)q, MIB(1), 2);
    gpu_wait_all();
    fl_gpu_cupy_free(NULL, q, 0);
    gpu_wait_all();
    q = fl_gpu_cupy_alloc(NULL, MIB(1), 0);
    assert_int_equal(fl_gpu_owner((uintptr_t)q, NULL) == fl_gpu_cupy_pool(0), 1);
    assert_true(pool_stats(fl_gpu_cupy_pool(0)).hits >= 1);
    fl_gpu_cupy_free(NULL, q, 0);
    gpu_stream_end(s);
}

CASE(cupy_may_have_a_pool_of_ones_own)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_ROUND);

    void *x = fl_gpu_cupy_alloc(p, 5000, 0);
    assert_int_equal(pool_stats(p).occupied_bytes, 8192);
    fl_gpu_cupy_free(p, x, 0);
    assert_null(fl_gpu_cupy_alloc(p, 5000, 1)); /* of another device */
    assert_null(fl_gpu_cupy_alloc(NULL, (size_t)1 << 50, 0));
    assert_null(fl_gpu_cupy_alloc(NULL, 1, 64));
    fl_gpu_cupy_free(NULL, NULL, 0);
    fl_gpu_cupy_free(NULL, &x, 0); /* is not its own: says so once */
    pool_end(p);
}

ROWS(in_order_of_streams,
     {"S3: what a stream frees it has again", "T", NULL, ONCE, "x=L1M ^L .xL -xL y=L1M y~x"},
     {"S3: what a stream frees it has again", "T", NULL, ONCE, "x=a1M ^a .xa -xa y=a1M y~x"},
     {"S5: its own stream waits for one that was recorded", "T", NULL, ONCE,
      "x=a4M .xa _a ^b .xb @xb -xa y=a4M y#x .ya"}, )

CASE(each_device_has_a_pool_of_its_own)
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

CASE(what_cannot_be_is_survived)
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
CASE(a_forks_child_changes_nothing)
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
    gpu_main("test_gpu_shims", NULL);
    return RUN_CASES(.group_setup = gpu_all_late, .teardown = gpu_nothing_reported);
}
