/* A hundred arrays of different shapes, made and dropped again and again, under each strategy that
 * a pool has: which one serves this program from its pool, and which one goes to the driver.
 * Exit 77: there is no device. */
#include "driver.h"

#include <faultless/gpu.h>

#include <inttypes.h>
#include <stdio.h>

enum { ARRAYS = 100, ROUNDS = 40 };

static const struct {
    enum fl_gpu_strategy strategy;
    const char *name;
} strategies[] = {
    {FL_GPU_NAIVE, "naive"},
    {FL_GPU_ROUND, "round"},
    {FL_GPU_UNPOOLED, "unpooled"},
    {FL_GPU_NAIVE_BEST_FIT, "naive_best_fit"},
    {FL_GPU_AUTO_GROWTH, "auto_growth"},
};

static uint64_t dice;

static size_t next(size_t below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(dice >> 33) % below;
}

/* Rows and columns as a network has them, in a batch that differs from step to step. */
static size_t shape(int i, size_t rows)
{
    return rows * (size_t)(64 + i * 37) * sizeof(float);
}

/* Each array is made once a round, in one order, and dropped in another, some of them in the round
 * after. */
static int run(struct fl_gpu_pool *pool, CUstream stream)
{
    uint64_t array[ARRAYS] = {0};
    int rc = 0;

    dice = 1;
    for (int round = 0; round < ROUNDS && rc == 0; round++) {
        size_t rows = 64 + next(64);
        for (int i = 0; i < ARRAYS && rc == 0; i++) {
            if (array[i] == 0) {
                rc = fl_gpu_pool_alloc(pool, shape(i, i % 2 == 0 ? 64 : rows), stream, &array[i]);
            }
        }
        for (int n = 0; n < ARRAYS && rc == 0; n++) {
            size_t i = next(ARRAYS);
            if (array[i] != 0) {
                rc = fl_gpu_pool_free(pool, array[i], stream);
                array[i] = 0;
            }
        }
    }
    for (int i = 0; i < ARRAYS && rc == 0; i++) {
        rc = array[i] == 0 ? 0 : fl_gpu_pool_free(pool, array[i], stream);
    }
    return rc;
}

static int compare(struct fl_gpu *gpu, size_t which, CUstream stream)
{
    struct fl_gpu_pool_stats s = {.size = sizeof s};
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *pool;

    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    o.strategy = strategies[which].strategy;
    int rc = fl_gpu_pool_create(gpu, &o, &pool);
    rc = rc == 0 ? run(pool, stream) : rc;
    rc = rc == 0 ? fl_gpu_pool_stats(pool, &s) : rc;
    rc = rc == 0 ? fl_gpu_pool_destroy(pool) : rc;
    if (rc == 0) {
        printf("%-15s %8.1f %8.1f %8.1f %8.1f %7" PRIu64 " %7" PRIu64 "\n", strategies[which].name,
               (double)s.served_pool_bytes / 1048576, (double)s.served_api_bytes / 1048576,
               (double)s.held_peak_bytes / 1048576, (double)s.occupied_peak_bytes / 1048576,
               s.driver_allocs, s.implicit_syncs);
    }
    return rc;
}

int main(void)
{
    struct fl_gpu *gpu;
    struct driver d = {.retain = NULL};
    CUstream stream = NULL;
    int rc = fl_gpu_open(0, &gpu);

    if (rc != 0 || !driver_begin(&d, 0, &stream)) {
        printf("no device: %s\n", fl_gpu_error());
        return 77;
    }
    printf("%-15s %8s %8s %8s %8s %7s %7s\n", "MiB", "pool", "API", "held", "in use", "allocs",
           "syncs");
    for (size_t i = 0; i < sizeof strategies / sizeof strategies[0] && rc == 0; i++) {
        rc = compare(gpu, i, stream);
    }
    if (rc != 0) {
        fprintf(stderr, "%s\n", fl_gpu_error());
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
