/* faultplan and a real program: the steps that it records are tables that it packs and draws, the
 * plans that the program keeps are shown and drawn, and a file that is no such thing gets one
 * line. */
#include "child.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct fl_output output;
static char folder[] = "/tmp/faultplan-test-XXXXXX";
static char plan[64], other[64], trace[64];

#define RUN(...) fl_child_run(&output, (const char *const[]){FL_FAULTPLAN, __VA_ARGS__, NULL}, NULL)
#define RECORD(...) RUN("record", "-o", trace, "--", __VA_ARGS__)

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++) {
        n++;
    }
    return n;
}

/* The number behind the `nth` (from 0) `name` in what was said. */
static double number(const char *text, const char *name, int nth)
{
    const char *at = strstr(text, name);

    while (at != NULL && nth-- > 0) {
        at = strstr(at + 1, name);
    }
    if (at == NULL) {
        fail_msg("no '%s' in:\n%s%s", name, output.out, output.err);
        return 0;
    }
    return strtod(at + strlen(name), NULL);
}

static bool is_equal(double a, double b)
{
    return a >= b && a <= b;
}

static void empty(const char *path)
{
    DIR *d = opendir(path);
    char name[512];

    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.') {
            (void)remove(name);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
}

/* The path of the first step that the report names; its figures. */
static void read_report(char path[512], double *blocks, double *bound)
{
    char name[128];
    const char *line = strstr(output.err, "\n  ");

    assert_non_null(line);
    assert_int_equal(sscanf(line, " %127s %lf blocks, lower bound %lf", name, blocks, bound), 3);
    snprintf(path, 512, "%s/%s", trace, name);
}

static void steps_of_a_program_are_written_and_packed(void **state)
{
    double blocks, bound;
    char path[512];
    (void)state;
    RECORD(FL_VICTIM, "fixed", "12", "declare");
    assert_int_equal(output.status, 0);
    assert_non_null(strstr(output.out, "done\n")); /* the program's own */
    assert_true(number(output.err, "faultplan: ", 0) >= 3);
    assert_non_null(strstr(output.err, " steps of 1 context in /tmp/faultplan-test-"));
    read_report(path, &blocks, &bound);
    /* the step's 120 blocks, but for those below the least large one, and what realloc took in
     * two */
    assert_true(blocks >= 100 && blocks <= 140);
    assert_true(bound > 1 << 20);

    RUN("pack", path);
    assert_int_equal(output.status, 0);
    assert_true(is_equal(number(output.out, "buffers ", 0), blocks));
    assert_true(is_equal(number(output.out, "lower bound ", 0), bound));
    assert_true(number(output.out, "ratio ", 0) < 1.05);
    RUN("draw", path);
    assert_int_equal(output.status, 0);
    assert_true(is_equal((double)count(output.out, "<rect class=\"buffer "), blocks));
}

/* Of each block its alignment, the thread that asked for it and the node of its memory. */
static void a_row_says_who_asked_and_where_it_lay(void **state)
{
    double blocks, bound;
    char path[512], line[256];
    unsigned long long size, align;
    unsigned thread, node, rows = 0;
    (void)state;
    RECORD(FL_VICTIM, "fixed", "12", "declare");
    read_report(path, &blocks, &bound);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "id,lower,upper,size,alignment,thread,node\n");
    for (; fgets(line, sizeof line, file) != NULL; rows++) {
        assert_int_equal(
            sscanf(line, "%*u,%*u,%*u,%llu,%llu,%u,%u\n", &size, &align, &thread, &node), 4);
        assert_true(size >= 65536 && align != 0 && (align & (align - 1)) == 0);
        assert_true(is_equal(
            thread, number(path + strlen(trace), "/", 0))); /* PID-CONTEXT-N.csv: it has one */
        snprintf(line, sizeof line, "/sys/devices/system/node/node%u", node);
        assert_true(access(line, F_OK) == 0 || access("/sys/devices/system/node", F_OK) != 0);
    }
    (void)fclose(file);
    assert_true(is_equal(rows, blocks));
}

static void each_run_counts_its_own_steps(void **state)
{
    (void)state;
    RECORD(FL_VICTIM, "fixed", "12", "declare");
    double first = number(output.err, "faultplan: ", 0);
    RECORD(FL_VICTIM, "fixed", "12", "declare", "2");
    assert_non_null(strstr(output.err, "steps of 2 contexts in"));
    assert_int_equal(count(output.err, " blocks, lower bound "), 2);
    assert_true(number(output.err, "faultplan: ", 0) <= 3 * first);
}

