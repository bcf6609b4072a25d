/* faultstat compare, judged by its JSON: what ran, in which order, in which environment. */
#include "cases.h"
#include "child.h"

#define COMPARE(status, ...)                                                                       \
    fl_child_ends(status, ARGV(FL_FAULTSTAT, "compare", __VA_ARGS__),                              \
                  ARGV("MALLOC_CONF=tcache:true"))

static const json_t *allocator(const json_t *root, size_t i)
{
    const json_t *object = fl_child_item(root, "allocators", i);
    assert_non_null(object);
    return object;
}

static const json_t *run_of(const json_t *root, size_t i, size_t round)
{
    const json_t *run = fl_child_item(allocator(root, i), "runs", round);
    assert_non_null(run);
    return run;
}

CASE(an_absent_allocator_is_named_and_skipped)
{
    COMPARE(0, "-a", "glibc", "-a", "ghost=/nonexistent/ghost.so", "-n", "1", "-j", "-", "--",
            "true");
    assert_says(output.err, "ghost: not found, skipped");
    const json_t *root = fl_child_json(output.out);
    assert_true(json_is_true(json_object_get(allocator(root, 0), "present")));
    assert_true(json_is_false(json_object_get(allocator(root, 1), "present")));
    assert_null(json_object_get(allocator(root, 1), "runs"));
    COMPARE(0, "-a", "ghost=/nonexistent/ghost.so", "-a", "glibc", "-n", "1", "-j", "-", "--",
            "true");
    assert_says(output.err, "ghost            absent: /nonexistent/ghost.so: No such");
    root = fl_child_json(output.out);
    assert_true(fl_child_number(json_object_get(allocator(root, 1), "ratio"), "faults") == 1.0);
    COMPARE(125, "-a", "ghost=/nonexistent/ghost.so", "--", "true");
}

CASE(wrong_options_are_refused)
{
    COMPARE(125, "-a", "nosuchmalloc", "--", "echo", "ran");
    assert_says(output.err, "no allocator 'nosuchmalloc': --help lists those that are known");
    COMPARE(125, "-n", "0", "--", "true");
    COMPARE(125, "-e", "novalue", "--", "true");
    COMPARE(125, "-a", "x=glibc,lower=1", "--", "true");
    COMPARE(125, "-a", "glibc");
    assert_string_equal(output.out, "");
}

/* Three allocators, two rounds: 0 1 2, then 1 2 0. */
CASE(rounds_are_interleaved_and_rotate)
{
    static const int wanted[3][2] = {{0, 5}, {1, 3}, {2, 4}};
    COMPARE(0, "-a", "glibc,glibc-tuned", "-a", "other=glibc", "-n", "2", "-j", "-", "--", "true");
    const json_t *root = fl_child_json(output.out);
    for (size_t i = 0; i < 3; i++) {
        for (size_t round = 0; round < 2; round++) {
            assert_int_equal(fl_child_number(run_of(root, i, round), "order"), wanted[i][round]);
        }
    }
    assert_says(output.err, "[6/6] round 2 of 2: glibc\n");
}

CASE(variants_set_their_variables_and_summaries_are_carried)
{
    COMPARE(
        0, "-e", "COMMON=7", "-a", "plain=glibc", "-a", "odd=glibc,FL_A=3,FL_B=1,2", "-n", "1",
        "-j", "-", "--", "sh", "-c",
        "test \"$FL_B\" = 1,2 -o -z \"$FL_B\" || exit 1; test -z \"$MALLOC_CONF\" || exit 1;"
        "echo SUMMARY {\\\"a\\\": 1}; echo \"SUMMARY {\\\"a\\\": ${FL_A:-0}, \\\"c\\\": $COMMON, "
        "\\\"s\\\": \\\"text\\\"}\"");
    const json_t *root = fl_child_json(output.out);
    const json_t *plain = json_object_get(run_of(root, 0, 0), "reported");
    const json_t *odd = json_object_get(run_of(root, 1, 0), "reported");
    assert_int_equal(fl_child_number(plain, "a"), 0);
    assert_int_equal(fl_child_number(plain, "c"), 7);
    assert_int_equal(fl_child_number(odd, "a"), 3);
    assert_null(json_object_get(odd, "s"));
    assert_says(output.err, "MALLOC_CONF is not passed on to the runs; "
                            "'-a jemalloc -a x=jemalloc,MALLOC_CONF=...' compares with it\n");
}

CASE(only_that_library_is_preloaded)
{
    COMPARE(0, "-a", "glibc", "-a", "lib=" FL_PRELOAD, "-n", "1", "-v", "-j", "-", "--", "sh", "-c",
            "echo \"<$LD_PRELOAD>\"");
    assert_says(output.err, "glibc:\n<>\n");
    assert_says(output.err, "lib:\n<" FL_PRELOAD ">\n");
}

