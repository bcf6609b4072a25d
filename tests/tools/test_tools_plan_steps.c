/* faultplan and a real program: the steps that it records are tables that it packs and draws. */
#include "cases.h"
#include "child.h"

#include <sys/stat.h>

static char trace[64];

#define RUN(status, ...) fl_child_ends(status, ARGV(FL_FAULTPLAN, __VA_ARGS__), NULL)
#define RECORD(status, ...) RUN(status, "record", "-o", trace, "--", __VA_ARGS__)

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

/* The path of the first step that the report names; its figures. */
static void read_report(char path[512], double *blocks, double *bound)
{
    char name[128];
    const char *line = strstr(output.err, "\n  ");

    assert_non_null(line);
    assert_int_equal(sscanf(line, " %127s %lf blocks, lower bound %lf", name, blocks, bound), 3);
    snprintf(path, 512, "%s/%s", trace, name);
}

CASE(steps_of_a_program_are_written_and_packed)
{
    double blocks, bound;
    char path[512];
    RECORD(0, FL_LOOP, "fixed", "12", "declare");
    assert_says(output.out, "done\n"); /* the program's own */
    assert_true(number(output.err, "faultplan: ", 0) >= 3);
    assert_says(output.err, " steps of 1 context in /tmp/faultless-test-");
    read_report(path, &blocks, &bound);
    /* the step's 120 blocks, but for those below the least large one, and what realloc took in
     * two */
    assert_true(blocks >= 100 && blocks <= 140);
    assert_true(bound > 1 << 20);

    RUN(0, "pack", path);
    assert_true(is_equal(number(output.out, "buffers ", 0), blocks));
    assert_true(is_equal(number(output.out, "lower bound ", 0), bound));
    assert_true(number(output.out, "ratio ", 0) < 1.05);
    RUN(0, "draw", path);
    assert_true(is_equal((double)count_of(output.out, "<rect class=\"buffer "), blocks));
}

/* Of each block its alignment, the thread that asked for it and the node of its memory. */
CASE(a_row_says_who_asked_and_where_it_lay)
{
    double blocks, bound;
    char path[512], line[256];
    unsigned long long size, align;
    unsigned thread, node, rows = 0;
    RECORD(0, FL_LOOP, "fixed", "12", "declare");
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

CASE(each_run_counts_its_own_steps)
{
    RECORD(0, FL_LOOP, "fixed", "12", "declare");
    double first = number(output.err, "faultplan: ", 0);
    RECORD(0, FL_LOOP, "fixed", "12", "declare", "2");
    assert_says(output.err, "steps of 2 contexts in");
    assert_int_equal(count_of(output.err, " blocks, lower bound "), 2);
    assert_true(number(output.err, "faultplan: ", 0) <= 3 * first);
}

CASE(why_there_is_no_step_is_said)
{
    RECORD(125, "true"); /* for scripts */
    assert_string_equal(output.err,
                        "faultplan: no step was seen\n"
                        "faultplan: there was no large request (FAULTLESS_THRESHOLD)\n");
    RECORD(3, "sh", "-c", "exit 3");
    RECORD(125, FL_LOOP, "fixed", "1", "declare");
    assert_says(output.err, " large requests, and too few steps: ");
    RECORD(125, "env", "-u", "LD_PRELOAD", "true");
    assert_says(output.err, "faultplan: no process told of itself: ");
    fl_child_run(ARGV(FL_FAULTPLAN, "record", "-o", trace, "true"), ARGV("FAULTLESS_DISABLE=all"));
    assert_says(output.err, "faultplan: faultless was not active: ");
}

CASE(the_exit_status_is_the_programs)
{
    RECORD(7, "sh", "-c", "exit 7");
    RECORD(128 + 15, "sh", "-c", "kill -TERM $$");
    RECORD(127, "/nowhere/at/all");
    assert_string_equal(output.err, "faultplan: /nowhere/at/all: No such file or directory\n");
    RECORD(126, "/tmp");
    RUN(125, "record", "-o", "/nowhere/at/all", "--", "true");
    RUN(125, "record", "-o", FL_LOOP, "--", "true");
    RUN(125, "record");
}

CASE(no_library_is_said_and_nothing_is_left)
{
    struct stat s;
    fl_child_ends(0, ARGV("rm", "-rf", trace), NULL);
    fl_child_ends(125, ARGV(FL_FAULTPLAN, "record", "-o", trace, "--", "true"),
                  ARGV("FAULTLESS_LIB=/nowhere/at/all.so"));
    assert_int_equal(count_of(output.err, "\n"), 1);
    assert_int_not_equal(stat(trace, &s), 0);
}

static void setup(void)
{
    fl_child_make_folder();
    snprintf(trace, sizeof trace, "%s/trace", fl_child_folder);
}

CASES_MAIN(.group_setup = setup, .group_teardown = fl_child_remove_folder)
