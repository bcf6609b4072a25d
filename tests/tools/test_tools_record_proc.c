/* faultstat record without perf events, which is the same everywhere; and faultstat report of a
 * recording that is written down here. */
#include "cases.h"
#include "child.h"

static char path[] = "/tmp/test_tools_record_proc.XXXXXX";

#define RECORD(status, ...) fl_child_ends(status, ARGV(FL_FAULTSTAT, "record", __VA_ARGS__), NULL)
#define REPORT(status, ...) fl_child_ends(status, ARGV(FL_FAULTSTAT, "report", __VA_ARGS__), NULL)

/* main > step > memset twice 100 faults, main > map::at 50, and 10 without a name. */
static const char recording[] =
    "{\"schema\":1,\"kind\":\"faultstat record\",\"command\":[\"./x\",\"</script><b>\"],"
    "\"machine\":{},\"exit\":0,\"method\":\"perf\",\"wall_s\":1,\"user_s\":0.5,\"sys_s\":0.5,"
    "\"peak_mib\":10,\"faults\":{\"getrusage_minor\":265,\"getrusage_major\":0,"
    "\"counted_minor\":260,\"counted_major\":0,\"samples\":260},"
    "\"kinds\":[{\"name\":\"anonymous 4 KiB\",\"cost_ns\":1000,\"saved_ns\":900},"
    "{\"name\":\"anonymous huge\",\"cost_ns\":0,\"saved_ns\":0}],\"spans\":[\"small\",\"big\"],"
    "\"frames\":[{\"name\":\"main\",\"file\":\"x\"},{\"name\":\"step\",\"file\":\"x\","
    "\"at\":\"x.c:7\"},{\"name\":\"memset\",\"file\":\"libc.so.6\"},"
    "{\"name\":\"std::map<int;>::at\",\"file\":\"x\"},{\"name\":\"[jit]\",\"file\":\"jit\"}],"
    "\"stacks\":[{\"frames\":[0,1,2],\"site\":1,\"kind\":0,\"span\":1,\"faults\":100},"
    "{\"frames\":[0,1,2],\"site\":1,\"kind\":1,\"span\":1,\"faults\":100},"
    "{\"frames\":[0,3],\"site\":3,\"kind\":0,\"span\":0,\"faults\":50},"
    "{\"frames\":[4],\"site\":-1,\"kind\":0,\"span\":0,\"faults\":10}],"
    "\"series\":{\"width_ms\":10,\"faults\":[10,250],\"rss_mib\":[1,10],\"huge_mib\":[0,2]},"
    "\"steps\":[],\"layout\":{\"what\":\"the run\",\"points\":[[0,4096,0],[1,8192,1]]},"
    "\"prediction\":{\"of\":\"the run\",\"wall_ms\":1000,\"cpu_ms\":1000,"
    "\"faultless_wall_ms\":900,\"faultless_cpu_ms\":900,\"saved_cpu_ms\":100,"
    "\"avoided_faults\":200},\"notes\":[\"a note\"]}";

CASE(threads_are_counted_where_perf_events_are_refused)
{
    RECORD(0, "--no-perf", "-q", "-o", "-", "--", FL_SITES, "0", "20000");
    const json_t *root = fl_child_json(output.out);
    assert_string_equal(fl_child_text(root, "method"), "proc");
    assert_says(output.out, "perf events refused");
    assert_says(output.out, "[thread victim_sites]");
    assert_true(json_is_null(json_object_get(root, "prediction")));
    const json_t *stack;
    size_t i;
    double faults = 0;
    json_array_foreach(json_object_get(root, "stacks"), i, stack)
    {
        faults += fl_child_number(stack, "faults");
        assert_int_equal((int)fl_child_number(stack, "site"), -1); /* no claim to a site */
    }
    /* What the command takes after the last reading is in the total alone. */
    const json_t *counts = json_object_get(root, "faults");
    double all =
        fl_child_number(counts, "getrusage_minor") + fl_child_number(counts, "getrusage_major");
    assert_true(all >= 41500);
    assert_true(faults <= all);
}

