/* What a pool's defaults are, by the environment: written out by hand. No driver but where it says
 * so. */
#include "gpu/gpu_fixture.h"

static struct fl_options options;
static struct fl_gpu_pool_options o;

static uint64_t memory_total(uint64_t *swap)
{
    if (swap != NULL) {
        *swap = 0;
    }
    return 64ull << 30;
}

static void read_env(const char *a, const char *b, enum fl_gpu_target target)
{
    const char *entries[] = {a, b, NULL};
    char *env[3];

    memcpy(env, entries, sizeof env); /* environ is not const by tradition */
    fl_sys = fl_sys_linux;
    fl_sys.memory_total = memory_total;
    fl_options_read(&options, env);
    fl_options_aliases(&options, env);
    options.ranks = fl_ranks(&options, env);
    fl_gpu_start(NULL, &options);
    memset(&o, 0xa5, sizeof o);
    fl_gpu_pool_defaults(&o, target);
}

static void check_presets(void)
{
    assert_int_equal(o.size, sizeof o);
    assert_int_equal(o.strategy, FL_GPU_AUTO);
    assert_int_equal(o.page, 4096);
    assert_int_equal(o.large_round, 2 << 20);
    assert_int_equal(o.linear_cutoff, 24);
    assert_int_equal(o.reserve_percent, 5);
    assert_int_equal(o.chunk, 0);
    assert_true(o.gc_gb == 0.0);
    assert_true(o.gc_fraction == 1.0);
    assert_true(o.gc_fast);
    assert_int_equal(o.numa_node, -1);
}

CASE(without_environment_they_are_as_the_header_says)
{
    for (int booted = 0; booted < 2; booted++) {
        read_env(NULL, NULL, FL_GPU_DEVICE);
        if (!booted) {
            fl_gpu_start(NULL, NULL);
        }
        fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
        check_presets();
        assert_int_equal(o.target, FL_GPU_DEVICE);
        assert_true(o.fraction == 0.92);
        assert_int_equal(o.initial, 0);
        assert_int_equal(o.regrow, 0);
        assert_int_equal(o.limit, 0);
    }
    fl_gpu_pool_defaults(NULL, FL_GPU_DEVICE); /* survived */
}

/* PaddlePaddle: half of the memory at most, in chunks of a 256th of that. */
CASE(pinned_pools_hold_half_of_the_memory)
{
    read_env(NULL, NULL, FL_GPU_PINNED);
    check_presets();
    assert_int_equal(o.target, FL_GPU_PINNED);
    assert_true(o.fraction == 0.5);
    assert_int_equal(o.limit, 32ull << 30);
    assert_int_equal(o.initial, 128 << 20);
    assert_int_equal(o.regrow, 128 << 20);
    read_env("FLAGS_fraction_of_cuda_pinned_memory_to_use=0.25", "LOCAL_WORLD_SIZE=4",
             FL_GPU_PINNED);
    assert_int_equal(o.limit, 4ull << 30);
}

CASE(each_option_has_its_field)
{
    read_env("FAULTLESS_GPU_STRATEGY=round", "MXNET_GPU_MEM_POOL_PAGE_SIZE=65536", FL_GPU_DEVICE);
    assert_int_equal(o.strategy, FL_GPU_ROUND);
    assert_int_equal(o.page, 65536);
    read_env("FAULTLESS_GPU_STRATEGY=round", "MXNET_GPU_MEM_POOL_PAGE_SIZE=65536", FL_GPU_PINNED);
    assert_int_equal(o.strategy, FL_GPU_AUTO); /* of pinned pools nothing is said */
    assert_int_equal(o.page, 65536);
    read_env("MXNET_CPU_PINNED_MEM_POOL_TYPE=Unpooled",
             "FLAGS_fraction_of_cuda_pinned_memory_to_use=0.25", FL_GPU_PINNED);
    assert_int_equal(o.strategy, FL_GPU_UNPOOLED);
    assert_true(o.fraction == 0.25);
    read_env("FLAGS_initial_gpu_memory_in_mb=1024", "FLAGS_reallocate_gpu_memory_in_mb=64",
             FL_GPU_DEVICE);
    assert_int_equal(o.initial, 1 << 30);
    assert_int_equal(o.regrow, 64 << 20);
    read_env("FLAGS_eager_delete_tensor_gb=-1", "FLAGS_memory_fraction_of_eager_deletion=0.75",
             FL_GPU_DEVICE);
    assert_true(o.gc_gb < 0);
    assert_true(o.gc_fraction == 0.75);
    read_env("FLAGS_eager_delete_tensor_gb=1.5", "FLAGS_fast_eager_deletion_mode=0", FL_GPU_PINNED);
    assert_true(o.gc_gb == 1.5);
    assert_false(o.gc_fast);
    read_env("FAULTLESS_GPU_CHUNK=10M", "MXNET_GPU_MEM_POOL_RESERVE=9", FL_GPU_DEVICE);
    assert_int_equal(o.chunk, 10 << 20);
    assert_int_equal(o.reserve_percent, 9);
}

CASE(a_limit_is_divided_among_those_who_share_the_device)
{
    static const struct {
        const char *devices; /* CUDA_VISIBLE_DEVICES */
        const char *limit, *ranks;
        uint64_t mib;
    } table[] = {
        {"0", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=1", 8192},
        {"0", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 2048},
        {"0,1", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 4096},
        {"0,1,2,3", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 8192},
        {"0,1,2,3,4,5,6,7", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 8192},
        {"0,1,2", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 4096},
        {"GPU-1ab,GPU-2cd", "FAULTLESS_GPU_LIMIT=8G", "OMPI_COMM_WORLD_LOCAL_SIZE=8", 2048},
        {"0,-1,1", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 2048},
        {"", "FAULTLESS_GPU_LIMIT=8G", "LOCAL_WORLD_SIZE=4", 8192}, /* none to share */
        {"0", "FAULTLESS_GPU_LIMIT=8G", "FAULTLESS_GPU_SHARE=2", 4096},
        {"0", "FAULTLESS_GPU_LIMIT=0", "LOCAL_WORLD_SIZE=4", 0},
        {"0", "FLAGS_gpu_memory_limit_mb=8192", "LOCAL_WORLD_SIZE=4", 8192}, /* a process's */
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", table[i].devices, 1), 0);
        read_env(table[i].limit, table[i].ranks, FL_GPU_DEVICE);
        if (o.limit != table[i].mib << 20) {
            fail_msg("%s, %s, %s: %zu", table[i].devices, table[i].limit, table[i].ranks, o.limit);
        }
    }
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

/* The fake driver has two. */
CASE(where_nothing_is_said_the_driver_counts_the_devices)
{
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    read_env("FAULTLESS_GPU_LIMIT=8G", "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA, FL_GPU_DEVICE);
    assert_int_equal(o.limit, 8ull << 30);
    options.ranks = 8;
    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    assert_int_equal(o.limit, 2ull << 30);
}

CASES_MAIN()
