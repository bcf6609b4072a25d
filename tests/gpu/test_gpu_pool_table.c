/* What MXNet's and PaddlePaddle's pools do, to the byte: each number below is worked out by hand
 * from their rules, which the row names. Nothing here is computed as the code computes it. */
#include "gpu/pool_fixture.h"

#include <errno.h>

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

/* ..._LARGE_ALLOC_ROUND_SIZE=1 is off; MXNET_GPU_MEM_POOL_PAGE_SIZE, ..._ROUND_LINEAR_CUTOFF. */
GPU_TEST(rounding_can_be_set)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_NAIVE);

    o.large_round = 1;
    struct fl_gpu_pool *p = pool_with(&o);
    pool_give(p, pool_take(p, 5000001, NULL), NULL);
    assert_int_equal(pool_held(p), 5001216); /* 1221 pages */
    pool_end(p);

    o.page = 1000; /* naive: any number */
    p = pool_with(&o);
    pool_give(p, pool_take(p, 2500, NULL), NULL);
    assert_int_equal(pool_held(p), 3000);
    pool_end(p);

    o = pool_options(FL_GPU_ROUND);
    o.linear_cutoff = 20;
    o.page = 512;
    p = pool_with(&o);
    pool_give(p, pool_take(p, 3, NULL), NULL);
    assert_int_equal(pool_held(p), 512);
    pool_give(p, pool_take(p, 2097153, NULL), NULL);
    assert_int_equal(pool_held(p), 512 + 3145728); /* three times 2^20 */
    pool_end(p);
}

GPU_TEST(options_that_make_no_sense_are_refused)
{
    static const enum fl_gpu_strategy binned[] = {FL_GPU_NAIVE, FL_GPU_ROUND};
    struct fl_gpu_pool *p = NULL;

    for (unsigned i = 0; i < 2; i++) {
        struct fl_gpu_pool_options o = pool_options(binned[i]);
        o.page = 31; /* MXNet: fatal below 32 */
        assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
        o.page = 32;
        assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), 0);
        pool_end(p);
        o.reserve_percent = 101;
        assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    }
    struct fl_gpu_pool_options o = pool_options(FL_GPU_ROUND);
    o.page = 3000; /* MXNet's Round: a power of two */
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    o = pool_options(FL_GPU_ROUND);
    o.linear_cutoff = 19; /* MXNet: 20 to 34 */
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    o.linear_cutoff = 35;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    o = pool_options(FL_GPU_NAIVE_BEST_FIT);
    o.fraction = 1.5;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    o = pool_options((enum fl_gpu_strategy)99);
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    o = pool_options(FL_GPU_AUTO_GROWTH);
    o.size = 8;
    assert_int_equal(fl_gpu_pool_create(gpu, &o, &p), -EINVAL);
    assert_int_equal(fl_gpu_pool_create(gpu, NULL, &p), -EINVAL);
}

/* MXNet: a size has what was freed of it, and nothing of another. */
GPU_TEST(naive_reuses_exact_sizes)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_NAIVE);
    uint64_t x = pool_take(p, 8000, NULL), y = pool_take(p, 8100, NULL);

    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    assert_int_equal(pool_held(p), 16384);
    uint64_t z = pool_take(p, 4096, NULL); /* not cut from 8192 */
    assert_int_equal(pool_held(p), 16384 + 4096);
    const uint64_t first = pool_take(p, 4100, NULL), second = pool_take(p, 8192, NULL);
    assert_true((first == x && second == y) || (first == y && second == x));
    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    pool_give(p, z, NULL);
    pool_end(p);
}

/* MXNet: when less than the reserve, 5 % of all memory, would be left, the whole cache goes back
 * first. 1000 MiB: 50 MiB. */
GPU_FAKE_TEST(the_reserve_is_kept_by_giving_the_cache_back)
{
    fake->set(FAKE_CUDA_CAPACITY, MIB(1000));
    struct fl_gpu_pool *p = pool_of(FL_GPU_NAIVE);
    uint64_t x = pool_take(p, MIB(500), NULL), y = pool_take(p, MIB(300), NULL);
    pool_give(p, x, NULL);
    uint64_t z = pool_take(p, MIB(150), NULL); /* 200 are left, 50 stay */
    assert_int_equal(pool_held(p), MIB(950));
    assert_int_equal(pool_stats(p).driver_frees, 0);
    uint64_t w = pool_take(p, MIB(2), NULL); /* 48 would: the 500 go */
    assert_int_equal(pool_held(p), MIB(452));
    assert_int_equal(pool_stats(p).driver_frees, 1);
    pool_give(p, w, NULL);
    pool_give(p, y, NULL);
    pool_give(p, z, NULL);
    pool_end(p);
}

