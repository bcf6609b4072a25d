/* The options, as a person sees them: lines on stderr, exit statuses, what is switched off. */
#include "run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const struct fl_run *with(const char *a, const char *b)
{
    const char *const env[] = {a, b, NULL};

    return fl_preload_run(FL_ARGV("victim_names", "f_malloc"), env);
}

static void says(const char *entry, const char *line)
{
    const struct fl_run *r = with(entry, NULL);

    assert_string_equal(r->err, line);
    assert_int_equal(r->exit_status, 0);
    assert_int_equal(fl_run_stat(r, "requests"), 1); /* the default serves */
}

static void a_wrong_value_has_one_line_and_the_default(void **state)
{
    (void)state;
    says("FAULTLESS_THRESHOLD=much",
         "faultless: FAULTLESS_THRESHOLD=much is not understood (bytes); using 64K\n");
    says("FAULTLESS_THRESHOLD=5T",
         "faultless: FAULTLESS_THRESHOLD=5T is out of range (4K to 1T); using 64K\n");
    says("FAULTLESS_DECAY_MS=-1",
         "faultless: FAULTLESS_DECAY_MS=-1 is not understood (ms); using 10000\n");
    says("FAULTLESS_DISABLE=worker,sleep",
         "faultless: FAULTLESS_DISABLE=worker,sleep is not understood (words); using none\n");
    says("FAULTLESS_LOG=loud",
         "faultless: FAULTLESS_LOG=loud is not understood (level); using warn\n");
    says("FAULTLESS_CONFIRM=perhaps",
         "faultless: FAULTLESS_CONFIRM=perhaps is not understood (0/1); using 0\n");
}

static void an_unknown_name_has_one_line_with_the_nearest(void **state)
{
    (void)state;
    says("FAULTLESS_TRESHOLD=1M",
         "faultless: FAULTLESS_TRESHOLD is not an option; did you mean FAULTLESS_THRESHOLD?\n");
    says("FAULTLESS_DECAY=5",
         "faultless: FAULTLESS_DECAY is not an option; did you mean FAULTLESS_DECAY_MS?\n");
}

static void strict_ends_the_process(void **state)
{
    (void)state;
    const struct fl_run *r = with("FAULTLESS_STRICT=1", "FAULTLESS_THRESHOLD=much");
    assert_int_equal(r->exit_status, 1);
    assert_int_equal(fl_run_lines(r->err), 1);
    r = with("FAULTLESS_TRESHOLD=1M", "FAULTLESS_STRICT=1");
    assert_int_equal(r->exit_status, 1);
    assert_int_equal(fl_run_lines(r->err), 1);
    fl_run_assert_active(with("FAULTLESS_STRICT=1", "FAULTLESS_THRESHOLD=1M"));
}

static void confirm_prints_each_option_once(void **state)
{
    static const char *const lines[] = {"faultless: FAULTLESS_THRESHOLD=1M (environment)\n",
                                        "faultless: FAULTLESS_DECAY_MS=10000 (default)\n",
                                        "faultless: FAULTLESS_CONFIRM=1 (environment)\n",
                                        "faultless: FAULTLESS_LOG=warn (default)\n",
                                        "faultless: FAULTLESS_STRICT=0 (default)\n",
                                        "faultless: FAULTLESS_STATS=/tmp/fl-preload-"};
    size_t options = 0;
    (void)state;
    const struct fl_run *r = with("FAULTLESS_CONFIRM=1", "FAULTLESS_THRESHOLD=1M");
    assert_int_equal(r->exit_status, 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(r->err, lines[i]));
    }
    FILE *table = fopen(FL_SOURCE_DIR "/src/core/options.def", "r");
    assert_non_null(table);
    for (char line[512]; fgets(line, sizeof line, table) != NULL;) {
        options += strncmp(line, "X(", 2) == 0;
    }
    fclose(table);
    assert_int_equal(fl_run_lines(r->err), options);
}

static void disable_all_passes_everything_through(void **state)
{
    (void)state;
    const struct fl_run *r = with("FAULTLESS_DISABLE=all", NULL);
    fl_run_assert_clean(r);
    assert_int_equal(fl_run_stat(r, "active"), 0);
    assert_int_equal(fl_run_stat(r, "requests"), 0);
}

static void each_word_of_disable_is_taken(void **state)
{
    static const char *const words[] = {
        "thp",  "populate", "worker", "cache", "move",
        "uffd", "uring",    "numa",   "stock", "thp,populate,worker,cache"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char entry[128];
        snprintf(entry, sizeof entry, "FAULTLESS_DISABLE=%s", words[i]);
        print_message("           %s\n", words[i]);
        fl_run_assert_active(with(entry, NULL));
    }
}

