/* The options, as a person sees them: lines on stderr, exit statuses, what is switched off. */
#include "run.h"

#include <sys/prctl.h>

static const struct fl_run *with(const char *a, const char *b)
{
    const char *const env[] = {a, b, NULL};

    return FL_RUN(FL_ARGV("victim_names", "f_malloc"), env);
}

struct row {
    const char *entry, *line; /* without the prefix */
};

/* One line, and the default serves. */
static void says(const struct row *row)
{
    for (; row->entry != NULL; row++) {
        const struct fl_run *r = with(row->entry, NULL);
        assert_string_equal(r->err, text_as("faultless: %s\n", row->line));
        assert_int_equal(r->exit_status, 0);
        assert_int_equal(fl_run_stat(r, "requests"), 1);
    }
}

static const struct row wrong_values[] = {
    {"FAULTLESS_THRESHOLD=much", "FAULTLESS_THRESHOLD=much is not understood (bytes, such as "
                                 "65536, 64K, 512M or 8G); using 64K"},
    {"FAULTLESS_THRESHOLD=5T", "FAULTLESS_THRESHOLD=5T is out of range (4K to 1T); using 64K"},
    {"FAULTLESS_DECAY_MS=-2", "FAULTLESS_DECAY_MS=-2 is not understood (milliseconds, such as "
                              "10000, or never); using 10000"},
    {"FAULTLESS_DISABLE=worker,sleep",
     "FAULTLESS_DISABLE=worker,sleep is not understood (commas between any of all, thp, populate, "
     "worker, cache, stock, move, uffd, uring, numa or plan); using none"},
    {"FAULTLESS_LOG=loud", "FAULTLESS_LOG=loud is not understood (none, warn or info); using warn"},
    {"FAULTLESS_CONFIRM=perhaps", "FAULTLESS_CONFIRM=perhaps is not understood (1, on, yes or "
                                  "true; 0, off, no or false); using 0"},
    {NULL, NULL},
};
static const struct row unknown_names[] = {
    {"FAULTLESS_TRESHOLD=1M",
     "FAULTLESS_TRESHOLD is not an option; did you mean FAULTLESS_THRESHOLD?"},
    {"FAULTLESS_DECAY=5", "FAULTLESS_DECAY is not an option; did you mean FAULTLESS_DECAY_MS?"},
    {NULL, NULL},
};

CASE(strict_ends_the_process)
{
    const struct fl_run *r = with("FAULTLESS_STRICT=1", "FAULTLESS_THRESHOLD=much");
    assert_int_equal(r->exit_status, 1);
    assert_int_equal(fl_run_lines(r->err), 1);
    r = with("FAULTLESS_TRESHOLD=1M", "FAULTLESS_STRICT=1");
    assert_int_equal(r->exit_status, 1);
    assert_int_equal(fl_run_lines(r->err), 1);
    fl_run_assert_active(with("FAULTLESS_STRICT=1", "FAULTLESS_THRESHOLD=1M"));
}

CASE(confirm_prints_each_option_once)
{
    static const char *const lines[] = {"faultless: FAULTLESS_THRESHOLD=1M (environment)\n",
                                        "faultless: FAULTLESS_DECAY_MS=10000 (default)\n",
                                        "faultless: FAULTLESS_CONFIRM=1 (environment)\n",
                                        "faultless: FAULTLESS_LOG=warn (default)\n",
                                        "faultless: FAULTLESS_STRICT=0 (default)\n",
                                        "faultless: FAULTLESS_STATS=/tmp/fl-preload-"};
    size_t options = 0;
    const struct fl_run *r = with("FAULTLESS_CONFIRM=1", "FAULTLESS_THRESHOLD=1M");
    assert_int_equal(r->exit_status, 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_says(r->err, lines[i]);
    }
    FILE *table = fopen(FL_SOURCE_DIR "/src/core/options.def", "r");
    assert_non_null(table);
    for (char line[512]; fgets(line, sizeof line, table) != NULL;) {
        options += strncmp(line, "X(", 2) == 0;
    }
    fclose(table);
    assert_int_equal(fl_run_lines(r->err), options);
}

CASE(disable_all_passes_everything_through)
{
    const struct fl_run *r = fl_run_assert_clean(with("FAULTLESS_DISABLE=all", NULL));
    assert_int_equal(fl_run_stat(r, "active"), 0);
    assert_int_equal(fl_run_stat(r, "requests"), 0);
}

CASE(each_word_of_disable_is_taken)
{
    static const char *const words[] = {
        "thp",  "populate", "worker", "cache", "move",
        "uffd", "uring",    "numa",   "stock", "thp,populate,worker,cache"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        fl_run_assert_active(with(text_as("FAULTLESS_DISABLE=%s", words[i]), NULL));
    }
}

