/* faultstat compare says which allocator really served a program. */
#include "cases.h"
#include "child.h"

/* Compare a command under these allocators; its JSON. The caller releases it. */
static const json_t *compare_under(const char *allocators, const char *const command[])
{
    const char *argv[24] = {FL_FAULTSTAT, "compare", "-a", allocators, "-n", "2", "-j", "-", "--"};
    size_t used = 9;
    for (size_t i = 0; command[i] != NULL; i++) {
        argv[used++] = command[i];
    }
    argv[used] = NULL;
    fl_child_run(argv, ARGV("FAULTLESS_LIB"));
    return fl_child_json(output.out);
}

static const json_t *compare(const char *const command[])
{
    return compare_under("glibc,faultless", command);
}

static const char *text_of(const json_t *root, size_t i, const char *key)
{
    const json_t *one = fl_child_item(root, "allocators", i);
    const char *text = fl_child_text(one, key);
    assert_non_null(text);
    return text;
}

static void assert_not_measured(const json_t *root, const char *served_by, const char *reason)
{
    const json_t *one = fl_child_item(root, "allocators", 1);
    assert_int_equal(output.status, 1);
    assert_string_equal(text_of(root, 1, "served_by"), served_by);
    if (strstr(text_of(root, 1, "served_reason"), reason) == NULL) {
        fail_msg("'%s' is not '%s'", text_of(root, 1, "served_reason"), reason);
    }
    assert_string_equal(text_of(root, 1, "verdict"), "not compared");
    assert_null(json_object_get(json_object_get(one, "ratio"), "faults"));
    assert_null(json_object_get(json_object_get(one, "median"), "faults"));
}

CASE(a_plain_program_is_served)
{
    const json_t *root = compare(ARGV(FL_LARGE));
    assert_int_equal(output.status, 0);
    assert_string_equal(text_of(root, 0, "served_by"), "ok");
    assert_string_equal(text_of(root, 1, "served_by"), "ok");
    const json_t *runs = json_object_get(fl_child_item(root, "allocators", 1), "runs");
    assert_true(fl_child_number(json_array_get(runs, 0), "library_requests") >= 8);
}

CASE(steps_that_the_program_declares_are_named)
{
    const json_t *root = compare(ARGV(FL_LOOP, "fixed", "40", "declare"));
    assert_int_equal(output.status, 0);
    assert_says(output.err, "warning:  steps: the program declared ");
    const json_t *runs = json_object_get(fl_child_item(root, "allocators", 1), "runs");
    double steps = fl_child_number(json_array_get(runs, 0), "library_plan_steps");
    assert_true(steps > 0 && steps <= 40);
}

CASE(a_static_program_is_not)
{
    assert_not_measured(compare(ARGV(FL_STATIC)), "not loaded", "static program");
    assert_says(output.err, "not compared: not loaded: static program");
    assert_says(output.err, "none: nothing could be compared with glibc");
}

CASE_IS(an_allocator_in_the_program_shadows_all,
        assert_not_measured(compare(ARGV(FL_OWN_MALLOC)), "shadowed", "the program's own malloc"))

CASE_IS(a_sanitizer_is_named,
        assert_not_measured(compare(ARGV(FL_ASAN)), "shadowed", "a sanitizer in the program"))

CASE(a_library_before_ours_in_ld_preload_shadows_it)
{
    assert_not_measured(
        compare(ARGV("sh", "-c", "LD_PRELOAD=" FL_OTHER_MALLOC ":$LD_PRELOAD exec " FL_LARGE)),
        "shadowed", "victim_other_malloc.so");
    assert_says(output.err, "shadowed by victim_other_malloc.so");
}

CASE(one_behind_ours_does_not)
{
    const json_t *root =
        compare(ARGV("sh", "-c", "LD_PRELOAD=$LD_PRELOAD:" FL_OTHER_MALLOC " exec " FL_LARGE));
    assert_string_equal(text_of(root, 1, "served_by"), "ok");
}

/* The C library's row is of another allocator then, and not measured; the program's own can be. */
CASE(what_the_program_brings_along_is_a_reference)
{
    char line[600];
    snprintf(line, sizeof(line), /* by its file's name it is known for an allocator */
             "cp " FL_OTHER_MALLOC
             " %s/libhoard.so; LD_PRELOAD=$LD_PRELOAD:%s/libhoard.so exec " FL_LARGE,
             fl_child_folder, fl_child_folder);
    const char *const *command = ARGV("sh", "-c", line);
    assert_string_equal(text_of(compare(command), 0, "served_by"), "shadowed");
    const json_t *root = compare_under("own,faultless", command);
    assert_int_equal(output.status, 0);
    assert_string_equal(text_of(root, 0, "verdict"), "reference");
    assert_string_equal(text_of(root, 1, "served_by"), "ok");
    assert_string_not_equal(text_of(root, 1, "verdict"), "not compared");
    assert_says(output.err, "the program's own allocator, whichever it is");
}

CASE(a_program_that_drops_the_preload_is_found_out)
{
    assert_not_measured(compare(ARGV("sh", "-c", "unset LD_PRELOAD; exec " FL_LARGE)), "not loaded",
                        "the loader did not map it");
}

CASES_MAIN(.group_setup = fl_child_make_folder, .group_teardown = fl_child_remove_folder)
