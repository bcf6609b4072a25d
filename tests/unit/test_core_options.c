/* The environment's FAULTLESS_ names: values, origins, and the one line that each mistake gets. */
#include "cases.h"
#include "unit/options_fixture.h"

#define NO_SIZE "is not understood (bytes, such as 65536, 64K, 512M or 8G)"
#define NUMA_WORDS "auto, off, first-touch, local, interleave[:nodes], bind:nodes or balance"
#define DISABLE_WORDS                                                                              \
    "commas between any of all, thp, populate, worker, cache, stock, move, uffd, uring, numa or "  \
    "plan"

CASE(without_environment_all_is_default)
{
    fl_options_read(&o, NULL);
    assert_int_equal(o.value[FL_OPTION_threshold], 65536);
    assert_int_equal(o.value[FL_OPTION_decay_ms], 10000);
    assert_int_equal(o.value[FL_OPTION_log], FL_LOG_WARN);
    assert_int_equal(o.value[FL_OPTION_numa], FL_NUMA_AUTO);
    assert_int_equal(o.nbad, 0);
    for (int i = 0; i < FL_OPTION_COUNT; i++) {
        assert_int_equal(o.origin[i], FL_ORIGIN_DEFAULT);
        assert_null(o.text[i]);
    }
    assert_string_equal(fake.said, "");
}

CASE(each_kind_takes_its_good_values)
{
    READ("PATH=/bin", "FAULTLESS_THRESHOLD=1M", "FAULTLESS_DECAY_MS=0", "FAULTLESS_EAGER_MAX=64g",
         "FAULTLESS_DISABLE=thp,cache", "FAULTLESS_LOG=info", "FAULTLESS_STATS=/tmp/s",
         "FAULTLESS_CONFIRM=yes", "FAULTLESS_LIB=x.so", "FAULTLESS_HOST_SHARE=8",
         "FAULTLESS_STOCK=512M", "FAULTLESS_NUMA=first-touch");
    assert_int_equal(o.value[FL_OPTION_threshold], 1 << 20);
    assert_int_equal(o.value[FL_OPTION_decay_ms], 0);
    assert_true(o.value[FL_OPTION_eager_max] == 64ull << 30);
    assert_int_equal(o.value[FL_OPTION_disable], FL_DISABLE_THP | FL_DISABLE_CACHE);
    assert_int_equal(o.value[FL_OPTION_log], FL_LOG_INFO);
    assert_string_equal(o.text[FL_OPTION_stats], "/tmp/s");
    assert_string_equal(o.text[FL_OPTION_lib], "x.so");
    assert_int_equal(o.value[FL_OPTION_confirm], 1);
    assert_int_equal(o.value[FL_OPTION_host_share], 8);
    assert_int_equal(o.value[FL_OPTION_stock], 512 << 20);
    assert_int_equal(o.value[FL_OPTION_numa], FL_NUMA_FIRST_TOUCH);
    assert_int_equal(o.origin[FL_OPTION_threshold], FL_ORIGIN_ENVIRONMENT);
    assert_int_equal(o.origin[FL_OPTION_limit], FL_ORIGIN_DEFAULT);
    assert_int_equal(o.nbad, 0);
    assert_string_equal(fake.said, "");
}

CASE(nodes_stand_behind_a_colon)
{
    static const struct {
        const char *entry, *nodes; /* NULL: none; "!": it is refused */
        enum fl_numa mode;
    } table[] = {
        {"FAULTLESS_NUMA=local", NULL, FL_NUMA_LOCAL},
        {"FAULTLESS_NUMA=balance", NULL, FL_NUMA_BALANCE},
        {"FAULTLESS_NUMA=first-touch", NULL, FL_NUMA_FIRST_TOUCH},
        {"FAULTLESS_NUMA=interleave", NULL, FL_NUMA_INTERLEAVE},
        {"FAULTLESS_NUMA=interleave:all", "all", FL_NUMA_INTERLEAVE},
        {"FAULTLESS_NUMA=interleave:0,2-3", "0,2-3", FL_NUMA_INTERLEAVE},
        {"FAULTLESS_NUMA=bind:1", "1", FL_NUMA_BIND},
        {"FAULTLESS_NUMA=bind:1023", "1023", FL_NUMA_BIND},
        {"FAULTLESS_NUMA=bind:all", "all", FL_NUMA_BIND},
        {"FAULTLESS_NUMA=bind", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:1024", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:1,", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:1\n", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:one", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:0:1", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=interleave:", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=interleave:3-1", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=local:0", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=auto:", "!", FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=:0", "!", FL_NUMA_AUTO},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        bool bad = table[i].nodes != NULL && table[i].nodes[0] == '!';
        READ(table[i].entry);
        assert_int_equal(o.nbad, bad);
        assert_int_equal(o.value[FL_OPTION_numa], table[i].mode);
        if (bad || table[i].nodes == NULL) {
            assert_null(o.text[FL_OPTION_numa]);
        } else {
            assert_string_equal(o.text[FL_OPTION_numa], table[i].nodes);
        }
    }
    READ("FAULTLESS_NUMA=bind:0-1");
    fl_options_confirm(&o);
    assert_says(fake.said, "faultless: FAULTLESS_NUMA=bind:0-1 (environment)\n");
}

