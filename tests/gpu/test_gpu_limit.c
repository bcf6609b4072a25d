/* Limits of a device, which pools and mirrors share; and a pool's options as older programs have
 * them. */
#include "gpu/mirror/mirror.h"
#include "gpu/pool_fixture.h"

#include <math.h>

static struct fl_gpu_mirror *mirror_of(size_t len, int *out_rc)
{
    struct fl_gpu_slot slot = {.size = len};
    struct fl_gpu_mirror_options o;
    struct fl_gpu_mirror *m = NULL;

    fl_gpu_mirror_defaults(&o);
    o.slot = &slot;
    o.count = 1;
    *out_rc = fl_gpu_mirror_create(gpu, &o, &m);
    return m;
}

/* 64 MiB, and never 65, for each caller. */
CASE(a_limit_is_of_the_device)
{
    static const enum fl_gpu_strategy all[] = {FL_GPU_NAIVE, FL_GPU_UNPOOLED, FL_GPU_AUTO_GROWTH};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.limit = MIB(64)),
                           *q = POOL(all[i], o.limit = MIB(100));
        uint64_t x = pool_take(p, MIB(40), NULL), y = 0;
        int rc = 0;
        assert_int_equal(fl_gpu_pool_alloc(q, MIB(26), NULL, &y), -ENOMEM);
        y = pool_take(q, MIB(16), NULL);
        assert_null(mirror_of(MIB(10), &rc));
        assert_int_equal(rc, -ENOMEM);
        struct fl_gpu_mirror *m = mirror_of(MIB(4), &rc);
        assert_int_equal(rc, 0);
        assert_true(fake == NULL || fake->used(0) <= MIB(64));
        pool_give(p, x, NULL);
        /* What it held others may have; its limit is the device's while there are any. */
        pool_end(p);
        assert_int_equal(fl_gpu_pool_alloc(q, MIB(60), NULL, &x), -ENOMEM);
        x = pool_take(q, MIB(40), NULL);
        pool_give(q, x, NULL);
        pool_give(q, y, NULL);
        pool_end(q);
        assert_int_equal(fl_gpu_mirror_destroy(m), 0);
    }
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);
    pool_give(p, pool_take(p, MIB(100), NULL), NULL); /* all have left: there is none */
    pool_end(p);
    fl_gpu_account_bound(gpu, MIB(8)); /* as a library's user says it: it stays */
    for (unsigned i = 0; i < 2; i++) {
        uint64_t x;
        p = pool_of(FL_GPU_AUTO_GROWTH);
        assert_int_equal(fl_gpu_pool_alloc(p, MIB(16), NULL, &x), -ENOMEM);
        pool_end(p);
    }
    fl_gpu_account_bound(gpu, 0);
}

/* The driver's refusals are not held against it. */
GPU_FAKE_TEST(what_is_refused_is_not_held)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.limit = MIB(64));
    for (unsigned i = 0; i < 4; i++) {
        uint64_t x = 0;
        int rc = 0;
        fake->refuse("cuMemAlloc", 1, FL_CUDA_ERROR_OUT_OF_MEMORY, true);
        assert_int_equal(fl_gpu_pool_alloc(p, MIB(40), NULL, &x), -ENOMEM);
        assert_null(mirror_of(MIB(40), &rc));
        fake->refuse(NULL, 0, 0, false);
    }
    pool_give(p, pool_take(p, MIB(64), NULL), NULL);
    pool_end(p);
}

/* Nor is the driver asked for what the host has not: it would bring that in. */
GPU_FAKE_TEST(what_the_host_has_not_is_asked_of_none)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_UNPOOLED, o.target = FL_GPU_PINNED);
    uint64_t x;

    fake->set(FAKE_CUDA_REGISTER_MAX, MIB(1));
    assert_int_equal(fl_gpu_pool_alloc(p, GIB(1 << 13), NULL, &x), -ENOMEM);
    assert_int_equal(fake->calls("cuMemHostAlloc"), 0);
    pool_end(p);
}

/* A machine that has 64 MiB left; or whose node 0, of two, has. */
static bool has_nodes;

