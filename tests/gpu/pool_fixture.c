#include "gpu/pool_fixture.h"

struct fl_gpu_pool_options pool_options(enum fl_gpu_strategy strategy)
{
    return (struct fl_gpu_pool_options){
        .size = sizeof(struct fl_gpu_pool_options),
        .strategy = strategy,
        .target = FL_GPU_DEVICE,
        .page = 4096,
        .large_round = MIB(2),
        .linear_cutoff = 24,
        .reserve_percent = 5,
        .fraction = 0.92,
        .gc_fraction = 1,
        .gc_fast = true,
        .chunk = 1, /* as large as the request */
        .numa_node = -1,
    };
}

struct fl_gpu_pool *pool_with(const struct fl_gpu_pool_options *o)
{
    struct fl_gpu_pool *p = NULL;

    if (fl_gpu_pool_create(gpu, o, &p) != 0) {
        fail_msg("no pool: %s", fl_gpu_error());
    }
    return p;
}

struct fl_gpu_pool *pool_of(enum fl_gpu_strategy strategy)
{
    struct fl_gpu_pool_options o = pool_options(strategy);

    return pool_with(&o);
}

struct fl_gpu_pool *pool_lasting(enum fl_gpu_strategy strategy)
{
    struct fl_gpu_pool_options o = pool_options(strategy);

    o.events = FL_GPU_EVENTS_LAZY;
    return pool_with(&o);
}

void pool_end(struct fl_gpu_pool *p)
{
    assert_true(fl_pool_check(p));
    int rc = fl_gpu_pool_destroy(p);
    if (rc != 0) {
        fail_msg("the pool does not end: %d, %s", rc, fl_gpu_error());
    }
}

uint64_t pool_take(struct fl_gpu_pool *p, size_t size, void *stream)
{
    uint64_t address = 0;
    int rc = fl_gpu_pool_alloc(p, size, stream, &address);

    if (rc != 0) {
        fail_msg("no %zu bytes: %d, %s", size, rc, fl_gpu_error());
    }
    assert_int_not_equal(address, 0);
    return address;
}

void pool_give(struct fl_gpu_pool *p, uint64_t address, void *stream)
{
    int rc = fl_gpu_pool_free(p, address, stream);

    if (rc != 0) {
        fail_msg("not freed: %d, %s", rc, fl_gpu_error());
    }
}

struct fl_gpu_pool_stats pool_stats(struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_stats s = {.size = sizeof s};

    assert_true(fl_pool_check(p));
    assert_int_equal(fl_gpu_pool_stats(p, &s), 0);
    return s;
}

uint64_t pool_held(struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_stats s = pool_stats(p);

    return s.occupied_bytes + s.free_bytes;
}