static void why_there_is_no_step_is_said(void **state)
{
    (void)state;
    RECORD("true");
    assert_int_equal(output.status, 125); /* for scripts */
    assert_string_equal(output.err,
                        "faultplan: no step was seen\n"
                        "faultplan: there was no large request (FAULTLESS_THRESHOLD)\n");
    RECORD("sh", "-c", "exit 3");
    assert_int_equal(output.status, 3);
    RECORD(FL_VICTIM, "fixed", "1", "declare");
    assert_int_equal(output.status, 125);
    assert_non_null(strstr(output.err, " large requests, and no two rounds of them alike: "));
    RECORD("env", "-u", "LD_PRELOAD", "true");
    assert_non_null(strstr(output.err, "faultplan: no process told of itself: "));
    fl_child_run(&output, (const char *const[]){FL_FAULTPLAN, "record", "-o", trace, "true", NULL},
                 (const char *const[]){"FAULTLESS_DISABLE=all", NULL});
    assert_non_null(strstr(output.err, "faultplan: faultless was not active: "));
}

static void the_exit_status_is_the_programs(void **state)
{
    (void)state;
    RECORD("sh", "-c", "exit 7");
    assert_int_equal(output.status, 7);
    RECORD("sh", "-c", "kill -TERM $$");
    assert_int_equal(output.status, 128 + 15);
    RECORD("/nowhere/at/all");
    assert_int_equal(output.status, 127);
    assert_string_equal(output.err, "faultplan: /nowhere/at/all: No such file or directory\n");
    RECORD("/tmp");
    assert_int_equal(output.status, 126);
    RUN("record", "-o", "/nowhere/at/all", "--", "true");
    assert_int_equal(output.status, 125);
    RUN("record", "-o", FL_VICTIM, "--", "true");
    assert_int_equal(output.status, 125);
    RUN("record");
    assert_int_equal(output.status, 125);
}

static void no_library_is_said_and_nothing_is_left(void **state)
{
    struct stat s;
    (void)state;
    empty(trace);
    rmdir(trace);
    fl_child_run(&output,
                 (const char *const[]){FL_FAULTPLAN, "record", "-o", trace, "--", "true", NULL},
                 (const char *const[]){"FAULTLESS_LIB=/nowhere/at/all.so", NULL});
    assert_int_equal(output.status, 125);
    assert_int_equal(count(output.err, "\n"), 1);
    assert_int_not_equal(stat(trace, &s), 0);
}

/* A program of two kinds of steps leaves its plans in `plan`. */
static int keep_plans(void **state)
{
    char library[512], file[128];
    (void)state;
    snprintf(library, sizeof library, "LD_PRELOAD=%s", FL_LIBRARY);
    snprintf(file, sizeof file, "FAULTLESS_PLAN=%s", plan);
    (void)unlink(plan);
    fl_child_run(&output, (const char *const[]){FL_VICTIM, "phases", "40", "declare", NULL},
                 (const char *const[]){library, file, NULL});
    assert_int_equal(output.status, 0);
    return 0;
}

static void kept_plans_are_shown(void **state)
{
    static const char *const kind[] = {"  planned ", "  crossing ", "  doubled ", "  kept "};
    double slots = 0;
    (void)state;
    RUN("show", plan);
    assert_int_equal(output.status, 0);
    size_t plans = count(output.out, "key           ");
    assert_true(plans >= 2);
    assert_null(strstr(output.out, "overlaps"));
    for (int i = 0; i < (int)plans; i++) {
        double n = number(output.out, "slots ", i), sum = 0;
        for (size_t k = 0; k < sizeof kind / sizeof kind[0]; k++) {
            sum += number(output.out, kind[k], i);
        }
        assert_true(n >= 100 && n <= 140 && is_equal(n, sum));
        assert_true(number(output.out, "plan  ", i) > i && number(output.out, "horizon ", i) >= n);
        double height = number(output.out, "height ", i), ratio = number(output.out, "ratio ", i);
        double bound = number(output.out, "lower bound ", i);
        assert_true(bound > 1 << 20 && height >= bound && ratio >= 1 && ratio < 1.3);
        assert_true(ratio > height / bound - 0.00002 && ratio < height / bound + 0.00002);
        slots += n;
    }
    size_t lines = count(output.out, "\n");
    RUN("show", "--slots", plan);
    assert_int_equal(output.status, 0);
    /* each: an empty line, the names, the slots */
    assert_true(
        is_equal((double)count(output.out, "\n"), (double)lines + slots + 2.0 * (double)plans));
}

static void kept_plans_are_drawn(void **state)
{
    char height[64];
    (void)state;
    RUN("show", plan);
    double places = number(output.out, "  planned ", 1) + number(output.out, "  crossing ", 1) +
                    2 * number(output.out, "  doubled ", 1);
    snprintf(height, sizeof height, "height %.0f bytes", number(output.out, "height ", 1));
    RUN("draw", "--plan", "2", plan);
    assert_int_equal(output.status, 0);
    assert_true(is_equal((double)count(output.out, "<rect class=\"buffer "), places));
    assert_non_null(strstr(output.out, ", plan 2</text>"));
    RUN("draw", "-o", other, plan);
    assert_int_equal(output.status, 0);
    assert_string_equal(output.out, "");
    RUN("draw", "--plan", "99", plan);
    assert_int_equal(output.status, 125);
    assert_non_null(strstr(output.err, ": it has "));
    RUN("draw", "--plan", "0", plan);
    assert_int_equal(output.status, 125);
    RUN("draw", "--plan", "1", FL_VICTIM);
    assert_int_equal(output.status, 125);
    assert_non_null(strstr(output.err, ": it is no plan file\n"));
}