static int with_64_mib(const char *path, char *buf, size_t size)
{
    const char *text = NULL;

    if (strcmp(path, "/sys/devices/system/node/online") == 0) {
        text = has_nodes ? "0-1" : "0";
    } else if (strcmp(path, "/sys/devices/system/node/node0/meminfo") == 0) {
        text = "Node 0 MemFree: 32768 kB\nNode 0 Active(file): 16384 kB\n"
               "Node 0 Inactive(file): 16384 kB\n";
    } else if (strcmp(path, "/proc/meminfo") == 0 && !has_nodes) {
        text = "MemTotal: 1048576 kB\nMemAvailable: 65536 kB\n";
    }
    if (text == NULL) {
        return fl_sys_linux.read_file(path, buf, size);
    }
    strncpy(buf, text, size);
    return 0;
}

CASE(pinned_memory_is_half_of_what_is_left_at_most)
{
    fl_sys.read_file = with_64_mib;
    for (unsigned i = 0; i < 2; i++) {
        struct fl_gpu_pool *p = POOL(FL_GPU_UNPOOLED, o.target = FL_GPU_PINNED, o.numa_node = 0);
        uint64_t x;
        has_nodes = i == 1;
        assert_int_equal(fl_gpu_pool_alloc(p, MIB(34), NULL, &x), -ENOMEM);
        pool_give(p, pool_take(p, MIB(30), NULL), FL_GPU_HOST);
        pool_end(p);
    }
    fl_sys.read_file = fl_sys_linux.read_file;
}

CASE(older_programs_have_the_defaults)
{
    struct fl_gpu_pool_options defaults, o;
    struct fl_gpu_pool *p = NULL;

    fl_gpu_pool_defaults(&defaults, FL_GPU_DEVICE);
    memset(&o, 0xff, sizeof o); /* what lies behind an older program's is anything */
    o.size = offsetof(struct fl_gpu_pool_options, initial);
    o.strategy = FL_GPU_ROUND;
    o.target = FL_GPU_DEVICE;
    o.page = 8192;
    o.large_round = defaults.large_round;
    o.linear_cutoff = 22;
    o.reserve_percent = 5;
    o.fraction = 0.5;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), 0);
    assert_int_equal(p->o.page, 8192);
    assert_int_equal(p->o.linear_cutoff, 22);
    assert_int_equal(p->o.limit, defaults.limit);
    assert_true(p->o.gc_gb == defaults.gc_gb);
    assert_int_equal(p->o.numa_node, -1);
    pool_end(p);
    o.size = offsetof(struct fl_gpu_pool_options, page) - 1;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    struct {
        struct fl_gpu_pool_options known;
        size_t newer;
    } n = {defaults, 7};
    n.known.size = sizeof n;
    assert_int_equal(fl_gpu_pool_create(gpu, &n.known, &p), 0);
    pool_end(p);
}

#define REFUSED(strategy_, ...)                                                                    \
    do {                                                                                           \
        struct fl_gpu_pool_options o = pool_options(strategy_);                                    \
        struct fl_gpu_pool *p = NULL;                                                              \
        __VA_ARGS__;                                                                               \
        assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);                                \
    } while (0)

/* MXNet: pages below 32 are fatal, Round's is a power of two, its cutoff 20 to 34. */
CASE(options_that_make_no_sense_are_refused)
{
    static const enum fl_gpu_strategy binned[] = {FL_GPU_NAIVE, FL_GPU_ROUND};
    struct fl_gpu_pool *none = NULL;

    for (unsigned i = 0; i < 2; i++) {
        REFUSED(binned[i], o.page = 31);
        pool_end(POOL(binned[i], o.page = 32));
        REFUSED(binned[i], o.reserve_percent = 101);
    }
    REFUSED(FL_GPU_ROUND, o.page = 3000);
    REFUSED(FL_GPU_ROUND, o.linear_cutoff = 19);
    REFUSED(FL_GPU_ROUND, o.linear_cutoff = 35);
    REFUSED(FL_GPU_NAIVE_BEST_FIT, o.fraction = 1.5);
    REFUSED((enum fl_gpu_strategy)99, );
    REFUSED(FL_GPU_AUTO_GROWTH, o.size = 8);
    REFUSED(FL_GPU_AUTO_GROWTH, o.gc_gb = NAN);
    REFUSED(FL_GPU_AUTO_GROWTH, o.gc_fraction = NAN);
    assert_int_equal(fl_gpu_pool_create(gpu, NULL, &none), -EINVAL);
}

