/* What options are said to be, what a mistake is told, and names of files. */
#include "cases.h"
#include "unit/options_fixture.h"

/* A handler cannot be had for it, or returns to the fault again and again. */
CASE(signals_that_are_not_for_users_are_refused)
{
    static const struct {
        const char *entry;
        int number; /* -1: refused */
    } table[] = {
        {"FAULTLESS_STATS_SIGNAL=10", 10},      {"FAULTLESS_STATS_SIGNAL=USR1", 10},
        {"FAULTLESS_STATS_SIGNAL=SIGUSR2", 12}, {"FAULTLESS_STATS_SIGNAL=0", 0},
        {"FAULTLESS_STATS_SIGNAL=64", 64},      {"FAULTLESS_STATS_SIGNAL=9", -1},
        {"FAULTLESS_STATS_SIGNAL=KILL", -1},    {"FAULTLESS_STATS_SIGNAL=19", -1},
        {"FAULTLESS_STATS_SIGNAL=SEGV", -1},    {"FAULTLESS_STATS_SIGNAL=32", -1},
        {"FAULTLESS_STATS_SIGNAL=65", -1},      {"FAULTLESS_STATS_SIGNAL=usr1", -1},
        {"FAULTLESS_STATS_SIGNAL=SIG", -1},     {"FAULTLESS_STATS_SIGNAL=", -1},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        READ(table[i].entry);
        assert_int_equal(o.nbad, table[i].number < 0);
        assert_int_equal(o.value[FL_OPTION_stats_signal],
                         table[i].number < 0 ? 0 : table[i].number);
    }
}

CASE(confirm_says_what_automatic_comes_to)
{
    READ("FAULTLESS_HOST_SHARE=0", "FAULTLESS_EAGER_MAX=0");
    o.automatic[FL_OPTION_limit] = 4ull << 30;
    o.automatic[FL_OPTION_host_share] = 8;
    o.automatic[FL_OPTION_threshold] = 1; /* has a value of its own */
    fl_options_confirm(&o);
    assert_says(fake.said, "FAULTLESS_LIMIT=4G (automatic)\n");
    assert_says(fake.said, "FAULTLESS_HOST_SHARE=8 (automatic, environment)\n");
    assert_says(fake.said, "FAULTLESS_EAGER_MAX=automatic (automatic, environment)\n");
    assert_says(fake.said, "FAULTLESS_THRESHOLD=64K (default)\n");
}

CASE(names_of_files_take_pid_host_and_rank)
{
    char rank[] = "OMPI_COMM_WORLD_RANK=3", worse[] = "SLURM_PROCID=4",
         *env[] = {worse, rank, NULL};
    struct fl_names n;
    char out[64];
    fl_names_read(&n, env);
    assert_string_equal(n.rank, "3");
    strcpy(n.host, "node7");
    assert_true(fl_names_expand(&n, "a-%p-%h-%r-%%-%x-%", 42, out, sizeof out));
    assert_string_equal(out, "a-42-node7-3-%%-%x-%");
    assert_false(fl_names_expand(&n, "%h%h%h", 42, out, 16));
    strcpy(rank, "RANK=../../etc/x");
    fl_names_read(&n, env);
    assert_string_equal(n.rank, "4"); /* no path comes from the environment */
    fl_names_read(&n, NULL);
    assert_string_equal(n.rank, "0");
    assert_int_not_equal(n.host[0], '\0');
}

CASE(a_text_is_expanded_in_place)
{
    READ("FAULTLESS_TRACE=/tmp/t-%r", "FAULTLESS_TIMELINE=/tmp/t");
    strcpy(o.names.rank, "5");
    fl_options_expand(&o, FL_OPTION_trace, 42);
    fl_options_expand(&o, FL_OPTION_timeline, 42);
    fl_options_expand(&o, FL_OPTION_gpu_driver, 42);
    assert_string_equal(o.text[FL_OPTION_trace], "/tmp/t-5");
    assert_string_equal(o.text[FL_OPTION_timeline], "/tmp/t");
    assert_null(o.text[FL_OPTION_gpu_driver]);
}