CASE(bad_values_get_one_exact_line_and_the_default)
{
    static const struct {
        const char *entry, *is;
        enum fl_option_id id;
        uint64_t kept;
    } table[] = {
        {"FAULTLESS_THRESHOLD=4095", "is out of range (4K to 1T); using 64K", FL_OPTION_threshold,
         65536},
        {"FAULTLESS_THRESHOLD=64KBs", NO_SIZE "; using 64K", FL_OPTION_threshold, 65536},
        {"FAULTLESS_THRESHOLD=", NO_SIZE "; using 64K", FL_OPTION_threshold, 65536},
        {"FAULTLESS_LIMIT=99999999999999999999",
         "is out of range (0 to 64T); using the default, automatic", FL_OPTION_limit, 0},
        {"FAULTLESS_DECAY_MS=10s",
         "is not understood (milliseconds, such as 10000, or never); using 10000",
         FL_OPTION_decay_ms, 10000},
        {"FAULTLESS_DECAY_MS=3600001", "is out of range (0 to 3600000); using 10000",
         FL_OPTION_decay_ms, 10000},
        {"FAULTLESS_LOG=loud", "is not understood (none, warn or info); using warn", FL_OPTION_log,
         FL_LOG_WARN},
        {"FAULTLESS_CONFIRM=maybe",
         "is not understood (1, on, yes or true; 0, off, no or false); using 0", FL_OPTION_confirm,
         0},
        {"FAULTLESS_DISABLE=thp,turbo", "is not understood (" DISABLE_WORDS "); using none",
         FL_OPTION_disable, 0},
        {"FAULTLESS_HOST_SHARE=4097", "is out of range (0 to 4096); using the default, automatic",
         FL_OPTION_host_share, 0},
        {"FAULTLESS_HOST_SHARE=1K",
         "is not understood (a whole number of processes); using the default, automatic",
         FL_OPTION_host_share, 0},
        {"FAULTLESS_TIMELINE=1",
         "is not understood (the name of a file with a / or a dot in it); using none",
         FL_OPTION_timeline, 0},
        {"FAULTLESS_STOCK=some", NO_SIZE "; using the default, a 64th of the peak", FL_OPTION_stock,
         0},
        {"FAULTLESS_STOCK=65T", "is out of range (0 to 64T); using the default, a 64th of the peak",
         FL_OPTION_stock, 0},
        {"FAULTLESS_NUMA=first_touch", "is not understood (" NUMA_WORDS "); using auto",
         FL_OPTION_numa, FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=", "is not understood (" NUMA_WORDS "); using auto", FL_OPTION_numa,
         FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=bind:0-", "is not understood (" NUMA_WORDS "); using auto", FL_OPTION_numa,
         FL_NUMA_AUTO},
        {"FAULTLESS_DISABLE=th", "is not understood (" DISABLE_WORDS "); using none",
         FL_OPTION_disable, 0},
        {"FAULTLESS_STATS_SIGNAL=9",
         "is not understood (a signal that programs may catch, such as USR1 or 10); using 0",
         FL_OPTION_stats_signal, 0},
        {"FAULTLESS_FILL=ones", "is not understood (off, zero, junk or both); using off",
         FL_OPTION_fill, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char line[256];
        snprintf(line, sizeof line, "faultless: %s %s\n", table[i].entry, table[i].is);
        READ(table[i].entry);
        assert_string_equal(fake.said, line);
        assert_true(o.value[table[i].id] == table[i].kept);
        assert_int_equal(o.origin[table[i].id], FL_ORIGIN_DEFAULT);
        assert_int_equal(o.nbad, 1);
    }
}

CASE(unknown_names_are_told_the_nearest)
{
    READ("FAULTLESS_TRESHOLD=1M");
    assert_string_equal(
        fake.said,
        "faultless: FAULTLESS_TRESHOLD is not an option; did you mean FAULTLESS_THRESHOLD?\n");
    READ("FAULTLESS_DECAY=1");
    assert_string_equal(
        fake.said,
        "faultless: FAULTLESS_DECAY is not an option; did you mean FAULTLESS_DECAY_MS?\n");
    READ("FAULTLESS_threshold=1M"); /* names are upper case */
    assert_int_equal(o.nbad, 1);
    assert_int_equal(o.value[FL_OPTION_threshold], 65536);
}

CASE(names_without_a_value_are_survived)
{
    READ("FAULTLESS_LIMIT", "FAULTLESS_", "FAULTLESS_=1", "FAULTLESS");
    assert_int_equal(o.nbad, 3);
    assert_int_equal(o.value[FL_OPTION_limit], 0);
}

CASE(log_none_silences_the_lines_but_not_the_count)
{
    READ("FAULTLESS_LIMIT=x", "FAULTLESS_NOPE=1", "FAULTLESS_LOG=none");
    assert_int_equal(o.nbad, 2);
    assert_string_equal(fake.said, "");
}

CASE(every_mistake_counts_for_strict)
{
    READ("FAULTLESS_STRICT=1", "FAULTLESS_LIMIT=x", "FAULTLESS_NOPE=1", "FAULTLESS_LOG=info",
         "FAULTLESS_THRESHOLD=1");
    assert_int_equal(o.value[FL_OPTION_strict], 1);
    assert_int_equal(o.nbad, 3);
    assert_int_equal(o.value[FL_OPTION_log], FL_LOG_INFO);
}

/* Else a file of that name would lie wherever the process is. */
CASE(a_word_that_is_no_form_of_statistics_is_refused)
{
    static const char *const good[] = {"1",      "off",    "table",  "json",   "summary",
                                       "stderr", "./json", "a.json", "/tmp/f", "s-%p"};
    char entry[64], *env[] = {entry, NULL};

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(entry, sizeof entry, "FAULTLESS_STATS=%s", good[i]);
        fl_options_read(&o, env);
        assert_string_equal(o.text[FL_OPTION_stats], good[i]);
        assert_int_equal(o.nbad, 0);
    }
    READ("FAULTLESS_STATS=jsn");
    assert_null(o.text[FL_OPTION_stats]);
    assert_int_equal(o.nbad, 1);
    READ("FAULTLESS_STATS="); /* an empty text is none */
    assert_null(o.text[FL_OPTION_stats]);
    assert_int_equal(o.nbad, 0);
}