/* The kernel refuses, not an option: a filter in the way of perf_event_open. */
CASE(exit_status_is_the_commands)
{
    RECORD(7, "-q", "-o", path, "--", "sh", "-c", "exit 7");
    RECORD(128 + 15, "-q", "-o", path, "--", "sh", "-c", "kill -TERM $$");
    RECORD(127, "-q", "-o", path, "--", "/nonexistent/program");
    assert_says(output.err, "faultstat: /nonexistent/program: No such file or directory\n");
    RECORD(125, "-q", "-o", "/nonexistent/folder/file", "--", "true");
    assert_says(output.err, "/nonexistent/folder/file: No such file");
}

CASE(wrong_options_are_refused)
{
    static const char *const wrong[][2] = {
        {"-c", "0"}, {"-c", "x"}, {"-s", "100"}, {"-s", "70000"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        RECORD(125, wrong[i][0], wrong[i][1], "--", "true");
        assert_says(output.err, "is no number");
    }
    RECORD(125, "-q");
}

CASE(the_text_names_sites_by_their_share)
{
    write_text(path, recording);
    REPORT(0, path);
    assert_says(output.out, "96.2 % of 260 faults have a site");
    const char *first = strstr(output.out, "step (x.c:7)");
    const char *second = strstr(output.out, "std::map<int;>::at (x)");
    assert_non_null(first);
    assert_non_null(second);
    assert_true(first < second && second < strstr(output.out, "    [jit]\n"));
    assert_says(output.out, "< main");
    assert_says(output.out, "- a note");
}

/* With `now` in the place of `then`. */
static void report_with(const char *then, const char *now)
{
    const char *at = strstr(recording, then);
    assert_non_null(at);
    write_text(path, text_as("%.*s%s%s", (int)(at - recording), recording, now, at + strlen(then)));
    REPORT(0, path);
}

CASE(sites_of_one_sample_share_a_line)
{
    report_with("\"samples\":260", "\"samples\":4");
    assert_says(output.out, "    step (x.c:7)\n");
    assert_null(strstr(output.out, "[jit]"));
    assert_says(output.out, "and of one sample each, which says little: 2 sites");
}

/* The half of its faults that are huge cost a third. */
CASE(a_site_of_several_kinds_has_a_plus)
{
    report_with("\"cost_ns\":0", "\"cost_ns\":500");
    assert_says(output.out, "  anonymous 4 KiB +    big\n    step (x.c:7)\n");
    assert_says(output.out, "+: other kinds too");
    report_with("\"cost_ns\":0", "\"cost_ns\":100");
    assert_null(strstr(output.out, " +"));
}

/* No middle is printed where only the ends are known, and the reason stands beside them. */
CASE(a_doubtful_prediction_is_an_interval)
{
    static const char certain[] = "\"doubt\":\"\",\"wall_ms\":1000,";
    static const char doubtful[] = "\"doubt\":\"too few\",\"wall_ms\":1000,"
                                   "\"faultless_wall_low_ms\":700,\"faultless_wall_high_ms\":980,";
    const char *const field = strstr(recording, "\"wall_ms\":1000,");
    for (int i = 0; i < 2; i++) {
        write_text(path, text_as("%.*s%s%s", (int)(field - recording), recording,
                                 i == 0 ? certain : doubtful, field + strlen("\"wall_ms\":1000,")));
        REPORT(0, path);
        assert_true((strstr(output.out, "the run: 900.0 ms instead of 1000.0") != NULL) ==
                    (i == 0));
        assert_true((strstr(output.out, "the run: between 700.0 and 980.0 ms") != NULL) ==
                    (i == 1));
        assert_true((strstr(output.out, "no closer: too few") != NULL) == (i == 1));
    }
}

/* Frames of an interpreter all have its name. */
CASE(a_caller_that_stands_several_times_in_a_row_is_named_once)
{
    write_text(path, "{\"kind\":\"faultstat record\",\"schema\":1,\"frames\":[{\"name\":\"main\"},"
                     "{\"name\":\"loop\"},{\"name\":\"run\"},{\"name\":\"step\"}],\"stacks\":["
                     "{\"frames\":[0,2,1,1,1,3],\"site\":3,\"kind\":0,\"span\":0,\"faults\":1}]}");
    REPORT(0, path);
    assert_says(output.out, "< loop < run < main\n");
}

CASE(long_names_of_callers_are_wrapped)
{
    char long_name[2][61];
    memset(long_name, 'x', sizeof(long_name));
    long_name[0][60] = long_name[1][60] = '\0';
    long_name[1][0] = 'y';
    write_text(path,
               text_as("{\"kind\":\"faultstat record\",\"schema\":1,\"frames\":[{\"name\":\"%s\"},"
                       "{\"name\":\"%s\"},{\"name\":\"step\"}],\"stacks\":["
                       "{\"frames\":[0,1,2],\"site\":2,\"kind\":0,\"span\":0,\"faults\":1}]}",
                       long_name[0], long_name[1]));
    REPORT(0, path);
    const char *at = strstr(output.out, "      < y");
    assert_non_null(at);
    assert_true(strcspn(at, "\n") <= 80);
    assert_says(output.out, "\n        x");
}

CASE(folded_stacks_are_a_line_each)
{
    write_text(path, recording);
    REPORT(0, "--folded", "-", path);
    assert_string_equal(output.out, "main;step;memset 100\nmain;step;memset 100\n"
                                    "main;std::map<int:>::at 50\n[jit] 10\n");
}

CASE(the_flame_graph_is_drawn_to_scale)
{
    write_text(path, recording);
    REPORT(0, "--flame", "-", path);
    assert_says(output.out, "<svg xmlns");
    assert_says(output.out, "all (all) 260 faults, 100.00 %");
    assert_says(output.out, "data-w=\"923.08\""); /* 200 of 260, of 1200 */
    assert_says(output.out, "std::map&lt;int;&gt;::at");
    assert_null(strstr(output.out, "map<int"));
}

/* What the page's script reads. */
static const json_t *page_data(const char *page)
{
    const char *data = strstr(page, "id=\"data\">");
    assert_non_null(data);
    char *text = strdup(data + strlen("id=\"data\">"));
    assert_non_null(text);
    *strstr(text, "</script>") = '\0';
    const json_t *root = fl_child_json(text);
    free(text);
    return root;
}

CASE(the_page_holds_all_it_needs)
{
    write_text(path, recording);
    REPORT(0, "--html", "-", path);
    const char *page = output.out;
    assert_null(strstr(page, "src="));
    assert_null(strstr(page, "href="));
    assert_null(strstr(page, "</script><b>")); /* the command's words end no element */
    assert_null(strstr(page, "@@"));
    const json_t *root = page_data(page);
    assert_int_equal(json_array_size(json_object_get(root, "sites")), 3);
    assert_int_equal((int)fl_child_number(root, "attributed"), 250);
}

/* Also where not all of them are listed: as the text. */
CASE(the_page_counts_the_faults_of_all_sites)
{
    enum { SITES = 50 };
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"kind\":\"faultstat "
          "record\",\"schema\":1,\"kinds\":[{\"name\":\"small\",\"cost_ns\":1}],"
          "\"frames\":[",
          file);
    for (int i = 0; i < SITES; i++) {
        fprintf(file, "%s{\"name\":\"f%d\"}", i > 0 ? "," : "", i);
    }
    fputs("],\"stacks\":[", file);
    for (int i = 0; i < SITES; i++) {
        fprintf(file, "%s{\"frames\":[%d],\"site\":%d,\"kind\":0,\"span\":0,\"faults\":2}",
                i > 0 ? "," : "", i, i);
    }
    fputs("]}", file);
    assert_int_equal(fclose(file), 0);
    REPORT(0, "--html", "-", path);
    const json_t *faults = json_object_get(page_data(output.out), "kind_faults");
    assert_int_equal((int)json_number_value(json_array_get(faults, 0)), 2 * SITES);
    REPORT(0, path);
    assert_says(output.out, "  small                       100 faults");
}