CASE(the_version_is_what_the_library_or_its_file_says)
{
    fl_child_ends(0, ARGV("cp", FL_PRELOAD, FL_FOLDER "/named-0.so"), NULL);
    COMPARE(0, "-a", "mi=" FL_VERSIONED, "-a", "named=" FL_FOLDER "/named-0.so", "-a",
            "lib=" FL_PRELOAD, "-n", "1", "-j", "-", "--", "true");
    static const char *const versions[] = {"mimalloc 3.4.3", "0", "unknown"};
    const json_t *root = fl_child_json(output.out);
    for (size_t i = 0; i < 3; i++) {
        const json_t *version = json_object_get(allocator(root, i), "version");
        assert_string_equal(json_string_value(version), versions[i]);
    }
}

CASE(the_tuned_settings_are_the_strong_ones)
{
    COMPARE(0, "-a", "glibc-tuned", "-n", "1", "-v", "-j", "-", "--", "sh", "-c",
            "echo $GLIBC_TUNABLES");
    assert_says(output.err, "glibc.malloc.mmap_threshold=1073741824:"
                            "glibc.malloc.trim_threshold=68719476736:"
                            "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1\n");
}

CASE(a_failed_run_shows_in_the_table_and_the_exit_status)
{
    COMPARE(1, "-a", "glibc", "-a", "bad=glibc,FL_FAIL=1", "-n", "2", "--", "sh", "-c",
            "test -z \"$FL_FAIL\" || { echo broken >&2; exit 9; }");
    assert_says(output.out, "FAILED 2 of 2, exit 9");
    assert_says(output.err, "broken");
    COMPARE(125, "-a", "glibc", "-n", "1", "--", "/nonexistent/program");
}

/* The mistake is the command's: ten rounds of it would say no more. */
CASE(a_command_that_always_fails_is_run_once_under_each)
{
    COMPARE(1, "-a", "glibc,glibc-tuned", "-n", "4", "-j", "-", "--", "sh", "-c",
            "echo broken >&2; exit 9");
    const json_t *root = fl_child_json(output.out);
    assert_int_equal((int)fl_child_number(root, "runs_done"), 2);
    assert_true(json_is_false(json_object_get(root, "complete")));
    assert_says(output.err, "the command failed under every allocator; it is not run");
    COMPARE(1, "-a", "glibc,glibc-tuned", "-n", "4", "--", "sh", "-c", "exit 9");
    assert_says(output.out, "FAILED 1 of 1, exit 9");
    assert_says(output.out, "none: every run of the command failed\n");
}

CASE(an_interrupt_ends_the_comparison_after_that_run)
{
    COMPARE(130, "-a", "glibc,glibc-tuned", "-n", "3", "-j", "-", "--", "sh", "-c",
            "kill -INT $PPID");
    const json_t *root = fl_child_json(output.out);
    assert_int_equal(json_array_size(json_object_get(allocator(root, 0), "runs")), 0);
    assert_int_equal(json_array_size(json_object_get(allocator(root, 1), "runs")), 0);
}

CASE(long_output_neither_blocks_nor_hides_the_summary)
{
    COMPARE(0, "-a", "glibc", "-n", "1", "-j", "-", "--", "sh", "-c",
            "yes 0123456789 | head -c 1000000; yes 0123456789 | head -c 1000000 >&2; echo;"
            "echo 'SUMMARY {\"a\": 4}'");
    const json_t *root = fl_child_json(output.out);
    assert_int_equal(fl_child_number(json_object_get(run_of(root, 0, 0), "reported"), "a"), 4);
}

CASE(steps_are_summed_up_for_each_allocator)
{
    COMPARE(0, "-a", "glibc,glibc-tuned", "-n", "1", "-j", "-", "--", FL_VICTIM, "3000", "700",
            "6");
    assert_says(output.err, "faults/step");
    const json_t *root = fl_child_json(output.out);
    assert_true(json_is_true(json_object_get(root, "has_steps")));
    for (size_t i = 0; i < 2; i++) {
        const json_t *median = json_object_get(allocator(root, i), "median");
        double faults = fl_child_number(median, "step_faults");
        assert_true(faults >= 3000 && faults <= 3008);
        assert_int_equal(fl_child_number(run_of(root, i, 0), "steps"), 6);
    }
    double ratio = fl_child_number(json_object_get(allocator(root, 1), "ratio"), "step_faults");
    assert_true(ratio > 0.99 && ratio < 1.01);
}

CASE(the_table_has_a_row_an_allocator_and_the_machine)
{
    COMPARE(0, "-a", "glibc,glibc-tuned", "-n", "1", "-m", "4", "--", "true");
    assert_says(output.out, "machine   Linux ");
    assert_says(output.out, "\nglibc            glibc 2.");
    assert_says(output.out, "\nallocator ");
    assert_says(output.out, "\nratio to glibc ");
}

CASES_MAIN()