/* `other` is the first `len` bytes of `plan`, one of them turned over at `at`. */
static void spoil(size_t len, size_t at)
{
    static char bytes[1 << 20];
    FILE *in = fopen(plan, "re"), *out = fopen(other, "we");

    assert_true(in != NULL && out != NULL);
    size_t n = fread(bytes, 1, sizeof bytes, in);
    assert_true(n > 100 && n < sizeof bytes);
    n = len < n ? len : n;
    if (at < n) {
        bytes[at] ^= 0x40;
    }
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    fclose(in);
}

static void assert_refused(const char *path, const char *why)
{
    RUN("show", path);
    if (output.status != 1 || strstr(output.err, why) == NULL || count(output.err, "\n") != 1 ||
        output.out[0] != '\0') {
        fail_msg("status %d, not '%s': %s%s", output.status, why, output.out, output.err);
    }
}

static void what_is_no_plan_file_gets_one_line(void **state)
{
    (void)state;
    spoil(SIZE_MAX, SIZE_MAX);
    RUN("show", other);
    assert_int_equal(output.status, 0);
    spoil(SIZE_MAX, 3);
    assert_refused(other, ": it is no plan file\n");
    spoil(SIZE_MAX, 8);
    assert_refused(other, ": it is of another version\n");
    RUN("draw", other);
    assert_int_equal(output.status, 125);
    assert_non_null(strstr(output.err, ": it is of another version\n"));
    spoil(SIZE_MAX, 90);
    assert_refused(other, ": its checksum is wrong\n");
    spoil(96, SIZE_MAX);
    assert_refused(other, ": it");
    spoil(0, SIZE_MAX);
    assert_refused(other, ": it is no plan file\n");
    assert_refused("/nowhere/at/all", ": it is not there\n");
    assert_refused("/tmp", ": it is no plan file\n");
    RUN("show");
    assert_int_equal(output.status, 125);
}

static uint64_t hash(uint64_t seed, const char *data, size_t len)
{
    uint64_t h = seed ^ len, word;

    for (size_t i = 0; i < len; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

/* A file that is whole, as docs/plan-file.md has it, and whose first plan has all of its places at
 * offset 0. */
static void a_plan_that_overlaps_is_told(void **state)
{
    enum { HEAD = 32, PLAN = 48, SLOT = 80, SLOTS_AT = 40, OFFSET_AT = 56, SECOND_AT = 64 };
    static char bytes[1 << 20];
    FILE *in = fopen(plan, "re"), *out = fopen(other, "we");
    const uint64_t zero = 0;
    uint32_t slots;
    (void)state;
    assert_true(in != NULL && out != NULL);
    size_t n = fread(bytes, 1, sizeof bytes, in);
    assert_true(n > HEAD + PLAN && n < sizeof bytes);
    memcpy(&slots, bytes + HEAD + SLOTS_AT, sizeof slots);
    assert_true(HEAD + PLAN + slots * (size_t)SLOT <= n);
    for (char *at = bytes + HEAD + PLAN; slots-- > 0; at += SLOT) {
        static const uint64_t none = UINT64_MAX;
        if (memcmp(at + OFFSET_AT, &none, sizeof none) != 0) {
            memcpy(at + OFFSET_AT, &zero, sizeof zero);
        }
        if (memcmp(at + SECOND_AT, &none, sizeof none) != 0) {
            memcpy(at + SECOND_AT, &zero, sizeof zero);
        }
    }
    uint64_t sum = hash(hash(1, bytes, HEAD - 8), bytes + HEAD, n - HEAD);
    memcpy(bytes + HEAD - 8, &sum, sizeof sum);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    fclose(in);
    RUN("show", other);
    assert_int_equal(output.status, 0);
    assert_int_equal(count(output.out, "\noverlaps      slots that live at once"), 1);
}

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(plan, sizeof plan, "%s/plans", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    snprintf(trace, sizeof trace, "%s/trace", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    empty(trace);
    empty(folder);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_a_program_are_written_and_packed),
        cmocka_unit_test(a_row_says_who_asked_and_where_it_lay),
        cmocka_unit_test(each_run_counts_its_own_steps),
        cmocka_unit_test(why_there_is_no_step_is_said),
        cmocka_unit_test(the_exit_status_is_the_programs),
        cmocka_unit_test(no_library_is_said_and_nothing_is_left),
        cmocka_unit_test_setup(kept_plans_are_shown, keep_plans),
        cmocka_unit_test_setup(kept_plans_are_drawn, keep_plans),
        cmocka_unit_test_setup(what_is_no_plan_file_gets_one_line, keep_plans),
        cmocka_unit_test_setup(a_plan_that_overlaps_is_told, keep_plans),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