static void log_info_says_what_was_chosen(void **state)
{
    (void)state;
    const struct fl_run *r = with("FAULTLESS_LOG=info", NULL);
    assert_int_equal(fl_run_lines(r->err), 2);
    assert_non_null(strstr(r->err, "faultless: active: window "));
    assert_non_null(strstr(r->err, "next allocator glibc\n"));
    assert_non_null(strstr(r->err, "faultless: pages "));
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=move");
    assert_non_null(strstr(r->err, "faultless: pages move by mremap: FAULTLESS_DISABLE\n"));
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=uffd");
    assert_non_null(strstr(r->err, "faultless: pages do not move: FAULTLESS_DISABLE\n"));
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=all");
    assert_string_equal(r->err, "faultless: inactive: every request goes to the next allocator\n");
    assert_string_equal(with("FAULTLESS_LOG=none", NULL)->err, "");
}

static void stats_go_to_stderr_as_a_table(void **state)
{
    static const char *const entries[] = {"FAULTLESS_STATS=1", "FAULTLESS_STATS=stderr"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = with(entries[i], NULL);
        assert_int_equal(r->exit_status, 0);
        assert_non_null(strstr(r->err, "faultless: active 1 "));
        assert_non_null(strstr(r->err, "faultless: requests 1 "));
        assert_string_equal(r->stats, "");
    }
}

static void stats_append_a_line_a_process(void **state)
{
    (void)state;
    const struct fl_run *r = with(NULL, NULL);
    assert_int_equal(fl_run_lines(r->stats), 1);
    assert_int_equal(strncmp(r->stats, "{\"pid\": ", 8), 0);
    assert_non_null(strstr(r->stats, "\"program\": \"victim_names\""));
    r = with("FAULTLESS_STATS=/no/such/folder/file", NULL);
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: the file of FAULTLESS_STATS cannot be written\n");
}

static void the_threshold_is_where_it_is_set(void **state)
{
    (void)state;
    assert_int_equal(fl_run_stat(with("FAULTLESS_THRESHOLD=4M", NULL), "requests"), 0);
    assert_int_equal(fl_run_stat(with("FAULTLESS_THRESHOLD=3M", NULL), "requests"), 1);
}

/* A process without large requests is left alone. */
static void small_requests_cost_nothing_of_ours(void **state)
{
    static const char *const counts[] = {"0", "3000"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        unsigned long threads, maps, own, plain_threads, plain_maps, plain_own;
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_true", counts[i]), NULL);
        const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_true", counts[i]));
        fl_run_assert_clean(r);
        assert_int_equal(fl_run_stat(r, "requests"), 0);
        assert_int_equal(fl_run_stat(r, "populate_bytes"), 0);
        assert_int_equal(fl_run_stat(r, "populated_peak_bytes"), 0);
        assert_int_equal(sscanf(r->out, "threads %lu maps %lu own %lu", &threads, &maps, &own), 3);
        assert_int_equal(sscanf(plain->out, "threads %lu maps %lu own %lu", &plain_threads,
                                &plain_maps, &plain_own),
                         3);
        print_message("           maps %lu, plain %lu; own memory %lu KiB, plain %lu\n", maps,
                      plain_maps, own, plain_own);
        assert_int_equal(threads, 1);
        assert_true(maps <= plain_maps + 16); /* ten of them are our library and libdl's kin */
        /* What of the library's file is mapped is all processes'; how much is by the page cache. */
        assert_true(own <= plain_own + 256);
    }
    fl_run_assert_clean(fl_preload_run(FL_ARGV("/bin/true"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_value_has_one_line_and_the_default),
        cmocka_unit_test(an_unknown_name_has_one_line_with_the_nearest),
        cmocka_unit_test(strict_ends_the_process),
        cmocka_unit_test(confirm_prints_each_option_once),
        cmocka_unit_test(disable_all_passes_everything_through),
        cmocka_unit_test(each_word_of_disable_is_taken),
        cmocka_unit_test(log_info_says_what_was_chosen),
        cmocka_unit_test(stats_go_to_stderr_as_a_table),
        cmocka_unit_test(stats_append_a_line_a_process),
        cmocka_unit_test(the_threshold_is_where_it_is_set),
        cmocka_unit_test(small_requests_cost_nothing_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