CASE(log_info_says_what_was_chosen)
{
    const struct fl_run *r = with("FAULTLESS_LOG=info", NULL);
    assert_int_equal(fl_run_lines(r->err), 2);
    assert_says(r->err, "faultless: active: window ");
    assert_says(r->err, "next allocator glibc\n");
    assert_says(r->err, "faultless: pages ");
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=move");
    assert_says(r->err, "faultless: pages move by mremap: FAULTLESS_DISABLE\n");
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=uffd");
    assert_says(r->err, "faultless: pages do not move: FAULTLESS_DISABLE\n");
    r = with("FAULTLESS_LOG=info", "FAULTLESS_DISABLE=all");
    assert_string_equal(r->err, "faultless: inactive: every request goes to the next allocator\n");
    assert_string_equal(with("FAULTLESS_LOG=none", NULL)->err, "");
}

CASE(stats_go_to_stderr_as_a_line)
{
    static const char *const words[] = {"1", "yes", "on", "true", "stderr", "summary"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        int pid = 0, end = 0;
        (void)unlink(words[i]);
        const struct fl_run *r = with(text_as("FAULTLESS_STATS=%s", words[i]), NULL);
        assert_int_equal(r->exit_status, 0);
        assert_int_equal(fl_run_lines(r->err), 1);
        (void)sscanf(r->err, "faultless[%d] victim_names: 1 large request, %n", &pid, &end);
        assert_true(pid > 1 && end != 0);
        assert_says(r->err, ", peak ");
        assert_says(r->err, " of the process's ");
        assert_string_equal(r->stats, "");
        assert_int_not_equal(access(words[i], F_OK), 0); /* it is no file's name */
    }
    assert_string_equal(with("FAULTLESS_STATS=no", NULL)->err, "");
    assert_string_equal(with("FAULTLESS_STATS=off", NULL)->err, "");
}

CASE(stats_go_to_stderr_as_a_table)
{
    const struct fl_run *r = with("FAULTLESS_STATS=table", NULL);
    assert_int_equal(r->exit_status, 0);
    assert_int_equal(strncmp(r->err, "faultless[", 10), 0);
    assert_says(r->err, "]: active 1 ");
    assert_says(r->err, "]: requests 1 ");
    assert_string_equal(r->stats, "");
}

/* As all of coreutils do. */
CASE(a_program_that_closes_stderr_is_told_of)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("/bin/ls", "/"), FL_ENV("FAULTLESS_STATS=table"));
    assert_int_equal(r->exit_status, 0);
    assert_says(r->err, "] ls: nothing done: no request of 64K or more came here\n");
    r = FL_RUN(FL_ARGV("/bin/ls", "/"), FL_ENV("FAULTLESS_STATS=table", "FAULTLESS_THRESHOLD=4K"));
    assert_says(r->err, "]: active 1 ");
}

CASE(helpers_that_did_nothing_say_nothing)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("/bin/sh", "-c", "/bin/true & /bin/true; wait"),
                                    FL_ENV("FAULTLESS_STATS=1"));
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "");
    /* What a shell with job control starts leads a process group. */
    r = FL_RUN(FL_ARGV("/usr/bin/setsid", "/bin/true"), FL_ENV("FAULTLESS_STATS=1"));
    assert_int_equal(fl_run_lines(r->err), 1);
    assert_says(r->err, "] true: nothing done: no request of 64K or more came here\n");
}

/* Linux 6.18's exception leaves them to memory that is advised, as ours is. */
static void refuse_thp(void *flags)
{
    (void)prctl(PR_SET_THP_DISABLE, 1, *(const unsigned long *)flags, 0, 0);
}

CASE(the_line_says_that_huge_pages_are_off)
{
    static const unsigned long all = 0, except_advised = 2;
    static const char text[] = ", no huge pages (PR_SET_THP_DISABLE, by the program or what "
                               "started it), peak ";
    struct fl_how how = {.argv = FL_ARGV("victim_names", "f_malloc"),
                         .env = FL_ENV("FAULTLESS_STATS=1"),
                         .in_child = refuse_thp,
                         .arg = (void *)(uintptr_t)&all};
    assert_says(fl_run_how(&how)->err, text);
    how.arg = (void *)(uintptr_t)&except_advised; /* an older kernel refuses that: nothing is off */
    assert_null(strstr(fl_run_how(&how)->err, text));
    assert_says(fl_run_how(&how)->err, ", peak ");
}

CASE(names_of_files_have_the_pid_and_the_rank)
{
    const char *folder = fl_folder(), *entry = text_as("FAULTLESS_STATS=%s/%%p-%%r", folder);
    const char *shell = text_as("/bin/true; ls %s | sed 's/[0-9]*-/PID-/'", folder);
    const struct fl_run *r = FL_RUN(FL_ARGV("/bin/sh", "-c", shell), FL_ENV(entry, "RANK=3"));
    assert_string_equal(r->out, "PID-3\n");
}