CASE(each_kind_has_a_colour_of_the_page)
{
    json_error_t error;
    RECORD(0, "--no-perf", "-q", "-o", path, "--", "true");
    const json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    size_t kinds = json_array_size(json_object_get(root, "kinds"));
    REPORT(0, "--html", "-", path);
    const char *at = strstr(output.out, "const colour = [");
    assert_non_null(at);
    size_t colours = 1;
    for (; *at != ']'; at++) {
        colours += *at == ',';
    }
    assert_true(kinds > 0);
    assert_int_equal(colours, kinds);
}

CASE(what_is_no_recording_is_refused)
{
    static const char *const wrong[] = {"", "{}", "[1]", "{\"kind\":\"x\"}",
                                        "{\"kind\":\"faultstat record\",\"schema\":2}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_text(path, wrong[i]);
        REPORT(125, path);
        assert_says(output.err, path);
    }
    write_text(
        path,
        "{\"kind\":\"faultstat record\",\"schema\":1,\"stacks\":[{\"frames\":[7],"
        "\"site\":99,\"kind\":99,\"span\":-1,\"faults\":1}]}"); /* numbers that lead nowhere */
    REPORT(0, "--html", "-", path);
    REPORT(0, path);
    REPORT(125, "--html", "-", "--compare", path, path);
    assert_says(output.err, "not written by faultstat compare --json");
}

