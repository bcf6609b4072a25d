/* The figures of faultstat run are those of others: getrusage(2) and smaps as the victim reads them
 * itself, /usr/bin/time -v and, with the argument "perf", perf stat. Each tool has a run of its
 * own, and two starts differ by the layout of their addresses: some faults and pages. Never a
 * time. */
#include "cases.h"
#include "child.h"

#include <fcntl.h>

enum {
    FL_FILE_PAGES = 300,
    FL_FEW_FAULTS = 128, /* between two starts */
    FL_FEW_KIB = 1024,
    FL_PEAK_KIB = 56000, /* at least, of the victim below */
};

/* 6000 pages, and 32 MiB in huge pages where the kernel gives any. */
#define VICTIM FL_USAGE, "6000", "32"

static char file[] = FL_FOLDER "/figures.XXXXXX"; /* not in /tmp: that may have no disk */
static const json_t *own;                         /* what faultstat says of one run */
static const json_t *said;                        /* what the victim said in it */

#define RUN(status, ...) fl_child_ends(status, ARGV(__VA_ARGS__), NULL)

static void assert_near(const char *what, double value, double wanted, double most)
{
    if (value < wanted - most || value > wanted + most) {
        fail_msg("%s: %.0f, and %.0f by the other", what, value, wanted);
    }
}

/* A file of FL_FILE_PAGES pages, and faultstat's figures of a run that reads it. */
static void measure(void)
{
    static const char page[4096];
    char json[] = FL_FOLDER "/figures-json.XXXXXX";
    int fd = mkstemp(file);
    int json_fd = mkstemp(json);
    for (int i = 0; i < FL_FILE_PAGES; i++) {
        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    }
    close(fd);
    RUN(0, FL_FAULTSTAT, "run", "-j", json, "--", VICTIM, file);
    own = fl_child_json_file(json);
    assert_true(strlen(output.out) > 8);
    said = fl_child_json(output.out + strlen("SUMMARY "));
    close(json_fd);
    unlink(json);
}

static void forget(void)
{
    assert_int_equal(unlink(file), 0);
}

/* The victim's are of its last line: what the program's end takes comes on top. */
CASE(faults_and_peak_are_getrusages)
{
    double minflt = fl_child_number(said, "minflt");
    double faults = fl_child_number(own, "faults");
    assert_true(minflt >= 6000 && faults >= minflt);
    assert_near("minor faults", faults, minflt, 64);
    assert_near("major faults", fl_child_number(own, "major_faults"),
                fl_child_number(said, "majflt"), 0);
    double peak = fl_child_number(own, "peak_rss_mib") * 1024;
    assert_true(peak >= FL_PEAK_KIB);
    assert_near("peak KiB", peak, fl_child_number(said, "maxrss"), FL_FEW_KIB);
}

CASE(memory_is_that_of_smaps)
{
    double pss = fl_child_number(said, "pss");
    double huge = fl_child_number(said, "huge");
    double anonymous = fl_child_number(said, "anonymous");
    assert_true(pss >= FL_PEAK_KIB && anonymous >= FL_PEAK_KIB);
    assert_near("PSS, KiB", fl_child_number(own, "pss_peak_mib") * 1024, pss, FL_FEW_KIB);
    double mean = fl_child_number(own, "pss_mean_mib");
    assert_true(mean > 0 && mean <= fl_child_number(own, "pss_peak_mib"));
    assert_near("huge KiB", fl_child_number(own, "anon_huge_peak_mib") * 1024, huge, 0);
    assert_near("huge, %", fl_child_number(own, "huge_pct"), huge / anonymous * 100, 1);
}

/* The number behind `key` in what was printed. */
static double number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    if (at == NULL) {
        fail_msg("no '%s' in:\n%s", key, text);
        return 0;
    }
    return strtod(at + strlen(key), NULL);
}

CASE(figures_are_those_of_gnu_time)
{
    RUN(0, "/usr/bin/time", "-v", VICTIM, file);
    assert_near("minor faults", fl_child_number(own, "faults"),
                number_after(output.err, "Minor (reclaiming a frame) page faults: "),
                FL_FEW_FAULTS);
    assert_near("major faults", fl_child_number(own, "major_faults"),
                number_after(output.err, "Major (requiring I/O) page faults: "), 8);
    assert_near("peak KiB", fl_child_number(own, "peak_rss_mib") * 1024,
                number_after(output.err, "Maximum resident set size (kbytes): "), FL_FEW_KIB);
    assert_near("exit status", fl_child_number(own, "exit"),
                number_after(output.err, "Exit status: "), 0);
}

/* A line "COUNT,UNIT,EVENT,..." of perf stat -x, for the event. */
static double perf_count(const char *event)
{
    for (const char *line = output.err; *line != '\0'; line += strcspn(line, "\n") + 1) {
        char name[64] = "";
        double count;
        if (sscanf(line, "%lf,%*[^,0-9]%63[^,:]", &count, name) == 2 ||
            sscanf(line, "%lf,,%63[^,:]", &count, name) == 2) {
            if (strcmp(name, event) == 0) {
                return count;
            }
        }
    }
    fail_msg("no %s in:\n%s", event, output.err);
    return 0;
}

CASE(figures_are_those_of_perf_stat)
{
    RUN(0, "perf", "stat", "-x,", "-e", "page-faults,minor-faults,major-faults", "--", VICTIM,
        file);
    double minor = perf_count("minor-faults");
    assert_true(minor >= 6000);
    assert_near("minor faults", fl_child_number(own, "perf_minor_faults"), minor, FL_FEW_FAULTS);
    assert_near("major faults", fl_child_number(own, "major_faults"), perf_count("major-faults"),
                8);
    assert_near("page faults",
                fl_child_number(own, "perf_minor_faults") + fl_child_number(own, "major_faults"),
                perf_count("page-faults"), FL_FEW_FAULTS);
}

/* A reason not to ask perf; NULL: it counts. */
static const char *why_not(void)
{
    static char reason[160];
    fl_child_run(
        ARGV("sh", "-c", "command -v perf >/dev/null || exit 5; perf stat -e minor-faults -- true"),
        NULL);
    if (output.status == 0) {
        return NULL;
    }
    snprintf(reason, sizeof(reason), "%.100s",
             output.status == 5 ? "none (tools/setup --what test-all)" : output.err);
    reason[strcspn(reason, "\n")] = '\0';
    return reason;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "perf") != 0) {
        cmocka_set_skip_filter("*_perf_*");
    } else {
        const char *reason = why_not();
        if (reason != NULL) {
            printf("SKIP test_tools_figures_perf: needs perf events and perf, got %s\n", reason);
            return 77;
        }
        cmocka_set_test_filter("*_perf_*");
    }
    return RUN_CASES(.group_setup = measure, .group_teardown = forget);
}