CASE(texts_outlive_the_environment)
{
    char entry[] = "FAULTLESS_STATS=/tmp/stats", *env[] = {entry, NULL};
    fl_options_read(&o, env);
    memset(entry, 'x', sizeof entry - 1); /* what redis-server's title does */
    assert_string_equal(o.text[FL_OPTION_stats], "/tmp/stats");
}

CASE(a_text_longer_than_any_path_is_refused)
{
    static char entry[FL_OPTION_TEXTS + 32] = "FAULTLESS_STATS=";
    char *env[] = {entry, NULL};
    memset(entry + strlen(entry), '/', FL_OPTION_TEXTS);
    fl_options_read(&o, env);
    assert_null(o.text[FL_OPTION_stats]);
    assert_int_equal(o.nbad, 1);
}

CASE(each_value_has_its_number)
{
    static const struct {
        const char *entry;
        enum fl_option_id id;
        uint64_t value;
    } table[] = {
        /* bounds are inclusive */
        {"FAULTLESS_THRESHOLD=4096", FL_OPTION_threshold, 4096},
        {"FAULTLESS_THRESHOLD=1T", FL_OPTION_threshold, (uint64_t)1 << 40},
        {"FAULTLESS_DECAY_MS=3600000", FL_OPTION_decay_ms, 3600000},
        {"FAULTLESS_DECAY_MS=never", FL_OPTION_decay_ms, 0},
        {"FAULTLESS_DECAY_MS=-1", FL_OPTION_decay_ms, 0},
        {"FAULTLESS_LIMIT=8GB", FL_OPTION_limit, (uint64_t)8 << 30},
        {"FAULTLESS_THRESHOLD=128KiB", FL_OPTION_threshold, 128 << 10},
        {"FAULTLESS_STOCK=512mb", FL_OPTION_stock, 512 << 20},
        {"FAULTLESS_LIMIT=64T", FL_OPTION_limit, (uint64_t)1 << 46},
        {"FAULTLESS_STOCK=64T", FL_OPTION_stock, (uint64_t)1 << 46},
        {"FAULTLESS_STOCK=0", FL_OPTION_stock, 0},
        {"FAULTLESS_HOST_SHARE=4096", FL_OPTION_host_share, 4096},
        {"FAULTLESS_HOST_SHARE=0", FL_OPTION_host_share, 0},
        /* words */
        {"FAULTLESS_NUMA=auto", FL_OPTION_numa, FL_NUMA_AUTO},
        {"FAULTLESS_NUMA=off", FL_OPTION_numa, FL_NUMA_OFF},
        {"FAULTLESS_THP=collapse", FL_OPTION_thp, FL_THP_COLLAPSE},
        {"FAULTLESS_THP=own", FL_OPTION_thp, FL_THP_OWN},
        {"FAULTLESS_STEPS=declared", FL_OPTION_steps, FL_STEPS_DECLARED},
        {"FAULTLESS_STEPS=off", FL_OPTION_steps, FL_STEPS_OFF},
        {"FAULTLESS_GPU_STRATEGY=naive", FL_OPTION_gpu_strategy, 1},
        {"FAULTLESS_GPU_STRATEGY=round", FL_OPTION_gpu_strategy, 2},
        {"FAULTLESS_GPU_STRATEGY=unpooled", FL_OPTION_gpu_strategy, 3},
        {"FAULTLESS_GPU_STRATEGY=naive_best_fit", FL_OPTION_gpu_strategy, 4},
        {"FAULTLESS_GPU_STRATEGY=auto_growth", FL_OPTION_gpu_strategy, 5},
        {"FAULTLESS_GPU_FORK=wipe", FL_OPTION_gpu_fork, 1},
        {"FAULTLESS_GPU_FORK=copy", FL_OPTION_gpu_fork, 2},
        {"FAULTLESS_TRIM=auto", FL_OPTION_trim, FL_TRIM_AUTO},
        {"FAULTLESS_TRIM=give", FL_OPTION_trim, FL_TRIM_GIVE},
        {"FAULTLESS_TRIM=ignore", FL_OPTION_trim, FL_TRIM_IGNORE},
        {"FAULTLESS_FILL=off", FL_OPTION_fill, 0},
        {"FAULTLESS_FILL=zero", FL_OPTION_fill, FL_FILLER_ZERO},
        {"FAULTLESS_FILL=junk", FL_OPTION_fill, FL_FILLER_JUNK},
        {"FAULTLESS_FILL=both", FL_OPTION_fill, FL_FILLER_ZERO | FL_FILLER_JUNK},
        /* of disable, each has its bit, and they combine */
        {"FAULTLESS_DISABLE=all", FL_OPTION_disable, FL_DISABLE_ALL},
        {"FAULTLESS_DISABLE=thp", FL_OPTION_disable, FL_DISABLE_THP},
        {"FAULTLESS_DISABLE=populate", FL_OPTION_disable, FL_DISABLE_POPULATE},
        {"FAULTLESS_DISABLE=worker", FL_OPTION_disable, FL_DISABLE_WORKER},
        {"FAULTLESS_DISABLE=cache", FL_OPTION_disable, FL_DISABLE_CACHE},
        {"FAULTLESS_DISABLE=stock", FL_OPTION_disable, FL_DISABLE_STOCK},
        {"FAULTLESS_DISABLE=move", FL_OPTION_disable, FL_DISABLE_MOVE},
        {"FAULTLESS_DISABLE=uffd", FL_OPTION_disable, FL_DISABLE_UFFD},
        {"FAULTLESS_DISABLE=uring", FL_OPTION_disable, FL_DISABLE_URING},
        {"FAULTLESS_DISABLE=numa", FL_OPTION_disable, FL_DISABLE_NUMA},
        {"FAULTLESS_DISABLE=plan", FL_OPTION_disable, FL_DISABLE_PLAN},
        {"FAULTLESS_DISABLE=all,thp,populate,worker,cache,stock,move,uffd,uring,numa,plan",
         FL_OPTION_disable, (1 << 11) - 1},
        {"FAULTLESS_DISABLE=uffd,stock", FL_OPTION_disable, FL_DISABLE_STOCK | FL_DISABLE_UFFD},
        {"FAULTLESS_DISABLE=,worker,,", FL_OPTION_disable, FL_DISABLE_WORKER},
        {"FAULTLESS_DISABLE=", FL_OPTION_disable, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        READ(table[i].entry);
        if (o.value[table[i].id] != table[i].value || o.nbad != 0) {
            fail_msg("%s: %#llx", table[i].entry, (unsigned long long)o.value[table[i].id]);
        }
    }
}

CASE(one_in_so_many_may_be_a_word)
{
    static const struct {
        const char *entry, *said;
        uint64_t value;
    } table[] = {
        {"FAULTLESS_GUARD=off", "off", 0}, {"FAULTLESS_GUARD=0", "off", 0},
        {"FAULTLESS_GUARD=all", "all", 1}, {"FAULTLESS_GUARD=1", "all", 1},
        {"FAULTLESS_GUARD=64", "64", 64},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char want[64];
        READ(table[i].entry);
        assert_true(o.value[FL_OPTION_guard] == table[i].value);
        fl_options_confirm(&o);
        snprintf(want, sizeof want, "FAULTLESS_GUARD=%s (environment)\n", table[i].said);
        assert_says(fake.said, want);
    }
    READ("FAULTLESS_GUARD=some", "FAULTLESS_GUARD=", "FAULTLESS_GUARD=-1", "FAULTLESS_GUARD=2G");
    assert_int_equal(o.nbad, 4);
    assert_true(o.value[FL_OPTION_guard] == 0);
}

CASE(names_are_found_however_they_are_written)
{
    static const char *const good[] = {"decay_ms", "DECAY_MS", "decay-ms", "FAULTLESS_DECAY_MS"};
    static const char *const wrong[] = {
        "",          "decay",      "decay_ms ",   "decay_ms=1",
        "DECAY_MSS", "FAULTLESS_", "gpu_reserve", "faultless_limit"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(fl_option_find(good[i]), FL_OPTION_decay_ms);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(fl_option_find(wrong[i]), -ENOENT);
    }
}

CASE(one_is_set_as_the_environment_would)
{
    READ("FAULTLESS_STATS=/tmp/first", "FAULTLESS_LIMIT=2G");
    assert_int_equal(fl_option_set_in(&o, FL_OPTION_limit, "3G"), 0);
    assert_true(o.value[FL_OPTION_limit] == 3ull << 30);
    assert_int_equal(fl_option_set_in(&o, FL_OPTION_limit, "3X"), -EINVAL);
    assert_int_equal(fl_option_set_in(&o, FL_OPTION_decay_ms, "3600001"), -ERANGE);
    assert_int_equal(fl_option_set_in(&o, FL_OPTION_stats, "jsn"), -EINVAL);
    assert_true(o.value[FL_OPTION_limit] == 3ull << 30);
    assert_int_equal(o.value[FL_OPTION_decay_ms], 10000);
    assert_string_equal(o.text[FL_OPTION_stats], "/tmp/first");
    assert_int_equal(fl_option_set_in(&o, FL_OPTION_limit, NULL), 0);
    assert_int_equal(o.value[FL_OPTION_limit], 0);
    assert_int_equal(o.origin[FL_OPTION_limit], FL_ORIGIN_DEFAULT);
    for (int i = 0; i < 1000; i++) { /* texts that were there once take no more room */
        assert_int_equal(fl_option_set_in(&o, FL_OPTION_stats, i % 2 == 0 ? "table" : "/a"), 0);
    }
    assert_string_equal(o.text[FL_OPTION_stats], "/a");
    int rc = 0;
    for (int i = 0; rc == 0; i++) { /* others do */
        char name[64];
        snprintf(name, sizeof name, "/tmp/%d", i);
        rc = fl_option_set_in(&o, FL_OPTION_stats, name);
        assert_in_range(i, 0, FL_OPTION_TEXTS);
    }
    assert_int_equal(rc, -EINVAL);
    assert_string_not_equal(o.text[FL_OPTION_stats], "/a");
    assert_int_equal(o.nbad, 0);
}

CASES_MAIN(.setup = fake_install)