/* A comparison that goes with `recording`, after a row that has no ratio. */
static const char comparison[] =
    "{\"schema\":2,\"kind\":\"compare\",\"complete\":true,\"command\":[\"./x\",\"</script><b>\"],"
    "\"rounds\":7,\"has_steps\":false,\"verdict\":\"b is fastest\",\"warnings\":[],"
    "\"allocators\":[{\"name\":\"b\",\"present\":true,\"verdict\":\"faster\","
    "\"runs\":[{\"wall_s\":1}],\"median\":{\"wall_s\":1},\"ratio\":{\"wall_s\":0.5},"
    "\"ratio_interval\":{\"wall_s\":[0.4,0.6]}}]}";

CASE(a_comparison_stands_beside_a_recording_of_its_command_alone)
{
    char other[] = "/tmp/test_tools_record_proc.compare.XXXXXX";
    int fd = mkstemp(other);
    assert_true(fd >= 0);
    close(fd);
    write_text(path, recording);
    write_text(other, comparison);
    REPORT(0, "--html", "-", "--compare", other, path);
    assert_says(output.out, "\"rounds\":7");
    assert_says(output.out, "\"verdict\":\"b is fastest\"");
    assert_says(output.out, "\"ratio_interval\":{\"wall_s\":[0.4");
    assert_null(strstr(output.out, "\"runs\""));
    char *word = strstr(strcpy(output.err, comparison), "./x");
    word[2] = 'y';
    write_text(other, output.err);
    REPORT(125, "--html", "-", "--compare", other, path);
    assert_says(output.err,
                "a comparison of another command: ./y </script><b>; recorded was: ./x ");
    assert_string_equal(output.out, "");
    unlink(other);
}

CASE(a_profile_of_large_blocks_is_named_with_the_command_that_shows_it)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite("FLTPROF\0\1\0\0\0", 12, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    REPORT(125, path);
    assert_says(output.err, ": a profile of large blocks, which faultstat heap shows\n");
}

/* As versions before the intervals wrote it. */
CASE(a_prediction_without_an_interval_has_none)
{
    write_text(path,
               "{\"kind\":\"faultstat record\",\"schema\":1,\"stacks\":[],"
               "\"prediction\":{\"of\":\"the run\",\"faultless_cpu_ms\":2.0,\"cpu_ms\":3.0}}");
    REPORT(0, path);
    assert_says(output.out, "  processor time 2.0 ms instead of 3.0, 0 faults fewer\n");
}

int main(void)
{
    int fd = mkstemp(path);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    int failed = RUN_CASES();
    unlink(path);
    return failed;
}