/* PaddlePaddle: free less a twentieth, of which 92 %; 1000 MiB: 950, 874. The low part is given,
 * what is over is merged again. */
GPU_FAKE_TEST(naive_best_fit_takes_one_great_chunk)
{
    fake->set(FAKE_CUDA_CAPACITY, MIB(1000));
    struct fl_gpu_pool *p = pool_of(FL_GPU_NAIVE_BEST_FIT);
    assert_int_equal(pool_held(p), 0); /* at first use, not before */
    uint64_t x = pool_take(p, 1000, NULL), y = pool_take(p, 1000, NULL);
    assert_true(pool_held(p) <= MIB(874) && pool_held(p) > MIB(874) - 512);
    assert_int_equal(y - x, 1024); /* 256 bytes are the unit */
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    assert_int_equal(pool_stats(p).served_api_bytes, 1024);
    assert_int_equal(pool_stats(p).served_pool_bytes, 1024);
    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    assert_int_equal(pool_take(p, MIB(800), NULL), x);
    pool_give(p, x, NULL);
    pool_end(p);
}

/* FLAGS_initial_gpu_memory_in_mb, FLAGS_reallocate_...: what is larger than both is not pooled. */
GPU_TEST(naive_best_fit_grows_by_what_it_is_told)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_NAIVE_BEST_FIT, o.initial = MIB(16), o.regrow = MIB(4));
    uint64_t x = pool_take(p, MIB(10), NULL);
    assert_int_equal(pool_held(p), MIB(16));
    uint64_t y = pool_take(p, MIB(8), NULL); /* regrow, at least the request */
    assert_int_equal(pool_held(p), MIB(24));
    uint64_t z = pool_take(p, MIB(7), NULL); /* 6 are left: 7 */
    assert_int_equal(pool_held(p), MIB(31));
    uint64_t w = pool_take(p, MIB(6), NULL);
    assert_int_equal(pool_held(p), MIB(31));
    uint64_t v = pool_take(p, MIB(1), NULL); /* regrow */
    assert_int_equal(pool_held(p), MIB(35));
    uint64_t u = pool_take(p, MIB(16) + 1, NULL); /* above the largest: by itself */
    assert_int_equal(pool_held(p), MIB(51) + 256);
    pool_give(p, u, NULL);
    assert_int_equal(pool_held(p), MIB(35));
    pool_give(p, v, NULL);
    pool_give(p, w, NULL);
    pool_give(p, z, NULL);
    pool_give(p, y, NULL);
    pool_give(p, x, NULL);
    assert_int_equal(pool_held(p), MIB(35));
    pool_end(p);
}

/* FLAGS_fraction_of_gpu_memory_to_use=0. */
GPU_TEST(a_fraction_of_nothing_pools_nothing)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_NAIVE_BEST_FIT, o.fraction = 0);
    pool_give(p, pool_take(p, 1000, NULL), NULL);
    assert_int_equal(pool_held(p), 0);
    assert_int_equal(pool_stats(p).driver_frees, 1);
    pool_end(p);
}

/* PaddlePaddle: the lowest of the smallest that fit; its upper end; merged within the chunk. */
GPU_TEST(auto_growth_gives_the_upper_end_of_the_best)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.chunk = MIB(8));
    uint64_t x = pool_take(p, MIB(1), NULL); /* 7..8 */
    uint64_t base = x - MIB(7);
    assert_int_equal(pool_held(p), MIB(8));
    assert_int_equal(pool_take(p, MIB(2), NULL), base + MIB(5));
    assert_int_equal(pool_take(p, MIB(3), NULL), base + MIB(2));
    pool_give(p, base + MIB(5), NULL);                           /* free: 0..2, 5..7 */
    assert_int_equal(pool_take(p, MIB(1), NULL), base + MIB(1)); /* two are as small: the lower */
    assert_int_equal(pool_take(p, MIB(2), NULL), base + MIB(5));
    uint64_t y = pool_take(p, MIB(20), NULL); /* as large as the request */
    assert_int_equal(pool_held(p), MIB(28));
    pool_give(p, base + MIB(1), NULL);
    pool_give(p, base + MIB(5), NULL);
    pool_give(p, base + MIB(2), NULL);
    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    assert_int_equal(pool_take(p, MIB(8), NULL), base); /* all one again */
    pool_give(p, base, NULL);
    pool_end(p);
}