CASE(confirm_names_value_and_origin_of_each)
{
    READ("FAULTLESS_THRESHOLD=2M", "FAULTLESS_DISABLE=thp,cache", "FAULTLESS_STATS=./f",
         "FAULTLESS_HOST_SHARE=16");
    fl_options_confirm(&o);
    assert_string_equal(
        fake.said,
        "faultless: FAULTLESS_THRESHOLD=2M (environment)\n"
        "faultless: FAULTLESS_DECAY_MS=10000 (default)\n"
        "faultless: FAULTLESS_TRIM=auto (default)\n"
        "faultless: FAULTLESS_EAGER_MAX=on touch (automatic)\n"
        "faultless: FAULTLESS_LIMIT=automatic (automatic)\n"
        "faultless: FAULTLESS_HOST_SHARE=16 (environment)\n"
        "faultless: FAULTLESS_STOCK=a 64th of the peak (automatic)\n"
        "faultless: FAULTLESS_SHARDS=as threads need them (automatic)\n"
        "faultless: FAULTLESS_HUGETLB=off (default)\n"
        "faultless: FAULTLESS_HUGETLB_FROM=1G (default)\n"
        "faultless: FAULTLESS_HUGETLB_FORK=copy (default)\n"
        "faultless: FAULTLESS_NUMA=auto (default)\n"
        "faultless: FAULTLESS_THP=auto (default)\n"
        "faultless: FAULTLESS_STEPS=declared (default)\n"
        "faultless: FAULTLESS_GUARD=off (default)\n"
        "faultless: FAULTLESS_QUARANTINE=0 (default)\n"
        "faultless: FAULTLESS_FILL=off (default)\n"
        "faultless: FAULTLESS_CHECK_FREE=0 (default)\n"
        "faultless: FAULTLESS_PLAN_START=0 (default)\n"
        "faultless: FAULTLESS_PLAN_MAX=4 (default)\n"
        "faultless: FAULTLESS_STATS_SIGNAL=0 (default)\n"
        "faultless: FAULTLESS_TRACE= (default)\n"
        "faultless: FAULTLESS_TIMELINE= (default)\n"
        "faultless: FAULTLESS_PROFILE= (default)\n"
        "faultless: FAULTLESS_PROFILE_EVERY=8M (default)\n"
        "faultless: FAULTLESS_GPU_DRIVER= (default)\n"
        "faultless: FAULTLESS_DISABLE=thp,cache (environment)\n"
        "faultless: FAULTLESS_LOG=warn (default)\n"
        "faultless: FAULTLESS_STATS=./f (environment)\n"
        "faultless: FAULTLESS_CONFIRM=0 (default)\n"
        "faultless: FAULTLESS_STRICT=0 (default)\n"
        "faultless: FAULTLESS_LIB= (default)\n"
        "faultless: FAULTLESS_GPU_STRATEGY=auto (default)\n"
        "faultless: FAULTLESS_GPU_CHUNK=8 MiB, and 2 MiB for small requests (automatic)\n"
        "faultless: FAULTLESS_GPU_LIMIT=0 (default)\n"
        "faultless: FAULTLESS_GPU_SHARE=by ranks and devices (automatic)\n"
        "faultless: FAULTLESS_GPU_FORK=none (default)\n");
}

CASE(a_value_longer_than_the_line_is_cut)
{
    char entry[2000] = "FAULTLESS_LIMIT=";
    memset(entry + strlen(entry), 'x', sizeof entry - strlen(entry) - 1);
    entry[sizeof entry - 1] = '\0';
    READ(entry);
    assert_int_equal(o.nbad, 1);
    assert_in_range(strlen(fake.said), 100, 512);
    assert_ptr_equal(strchr(fake.said, '\n'), fake.said + strlen(fake.said) - 1);
}

CASES_MAIN(.setup = fake_install)
