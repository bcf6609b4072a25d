/* Names that users of other frameworks have in their environment: what each comes to, written out
 * by hand from their documentation. */
#include "cases.h"
#include "unit/options_fixture.h"

#define MIB(n) ((uint64_t)(n) << 20)

enum { NAIVE = 1, ROUND, UNPOOLED, NAIVE_BEST_FIT, AUTO_GROWTH };

static void read_three(const char *a, const char *b, const char *c)
{
    READ(a, b, c);
    fl_options_aliases(&o, environment);
}

static const struct {
    const char *entry;
    enum fl_option_id id;
    uint64_t value;
} meant[] = {
    {"MXNET_GPU_MEM_POOL_TYPE=Naive", FL_OPTION_gpu_strategy, NAIVE},
    {"MXNET_GPU_MEM_POOL_TYPE=Round", FL_OPTION_gpu_strategy, ROUND},
    {"MXNET_GPU_MEM_POOL_TYPE=Unpooled", FL_OPTION_gpu_strategy, UNPOOLED},
    {"MXNET_CPU_PINNED_MEM_POOL_TYPE=Round", FL_OPTION_gpu_pinned_strategy, ROUND},
    {"MXNET_USE_NAIVE_STORAGE_MANAGER=1", FL_OPTION_gpu_strategy, UNPOOLED},
    {"MXNET_USE_NAIVE_STORAGE_MANAGERS=1", FL_OPTION_gpu_strategy, UNPOOLED},
    {"MXNET_USE_NAIVE_STORAGE_MANAGER=true", FL_OPTION_gpu_pinned_strategy, UNPOOLED},
    {"MXNET_GPU_MEM_POOL_PAGE_SIZE=65536", FL_OPTION_gpu_page, 65536},
    {"MXNET_GPU_POOL_PAGE_SIZE=32", FL_OPTION_gpu_page, 32},
    {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE=4194304", FL_OPTION_gpu_large_round, 4194304},
    {"MXNET_GPU_MEM_LARGE_ALLOC_ROUND_SIZE=1", FL_OPTION_gpu_large_round, 1},
    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=20", FL_OPTION_gpu_cutoff, 20},
    {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=34", FL_OPTION_gpu_cutoff, 34},
    {"MXNET_GPU_MEM_POOL_RESERVE=7", FL_OPTION_gpu_reserve, 7},
    {"FLAGS_allocator_strategy=auto_growth", FL_OPTION_gpu_strategy, AUTO_GROWTH},
    {"FLAGS_allocator_strategy=naive_best_fit", FL_OPTION_gpu_strategy, NAIVE_BEST_FIT},
    {"FLAGS_use_auto_growth_pinned_allocator=true", FL_OPTION_gpu_pinned_strategy, AUTO_GROWTH},
    {"FLAGS_use_auto_growth_pinned_allocator=0", FL_OPTION_gpu_pinned_strategy, NAIVE_BEST_FIT},
    {"FLAGS_fraction_of_gpu_memory_to_use=0.92", FL_OPTION_gpu_fraction, 920000},
    {"FLAGS_fraction_of_gpu_memory_to_use=0", FL_OPTION_gpu_fraction, 0},
    {"FLAGS_fraction_of_gpu_memory_to_use=1.5", FL_OPTION_gpu_fraction, 1000000},
    {"FLAGS_fraction_of_cuda_pinned_memory_to_use=.25", FL_OPTION_gpu_pinned_fraction, 250000},
    {"FLAGS_initial_gpu_memory_in_mb=500", FL_OPTION_gpu_initial, MIB(500)},
    {"FLAGS_reallocate_gpu_memory_in_mb=64", FL_OPTION_gpu_regrow, MIB(64)},
    {"FLAGS_auto_growth_chunk_size_in_mb=10", FL_OPTION_gpu_chunk, MIB(10)},
    {"FLAGS_gpu_memory_limit_mb=61440", FL_OPTION_gpu_limit, MIB(61440)},
    {"FLAGS_eager_delete_tensor_gb=0.0", FL_OPTION_gpu_gc_gb, 0},
    {"FLAGS_eager_delete_tensor_gb=1.5", FL_OPTION_gpu_gc_gb, 1500000},
    {"FLAGS_eager_delete_tensor_gb=0.0000000001", FL_OPTION_gpu_gc_gb, 1},
    {"FLAGS_eager_delete_tensor_gb=-1.0", FL_OPTION_gpu_gc_gb, FL_OPTION_OFF},
    {"FLAGS_memory_fraction_of_eager_deletion=0.75", FL_OPTION_gpu_gc_fraction, 750000},
    {"FLAGS_memory_fraction_of_eager_deletion=-2", FL_OPTION_gpu_gc_fraction, 0},
    {"FLAGS_memory_fraction_of_eager_deletion=3", FL_OPTION_gpu_gc_fraction, 1000000},
    {"FLAGS_fast_eager_deletion_mode=false", FL_OPTION_gpu_fast_gc, 0},
    {"FLAGS_fast_eager_deletion_mode=True", FL_OPTION_gpu_fast_gc, 1},
    {"START_STATISTIC_STEP=100", FL_OPTION_plan_start, 100},
    {"STABLE_STATISTIC_STEP=10", FL_OPTION_plan_stable, 10},
    {"MAX_STATISTIC_STEP=1", FL_OPTION_plan_max, 2},
    {"MAX_STATISTIC_STEP=100", FL_OPTION_plan_max, 100},
    {"ENABLE_MEMORY_OPTIMIZATION=0", FL_OPTION_steps, FL_STEPS_OFF},
};

CASE(each_name_means_this)
{
    for (size_t i = 0; i < sizeof meant / sizeof meant[0]; i++) {
        read_three("PATH=/bin", meant[i].entry, "HOME=/");
        if (o.value[meant[i].id] != meant[i].value) {
            fail_msg("%s: %llu", meant[i].entry, (unsigned long long)o.value[meant[i].id]);
        }
        assert_int_equal(o.origin[meant[i].id], FL_ORIGIN_ALIAS);
        assert_int_equal(o.nbad, 0);
        assert_string_equal(fake.said, "");
    }
}

CASE(what_says_no_says_nothing)
{
    static const char *const table[] = {"MXNET_USE_NAIVE_STORAGE_MANAGER=0",
                                        "ENABLE_MEMORY_OPTIMIZATION=1",
                                        "FLAGS_benchmark=1",
                                        "MXNET_GPU_MEM_POOL=Round",
                                        "MXNET_GPU_MEM_POOL_TYPES=Round",
                                        "MXNET_GPU_MEM_POOL_TYPE",
                                        "FLAGS_=1",
                                        "=1",
                                        "M=1",
                                        ""};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        read_three(table[i], NULL, NULL);
        for (int id = 0; id < FL_OPTION_COUNT; id++) {
            assert_int_equal(o.origin[id], FL_ORIGIN_DEFAULT);
        }
        assert_int_equal(o.nbad, 0);
    }
    fl_options_aliases(&o, NULL); /* AT_SECURE */
}

CASE(what_is_not_understood_has_one_line_and_the_default)
{
    static const struct {
        const char *entry;
        enum fl_option_id id;
        uint64_t preset;
    } table[] = {
        {"MXNET_GPU_MEM_POOL_TYPE=Best", FL_OPTION_gpu_strategy, 0},
        {"MXNET_GPU_MEM_POOL_TYPE=auto_growth", FL_OPTION_gpu_strategy, 0},
        {"MXNET_GPU_MEM_POOL_TYPE=", FL_OPTION_gpu_strategy, 0},
        {"FLAGS_allocator_strategy=thread_local", FL_OPTION_gpu_strategy, 0},
        {"FLAGS_allocator_strategy=round", FL_OPTION_gpu_strategy, 0},
        {"MXNET_USE_NAIVE_STORAGE_MANAGER=maybe", FL_OPTION_gpu_strategy, 0},
        {"MXNET_GPU_MEM_POOL_PAGE_SIZE=16", FL_OPTION_gpu_page, 4096},
        {"MXNET_GPU_MEM_POOL_PAGE_SIZE=4K", FL_OPTION_gpu_page, 4096},
        {"MXNET_GPU_MEM_POOL_ROUND_LINEAR_CUTOFF=19", FL_OPTION_gpu_cutoff, 24},
        {"MXNET_GPU_MEM_POOL_RESERVE=101", FL_OPTION_gpu_reserve, 5},
        {"FLAGS_initial_gpu_memory_in_mb=-1", FL_OPTION_gpu_initial, 0},
        {"FLAGS_gpu_memory_limit_mb=18446744073709551615", FL_OPTION_gpu_limit, 0},
        {"FLAGS_gpu_memory_limit_mb=1G", FL_OPTION_gpu_limit, 0},
        {"FLAGS_eager_delete_tensor_gb=-one", FL_OPTION_gpu_gc_gb, 0},
        {"FLAGS_eager_delete_tensor_gb=-", FL_OPTION_gpu_gc_gb, 0},
        {"FLAGS_eager_delete_tensor_gb=off", FL_OPTION_gpu_gc_gb, 0},
        {"FLAGS_eager_delete_tensor_gb=0.00000000000000000000001", FL_OPTION_gpu_gc_gb, 0},
        {"FLAGS_memory_fraction_of_eager_deletion=half", FL_OPTION_gpu_gc_fraction, 1000000},
        {"FLAGS_fast_eager_deletion_mode=2", FL_OPTION_gpu_fast_gc, 1},
        {"MAX_STATISTIC_STEP=many", FL_OPTION_plan_max, 4},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char line[128] = "faultless: ";
        strcat(strcat(line, table[i].entry), " is not understood; ignored\n");
        read_three(table[i].entry, NULL, NULL);
        assert_string_equal(fake.said, line);
        assert_int_equal(o.value[table[i].id], table[i].preset);
        assert_int_equal(o.origin[table[i].id], FL_ORIGIN_DEFAULT);
        assert_int_equal(o.nbad, 1);
    }
}

/* Whatever the order in which they stand. */
CASE(of_several_the_first_in_the_table_counts)
{
    static const struct {
        const char *wins, *loses;
        enum fl_option_id id;
        uint64_t value;
    } table[] = {
        {"FAULTLESS_GPU_STRATEGY=auto_growth", "MXNET_GPU_MEM_POOL_TYPE=Round",
         FL_OPTION_gpu_strategy, 5},
        {"FAULTLESS_GPU_STRATEGY=auto", "FLAGS_allocator_strategy=naive_best_fit",
         FL_OPTION_gpu_strategy, 0},
        {"MXNET_USE_NAIVE_STORAGE_MANAGER=1", "MXNET_GPU_MEM_POOL_TYPE=Round",
         FL_OPTION_gpu_strategy, UNPOOLED},
        {"MXNET_GPU_MEM_POOL_TYPE=Round", "MXNET_USE_NAIVE_STORAGE_MANAGER=0",
         FL_OPTION_gpu_strategy, ROUND},
        {"MXNET_GPU_MEM_POOL_TYPE=Naive", "FLAGS_allocator_strategy=auto_growth",
         FL_OPTION_gpu_strategy, NAIVE},
        {"MXNET_GPU_POOL_PAGE_SIZE=8192", "MXNET_GPU_MEM_POOL_PAGE_SIZE=65536", FL_OPTION_gpu_page,
         8192},
        {"FAULTLESS_GPU_LIMIT=1G", "FLAGS_gpu_memory_limit_mb=1", FL_OPTION_gpu_limit, MIB(1024)},
        {"FAULTLESS_GPU_CHUNK=1M", "FLAGS_auto_growth_chunk_size_in_mb=much", FL_OPTION_gpu_chunk,
         MIB(1)},
        {"FAULTLESS_PLAN_MAX=3", "MAX_STATISTIC_STEP=10", FL_OPTION_plan_max, 3},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        for (int turn = 0; turn < 2; turn++) {
            read_three(turn == 0 ? table[i].wins : table[i].loses,
                       turn == 0 ? table[i].loses : table[i].wins, NULL);
            if (o.value[table[i].id] != table[i].value || o.nbad != 0) {
                fail_msg("%s and %s: %llu", table[i].wins, table[i].loses,
                         (unsigned long long)o.value[table[i].id]);
            }
        }
    }
}

CASE(confirm_tells_whose_name_it_was)
{
    read_three("FLAGS_eager_delete_tensor_gb=-1", "MXNET_GPU_MEM_POOL_PAGE_SIZE=65536",
               "FLAGS_allocator_strategy=auto_growth");
    fl_options_confirm(&o);
    assert_says(fake.said, "faultless: FLAGS_eager_delete_tensor_gb=-1 (environment)\n");
    assert_says(fake.said, "faultless: MXNET_GPU_MEM_POOL_PAGE_SIZE=64K (environment)\n");
    assert_says(fake.said, "FAULTLESS_GPU_STRATEGY=auto_growth (environment, by another name)\n");
}

/* What has no name but others' is no option of ours, and is not said where it is not set. */
CASE(a_setting_of_others_has_no_variable_of_ours)
{
    read_three("FAULTLESS_GPU_RESERVE=7", NULL, NULL);
    assert_int_equal(o.value[FL_OPTION_gpu_reserve], 5);
    assert_int_equal(o.nbad, 1);
    assert_says(fake.said, "FAULTLESS_GPU_RESERVE is not an option; did you mean ");
    fake_install();
    fl_options_confirm(&o);
    assert_null(strstr(fake.said, "RESERVE"));
    assert_null(strstr(fake.said, "reserve"));
}

CASES_MAIN(.setup = fake_install)
