/* faultstat top on real programs, against what they say of themselves and what the kernel says. */
#include "cases.h"
#include "child.h"
#include "live_victim.h"

#include <math.h>

/* All counters that both have; what is live and in reserve by its parts. */
static void assert_all_same(const json_t *seen, const json_t *said)
{
    static const char *const key[] = {
        "requests",    "cache_hits",     "stalls",          "lazy",
        "refused",     "stock_bytes",    "populated_bytes", "purge_bytes",
        "move_bytes",  "populate_bytes", "served_bytes",    "plan_hits",
        "plan_misses", "plan_steps",     "plan_layouts",    "plan_drops",
    };
    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
        fl_live_victim_same(seen, said, key[i]);
    }
    double cached = fl_child_number(said, "cached_bytes");
    double in_plans = fl_child_number(said, "plan_free_bytes");
    fl_live_victim_near(fl_child_number(seen, "live_bytes"),
                        fl_child_number(said, "in_use_bytes") - cached - in_plans, 0, "live");
    fl_live_victim_near(fl_child_number(seen, "reserve_bytes"),
                        fl_child_number(said, "free_held_bytes") +
                            fl_child_number(said, "stock_bytes") + cached + in_plans,
                        0, "reserve");
}

CASE(counters_are_those_of_the_program_and_all_its_threads)
{
    static const char *const what[] = {"work", "threads"};
    for (size_t i = 0; i < 2; i++) {
        struct fl_live_victim v = fl_live_victim_begin(what[i], fl_live_victim_still);
        const json_t *seen = fl_live_victim_top(v.pid);
        assert_true(fl_child_number(seen, "requests") > 0);
        assert_all_same(seen, v.said);
        assert_int_equal(fl_live_victim_end(&v), 0);
    }
}

/* The worker packs, so it is there; what it does when all is idle is no business of these. */
CASE(a_plan_and_its_hits_are_seen)
{
    static const char *const key[] = {"requests",   "plan_hits",    "plan_misses",
                                      "plan_steps", "plan_layouts", "plan_drops"};
    struct fl_live_victim v = fl_live_victim_begin("steps", ARGV("LD_PRELOAD=" FL_LIBRARY));
    const json_t *seen = fl_live_victim_top(v.pid);
    for (size_t i = 0; i < sizeof(key) / sizeof(key[0]); i++) {
        fl_live_victim_same(seen, v.said, key[i]);
    }
    assert_true(fl_child_number(v.said, "plan_steps") > 0);
    assert_string_equal(fl_child_text(seen, "plan"), "serve");
    assert_true(fl_child_number(json_object_get(seen, "contexts"), "serve") >= 1);
    double hits = fl_child_number(seen, "plan_hits");
    fl_live_victim_near(fl_child_number(seen, "hit_pct"),
                        100 * hits / (hits + fl_child_number(seen, "plan_misses")), 0.01,
                        "hit rate");
    double live = fl_child_number(v.said, "in_use_bytes") -
                  fl_child_number(v.said, "cached_bytes") -
                  fl_child_number(v.said, "plan_free_bytes");
    fl_live_victim_near(fl_child_number(seen, "live_bytes"), live, 0, "live, in a plan's arena");
    assert_true(live >= 3 << 20);
}

static double faults_of(pid_t pid)
{
    char line[1024] = "";
    unsigned long long faults = 0;
    (void)read_text(text_as("/proc/%d/stat", (int)pid), line, sizeof(line));
    assert_int_equal(sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %llu", &faults),
                     1);
    return (double)faults;
}