CASE(a_file_for_prometheus_is_replaced)
{
    const char *folder = fl_folder();
    for (int i = 0; i < 2; i++) {
        const char *entry = text_as("FAULTLESS_STATS=%s/a.prom", folder);
        assert_int_equal(with(entry, NULL)->exit_status, 0);
    }
    const char *type = "# TYPE faultless_requests_total counter\n";
    const char *first = strstr(fl_text_of(folder, "a.prom"), type);
    assert_non_null(first);
    assert_null(strstr(first + 1, type));
}

CASE(confirm_says_what_is_in_force)
{
    const struct fl_run *r = with("FAULTLESS_CONFIRM=1", "FAULTLESS_LIMIT=8GB");
    assert_says(r->err, "faultless: FAULTLESS_LIMIT=8G (environment)\n");
    assert_says(r->err, "faultless: FAULTLESS_HOST_SHARE=1 (automatic)\n");
    assert_says(r->err, "faultless: FAULTLESS_EAGER_MAX=on touch (automatic)\n");
    r = with("FAULTLESS_CONFIRM=1", NULL);
    const char *limit = strstr(r->err, "FAULTLESS_LIMIT=");
    assert_non_null(limit);
    assert_true(atoll(limit + strlen("FAULTLESS_LIMIT=")) > 0);
    assert_says(limit, "(automatic)\n");
}

CASE(stats_append_a_line_a_process)
{
    const struct fl_run *r = with(NULL, NULL);
    assert_int_equal(fl_run_lines(r->stats), 1);
    assert_int_equal(strncmp(r->stats, "{\"pid\": ", 8), 0);
    assert_says(r->stats, "\"program\": \"victim_names\"");
    r = with("FAULTLESS_STATS=/no/such/folder/file", NULL);
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: FAULTLESS_STATS=/no/such/folder/file cannot be "
                                "written: there is no such folder\n");
}

static const struct fl_run *steps_with(const char *entry)
{
    return FL_RUN(FL_ARGV("victim_steps", "fixed", "8", "declare"), FL_ENV(entry));
}

/* A child that does nothing does not write over it. */
CASE(a_timeline_is_a_trace_of_what_was_done)
{
    size_t steps = 0;
    const char *folder = fl_folder(), *entry = text_as("FAULTLESS_TIMELINE=%s/t", folder);
    fl_run_assert_active(steps_with(entry));
    FL_CLEAN(FL_ARGV("/bin/true"), FL_ENV(entry));
    const char *text = fl_text_of(folder, "t");
    for (const char *at = text; (at = strstr(at, "\"name\":\"step\"")) != NULL; at++) {
        steps++;
    }
    assert_int_equal(steps, 8);
    assert_says(text, "{\"name\":\"victim_steps\",");
    const struct fl_run *r = steps_with("FAULTLESS_TIMELINE=/no/such/folder/t");
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: FAULTLESS_TIMELINE=/no/such/folder/t cannot be "
                                "written: there is no such folder\n");
}

CASE(steps_that_cannot_be_written_are_told_of_once)
{
    const struct fl_run *r = steps_with("FAULTLESS_TRACE=/no/such/folder");
    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, "faultless: the folder of FAULTLESS_TRACE cannot be written to\n");
}

CASE(the_threshold_is_where_it_is_set)
{
    assert_int_equal(fl_run_stat(with("FAULTLESS_THRESHOLD=4M", NULL), "requests"), 0);
    assert_int_equal(fl_run_stat(with("FAULTLESS_THRESHOLD=3M", NULL), "requests"), 1);
}

/* A process without large requests is left alone. */
CASE(small_requests_cost_nothing_of_ours)
{
    static const char *const counts[] = {"0", "3000"};
    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = FL_RUN(FL_ARGV("victim_true", counts[i]));
        const struct fl_run *plain = fl_plain_run(FL_ARGV("victim_true", counts[i]));
        fl_run_assert_clean(r);
        assert_int_equal(fl_run_stat(r, "requests"), 0);
        assert_int_equal(fl_run_stat(r, "populate_bytes"), 0);
        assert_int_equal(fl_run_stat(r, "populated_peak_bytes"), 0);
        assert_int_equal(fl_run_said(r, "threads "), 1);
        /* ten of them are our library and libdl's kin */
        assert_in_range(fl_run_said(r, "maps "), 1, fl_run_said(plain, "maps ") + 16);
        /* What of the library's file is mapped is all processes'; how much is by the page cache. */
        assert_in_range(fl_run_said(r, "own "), 1, fl_run_said(plain, "own ") + 256);
    }
    FL_CLEAN(FL_ARGV("/bin/true"));
}

CASE_IS(a_wrong_value_has_one_line_and_the_default, says(wrong_values))
CASE_IS(an_unknown_name_has_one_line_with_the_nearest, says(unknown_names))

CASES_MAIN()
