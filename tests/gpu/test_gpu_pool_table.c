/* How MXNet's and PaddlePaddle's pools round: each number below is worked out by hand from their
 * rules, which the row names. Nothing here is computed as the code computes it. */
#include "gpu/pool_fixture.h"

#include <errno.h>
#include <math.h>

struct row {
    const char *rule;
    size_t asked, got;
};

static void served(enum fl_gpu_strategy strategy, const struct row *row, size_t n)
{
    struct fl_gpu_pool *p = pool_of(strategy);

    for (size_t i = 0; i < n; i++) {
        struct fl_gpu_pool_stats before = pool_stats(p);
        uint64_t x = pool_take(p, row[i].asked, NULL);
        struct fl_gpu_pool_stats after = pool_stats(p);
        uint64_t got = after.served_api_bytes - before.served_api_bytes + after.served_pool_bytes -
                       before.served_pool_bytes;
        if (got != row[i].got) {
            fail_msg("%s: %zu bytes are served by %llu, not %zu", row[i].rule, row[i].asked,
                     (unsigned long long)got, row[i].got);
        }
        assert_int_equal(after.requested_bytes, row[i].asked == 0 ? 1 : row[i].asked);
        pool_give(p, x, NULL);
        (void)fl_gpu_pool_trim(p, 0, NULL);
    }
    pool_end(p);
}

GPU_TEST(naive_rounds_to_pages_then_to_two_megabytes)
{
    static const struct row row[] = {
        {"naive: 0 is served as 1", 0, 4096},
        {"naive: up to a page", 1, 4096},
        {"naive: a page is a page", 4096, 4096},
        {"naive: up to a page", 4097, 8192},
        {"naive: 2 MiB is not above 2 MiB", 2097152, 2097152},
        {"naive: 2 MiB - 1", 2097151, 2097152},
        {"naive: above 2 MiB, to 2 MiB", 2097153, 4194304},
        {"naive: above 2 MiB, to 2 MiB", 5000000, 6291456},
        {"naive: 100 MB", 100000000, 100663296},
    };

    served(FL_GPU_NAIVE, row, sizeof row / sizeof *row);
}

GPU_TEST(round_takes_powers_of_two_then_multiples_of_sixteen_megabytes)
{
    static const struct row row[] = {
        {"round: at least a page", 1, 4096},
        {"round: a page", 4096, 4096},
        {"round: next power of two", 4097, 8192},
        {"round: next power of two", 9000, 16384},
        {"round: 1 MiB + 1", 1048577, 2097152},
        {"round: 3 MB", 3000000, 4194304},
        {"round: just below the cutoff, 2^24", 16777215, 16777216},
        {"round: the cutoff", 16777216, 16777216},
        {"round: above the cutoff, multiples of it", 16777217, 33554432},
        {"round: 40 MB, three times 2^24", 40000000, 50331648},
        {"round: 100 MB, six times 2^24", 100000000, 100663296},
    };

    served(FL_GPU_ROUND, row, sizeof row / sizeof *row);
}

GPU_TEST(the_others_round_to_256_bytes_or_not_at_all)
{
    static const struct row unit[] = {
        {"auto_growth: 256", 1, 256},
        {"auto_growth: 256", 256, 256},
        {"auto_growth: 512", 257, 512},
        {"auto_growth: 1000000 is 3907 times 256 less 192", 1000000, 1000192},
    };
    static const struct row exact[] = {
        {"unpooled: what is asked for", 1, 1},
        {"unpooled: what is asked for", 4097, 4097},
        {"unpooled: what is asked for", 1000000, 1000000},
    };

    served(FL_GPU_AUTO_GROWTH, unit, 4);
    served(FL_GPU_UNPOOLED, exact, 3);
}

#define REFUSED(strategy_, ...)                                                                    \
    do {                                                                                           \
        struct fl_gpu_pool_options o = pool_options(strategy_);                                    \
        struct fl_gpu_pool *p = NULL;                                                              \
        __VA_ARGS__;                                                                               \
        assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);                                \
    } while (0)

/* MXNet: pages below 32 are fatal, Round's is a power of two, its cutoff 20 to 34. */
GPU_TEST(options_that_make_no_sense_are_refused)
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

GPU_MAIN("test_gpu_pool_table")
