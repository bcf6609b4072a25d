/* Pools for tests: options that do not come from the environment, and the counters at hand. */
#ifndef FL_TESTS_GPU_POOL_FIXTURE_H
#define FL_TESTS_GPU_POOL_FIXTURE_H

#include "gpu/gpu_fixture.h"
#include "gpu/pool/pool.h"

/* The values that docs and include/faultless/gpu.h name as the defaults. */
struct fl_gpu_pool_options pool_options(enum fl_gpu_strategy strategy);
/* On `gpu`; fails the test when it cannot be. */
struct fl_gpu_pool *pool_with(const struct fl_gpu_pool_options *o);
struct fl_gpu_pool *pool_of(enum fl_gpu_strategy strategy);
/* The same with other options: `...` sets them in `o`. */
#define POOL(strategy_, ...)                                                                       \
    ({                                                                                             \
        struct fl_gpu_pool_options o = pool_options(strategy_);                                    \
        __VA_ARGS__;                                                                               \
        pool_with(&o);                                                                             \
    })
/* Records of streams that are known, or that wait to be used again. */
size_t pool_records(const struct fl_gpu_pool *p);
/* P1 to P4 of gpu/pool/pool.h hold. */
bool pool_check(struct fl_gpu_pool *p);
/* Destroys it, empty as it must be. */
void pool_end(struct fl_gpu_pool *p);

uint64_t pool_take(struct fl_gpu_pool *p, size_t size, void *stream);
void pool_give(struct fl_gpu_pool *p, uint64_t address, void *stream);
/* The invariants hold, too. */
struct fl_gpu_pool_stats pool_stats(struct fl_gpu_pool *p);
uint64_t pool_held(struct fl_gpu_pool *p);

#endif