static struct fl_gpu_device_stats of_device(int device)
{
    struct fl_gpu_device_stats s = {.size = sizeof s};

    assert_int_equal(fl_gpu_device_stats(device, &s), 0);
    return s;
}

/* Pools, pinned ones, mirrors: each under its name, and the device's part as the driver gives
 * it. */
CASE(statistics_are_of_the_device)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);
    struct fl_gpu_device_stats before = of_device(0), s;
    int rc;

    o.limit = MIB(64);
    struct fl_gpu_pool *p = pool_with(&o), *q = pool_of(FL_GPU_UNPOOLED);
    o = pool_options(FL_GPU_AUTO_GROWTH);
    o.target = FL_GPU_PINNED;
    o.chunk = MIB(4);
    struct fl_gpu_pool *h = pool_with(&o);
    uint64_t x = pool_take(p, MIB(4), NULL), y = pool_take(q, MIB(3), NULL), z;
    pool_give(p, x, NULL);
    x = pool_take(p, MIB(2), NULL);
    z = pool_take(h, MIB(2), NULL);
    struct fl_gpu_mirror *m = mirror_of(MIB(5), &rc);
    assert_int_equal(rc, 0);
    s = of_device(0);
    assert_int_equal(s.limit_bytes, MIB(64));
    assert_int_equal(s.held_bytes, MIB(4) + MIB(4) + MIB(6)); /* of pages of 2 MiB */
    assert_true(s.held_peak_bytes >= s.held_bytes);
    assert_true(fake == NULL || fake->used(0) == s.held_bytes);
    assert_int_equal(s.pools, 2);
    assert_int_equal(s.occupied_bytes, MIB(5));
    assert_int_equal(s.free_bytes, MIB(2));
    assert_int_equal(s.requested_bytes, MIB(5));
    assert_int_equal(s.allocs - before.allocs, 3);
    assert_int_equal(s.hits - before.hits, 1);
    assert_int_equal(s.driver_allocs - before.driver_allocs, 2);
    assert_int_equal(s.pinned_pools, 1);
    assert_int_equal(s.mirrors, 1);
    assert_int_equal(s.mirror_bytes, MIB(6)); /* whole huge pages */
    assert_int_equal(s.pinned_bytes, pool_held(h) + MIB(6));
    pool_give(p, x, NULL);
    pool_give(q, y, NULL);
    assert_int_equal(of_device(0).held_bytes, MIB(4) + MIB(6));
    pool_give(h, z, NULL);
    pool_end(p);
    pool_end(q);
    pool_end(h);
    assert_int_equal(fl_gpu_mirror_destroy(m), 0);
    p = pool_of(FL_GPU_AUTO_GROWTH);
    pool_give(p, pool_take(p, MIB(2), NULL), NULL);
    pool_end(p);
    s = of_device(0); /* what was counted stays */
    assert_int_equal(s.allocs - before.allocs, 4);
    assert_int_equal(s.held_bytes + s.pools + s.pinned_pools + s.mirrors + s.limit_bytes, 0);
    assert_int_equal(s.occupied_bytes + s.free_bytes + s.pinned_bytes + s.mirror_bytes, 0);
    assert_true(s.held_peak_bytes >= MIB(14));
}

CASE(statistics_want_a_device_and_a_size)
{
    struct fl_gpu_device_stats s = {.size = sizeof s};

    assert_int_equal(fl_gpu_device_stats(-1, &s), -EINVAL);
    assert_int_equal(fl_gpu_device_stats(64, &s), -EINVAL);
    assert_int_equal(fl_gpu_device_stats(0, NULL), -EINVAL);
    assert_int_equal(of_device(63).allocs, 0); /* never used */
    s.size = 2 * sizeof(uint64_t);             /* an older program's */
    s.held_peak_bytes = 5;
    assert_int_equal(fl_gpu_device_stats(0, &s), 0);
    assert_int_equal(s.held_peak_bytes, 5);
    s.size = sizeof s + 1;
    assert_int_equal(fl_gpu_device_stats(0, &s), -EINVAL);
}

GPU_MAIN("test_gpu_limit")