/* FLAGS_gpu_memory_limit_mb; idle chunks go back before the limit is an answer. */
GPU_TEST(the_limit_is_what_is_held)
{
    uint64_t z;

    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.limit = MIB(10));
    uint64_t x = pool_take(p, MIB(6), NULL), y = pool_take(p, MIB(4), NULL);
    assert_int_equal(fl_gpu_pool_alloc(p, 1, NULL, &z), -ENOMEM);
    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    y = pool_take(p, MIB(10), NULL);
    assert_int_equal(pool_held(p), MIB(10));
    assert_int_equal(pool_stats(p).held_peak_bytes, MIB(10));
    pool_give(p, y, NULL);
    assert_int_equal(fl_gpu_pool_alloc(p, MIB(10) + 1, NULL, &z), -ENOMEM);
    pool_end(p);
}

/* eager_delete_tensor_gb: garbage until there is so much; memory_fraction_of_eager_deletion 0.5:
 * the largest, until half is reached, the one that reaches it among them. Freed: 2, 6, 2, 4 MiB;
 * half of 14 is 7: 6 and 4. */
GPU_TEST(garbage_is_reclaimed_largest_first)
{
    static const size_t mib[4] = {2, 6, 2, 4}; /* naive: even ones */
    uint64_t x[4];

    struct fl_gpu_pool *p = POOL(FL_GPU_NAIVE, o.gc_gb = 14.0 / 1024, o.gc_fraction = 0.5);
    for (unsigned i = 0; i < 4; i++) {
        x[i] = pool_take(p, MIB(mib[i]), NULL);
    }
    for (unsigned i = 0; i < 3; i++) {
        pool_give(p, x[i], NULL); /* 10 MiB: still garbage */
    }
    assert_int_equal(pool_stats(p).gc_batches, 0);
    assert_int_equal(pool_stats(p).free_bytes, MIB(10));
    pool_give(p, x[3], NULL); /* 14: a batch; 7 is half: 6 and 4 */
    assert_int_equal(pool_stats(p).gc_batches, 1);
    assert_int_equal(pool_stats(p).gc_bytes, MIB(10));
    assert_int_equal(pool_take(p, MIB(6), NULL), x[1]);
    assert_int_equal(pool_take(p, MIB(4), NULL), x[3]);
    uint64_t y = pool_take(p, MIB(2), NULL); /* those two are garbage still */
    assert_true(y != x[0] && y != x[2]);
    assert_int_equal(fl_gpu_pool_collect(p), 0);
    assert_int_equal(pool_stats(p).gc_bytes, MIB(14));
    const uint64_t z = pool_take(p, MIB(2), NULL);
    assert_true(z == x[0] || z == x[2]);
    pool_give(p, z, NULL);
    pool_give(p, y, NULL);
    pool_give(p, x[1], NULL);
    pool_give(p, x[3], NULL);
    pool_end(p);
}

/* Below 0: never unasked. */
GPU_TEST(garbage_may_wait_to_be_asked_for)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_ROUND, o.gc_gb = -1);
    uint64_t x = pool_take(p, MIB(512), NULL);
    pool_give(p, x, NULL);
    assert_int_equal(pool_stats(p).gc_batches, 0);
    assert_int_equal(fl_gpu_pool_collect(p), 0);
    assert_int_equal(pool_take(p, MIB(512), NULL), x);
    pool_give(p, x, NULL);
    pool_end(p);
}

/* A request that made the pool grow counts wholly as the API's. */
GPU_TEST(served_is_from_the_pool_or_from_the_driver)
{
    struct fl_gpu_pool *p = POOL(FL_GPU_AUTO_GROWTH, o.chunk = MIB(4));
    uint64_t x = pool_take(p, 1000, NULL), y = pool_take(p, 1000, NULL);
    struct fl_gpu_pool_stats s = pool_stats(p);
    assert_int_equal(s.served_api_bytes, 1024);
    assert_int_equal(s.served_pool_bytes, 1024);
    assert_int_equal(s.occupied_bytes, 2048);
    assert_int_equal(s.free_bytes, MIB(4) - 2048);
    assert_int_equal(s.requested_bytes, 2000);
    assert_int_equal(fl_gpu_pool_inplace(p, x, 1024), 0);
    assert_int_equal(fl_gpu_pool_inplace(p, x, 1025), -EBUSY);
    assert_int_equal(pool_stats(p).requested_bytes, 2024);
    assert_int_equal(pool_stats(p).inplace, 1);
    pool_give(p, x, NULL);
    pool_give(p, y, NULL);
    pool_end(p);
}

GPU_MAIN("test_gpu_pool_table")