CASE(memory_and_faults_are_the_kernels)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    const json_t *seen = fl_live_victim_top(v.pid);
    double anonymous = fl_live_victim_kib(v.pid, "smaps_rollup", "Anonymous:") * 1024;
    double huge = fl_live_victim_kib(v.pid, "smaps_rollup", "AnonHugePages:") * 1024;
    assert_true(anonymous >= 48 << 20);
    fl_live_victim_near(fl_child_number(seen, "resident_bytes"),
                        fl_live_victim_kib(v.pid, "smaps_rollup", "Rss:") * 1024, 1 << 20,
                        "resident");
    fl_live_victim_near(fl_child_number(seen, "anonymous_bytes"), anonymous, 0, "anonymous");
    fl_live_victim_near(fl_child_number(seen, "anon_huge_bytes"), huge, 0, "huge pages");
    fl_live_victim_near(fl_child_number(seen, "huge_pct"), 100 * huge / anonymous, 0.01,
                        "huge share");
    fl_live_victim_near(fl_child_number(seen, "faults"), faults_of(v.pid), 0, "faults");
}

CASE(a_still_process_has_no_rates)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    TOP(0, "--json=-", "-n", "2", "-d", "0.2", "-p", fl_live_victim_text(v.pid));
    char *second = strchr(output.out, '\n');
    assert_non_null(second);
    *second++ = '\0';
    const json_t *root = fl_child_json(output.out);
    const json_t *seen = fl_child_item(root, "processes", 0);
    assert_true(fl_child_number(seen, "faults_per_s") > 0); /* since it began */
    assert_true(fl_child_number(seen, "requests_per_s") > 0);
    root = fl_child_json(second);
    seen = fl_child_item(root, "processes", 0);
    assert_int_equal(fl_child_number(root, "round"), 2);
    assert_int_equal(fl_child_number(seen, "faults_per_s"), 0); /* since the first round */
    assert_int_equal(fl_child_number(seen, "requests_per_s"), 0);
}

/* ---- text ---- */

CASE(text_fits_into_80_columns)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    TOP(0, "--batch", "-n", "2", "-d", "0.1", "-p", fl_live_victim_text(v.pid));
    assert_null(strchr(output.out, '\033'));
    size_t lines = 0;
    size_t rows = 0;
    char *rest = output.out;
    const char *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        lines++;
        assert_true(strlen(line) <= 80);
        rows += strstr(line, " victim_live ") != NULL && strstr(line, "  48M") != NULL;
    }
    assert_int_equal(lines, 3 + 1 + 3 + 1);
    assert_int_equal(rows, 2);
}

CASE(all_processes_of_the_user_are_found_and_sorted)
{
    struct fl_live_victim a = fl_live_victim_begin("work", fl_live_victim_still);
    struct fl_live_victim b = fl_live_victim_begin("fork", fl_live_victim_still);
    const json_t *child = fl_child_json(fl_live_victim_line(&b));
    TOP(0, "--json=-", "-n", "1", "--sort", "live");
    const json_t *root = fl_child_json(output.out);
    const json_t *all = json_object_get(root, "processes");
    double last = INFINITY;
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *p = json_array_get(all, i);
        /* Others of the machine may have no counters yet: these come last. */
        bool has_counters = json_object_get(p, "error") == NULL;
        double live = has_counters ? fl_child_number(p, "live_bytes") : -INFINITY;
        double pid = fl_child_number(p, "pid");
        assert_true(live <= last);
        last = live;
        found += pid == a.pid || pid == b.pid || pid == fl_child_number(child, "pid");
    }
    assert_int_equal(found, 3);
}

CASE(a_process_without_the_library_is_not_listed)
{
    struct fl_live_victim v = fl_live_victim_start(ARGV("/bin/cat"), NULL);
    TOP(1, "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid));
    assert_says(output.err, ": not under faultless\n");
    assert_int_equal(fl_live_victim_end(&v), 0);
    TOP(1, "--batch", "-n", "1", "-p", "2147483647");
    assert_string_equal(output.err, "faultstat: 2147483647: No such process\n");
}

CASE(wrong_options_are_refused)
{
    TOP(125, "-n", "0");
    TOP(125, "-d", "0.01");
    TOP(125, "--sort", "colour");
    TOP(125, "-p", "self");
    TOP(125, "word");
}

LIVE_VICTIM_MAIN("test_tools_top", .teardown = fl_live_victims_end_well)
