/* faultstat run, judged from outside: exit status, output left alone, faults against a victim that
 * takes a known number of them, marks. Never a time. */
#include "cases.h"
#include "child.h"

/* Faults of a step that the victim did not ask for: stack growth, a first call through the PLT. */
enum { FL_TOLERANCE = 8, FL_PAGES = 3000, FL_HELPER_PAGES = 700, FL_STEPS = 6 };

#define RUN(status, ...) fl_child_ends(status, ARGV(FL_FAULTSTAT, "run", __VA_ARGS__), NULL)

static void assert_near(double value, double wanted)
{
    if (value < wanted || value > wanted + FL_TOLERANCE) {
        fail_msg("%.1f is not within %.0f..%.0f", value, wanted, wanted + FL_TOLERANCE);
    }
}

CASE(exit_status_is_the_commands)
{
    RUN(7, "--", "sh", "-c", "exit 7");
    RUN(128 + 15, "--", "sh", "-c", "kill -TERM $$");
}

/* The command sends the signals itself, to its parent: no race, no waiting. */
CASE(termination_is_passed_on_and_interrupts_are_left_to_the_command)
{
    RUN(128 + 15, "--", "sh", "-c", "kill -TERM $PPID; sleep 60");
    RUN(4, "--", "sh", "-c", "kill -INT $PPID; kill -QUIT $PPID; exit 4");
}

CASE(a_command_that_cannot_run_ends_as_in_a_shell)
{
    RUN(127, "--", "/nonexistent/program");
    assert_says(output.err, "/nonexistent/program: No such file");
    RUN(126, "--", "/etc/passwd");
}

CASE(wrong_options_are_refused_before_anything_runs)
{
    RUN(125, "--no-such-option", "--", "echo", "ran");
    assert_string_equal(output.out, "");
    RUN(125, "--steps-warmup", "x", "--", "echo", "ran");
    assert_string_equal(output.out, "");
    fl_child_ends(125, ARGV(FL_FAULTSTAT, "run"), NULL);
    fl_child_ends(125, ARGV(FL_FAULTSTAT, "walk"), NULL);
}

CASE(the_commands_output_and_options_are_its_own)
{
    RUN(0, "echo", "--json", "-o", "x");
    assert_string_equal(output.out, "--json -o x\n");
    assert_says(output.err, "minor faults");
}

CASE(output_goes_to_the_file_named)
{
    char path[] = "/tmp/faultstat-test-XXXXXX";
    int fd = mkstemp(path);
    char text[16384] = "";
    assert_true(fd >= 0);
    RUN(0, "--json", path, "--", "true");
    assert_string_equal(output.err, "");
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    const json_t *root = fl_child_json(text);
    assert_int_equal(fl_child_number(root, "exit"), 0);
    RUN(0, "--json", path, "-o", "-", "--", "true"); /* both forms */
    assert_says(output.out, "minor faults");
    close(fd);
    unlink(path);
    RUN(125, "--json", "-o", path, "--", "true");
    assert_says(output.err, "'-o' is no name for a file to be written");
    assert_int_not_equal(access(path, F_OK), 0);
    RUN(125, "--json", "/nonexistent/folder/file", "--", "true");
}

static double faults_of(const char *pages)
{
    RUN(0, "--json=-", "--", "sh", "-c", "exec \"$0\" \"$@\" >/dev/null", FL_VICTIM, pages, "0",
        "0");
    const json_t *root = fl_child_json(output.out);
    double faults = fl_child_number(root, "faults");
    return faults;
}

/* Two starts of one program differ by some faults (address space layout): hence 64. */
CASE(a_run_counts_the_faults_that_were_taken)
{
    double extra = faults_of("5000") - faults_of("0");
    if (extra < 5000 - 64 || extra > 5000 + 64) {
        fail_msg("5000 pages made %.0f faults", extra);
    }
}

static const json_t *run_victim(const char *mode)
{
    RUN(0, "--json", "/dev/stderr", "--", FL_VICTIM, "3000", "700", "6", mode);
    return fl_child_json(output.err);
}

static void steps_have_their_faults_and_helpers_are_apart(const char *mode)
{
    const json_t *root = run_victim(mode);
    const json_t *steps = json_object_get(root, "steps");
    assert_string_equal(output.out, "marks 7\n");
    assert_int_equal(json_array_size(steps), FL_STEPS);
    for (size_t i = 1; i < FL_STEPS; i++) {
        assert_near(fl_child_number(json_array_get(steps, i), "minor"), FL_PAGES);
        assert_near(fl_child_number(json_array_get(steps, i), "helper_minor"), FL_HELPER_PAGES);
    }
    assert_near(fl_child_number(root, "step_faults"), FL_PAGES);
    assert_near(fl_child_number(root, "step_helper_faults_mean"), FL_HELPER_PAGES);
    double helper = fl_child_number(root, "helper_faults");
    assert_true(helper >= FL_STEPS * FL_HELPER_PAGES && helper < (FL_STEPS + 1) * FL_HELPER_PAGES);
    double all = fl_child_number(root, "faults");
    assert_true(all >= FL_STEPS * FL_PAGES && all < FL_STEPS * FL_PAGES + 1000);
}

CASE_IS(each_step_has_its_faults_and_helpers_are_apart,
        steps_have_their_faults_and_helpers_are_apart(""))

CASE_IS(the_uring_workers_of_a_helper_are_helpers,
        steps_have_their_faults_and_helpers_are_apart("ring"))

CASE(the_uring_workers_of_the_program_are_not)
{
    const json_t *root = run_victim("alien");
    assert_near(fl_child_number(root, "step_faults"), FL_PAGES + FL_HELPER_PAGES);
    assert_near(fl_child_number(root, "step_helper_faults_mean"), 0);
}

CASE(marks_of_a_grandchild_count)
{
    RUN(0, "--json", "/dev/stderr", "--", "sh", "-c", "\"$0\" 3000 0 6; true", FL_VICTIM);
    const json_t *root = fl_child_json(output.err);
    assert_int_equal(json_array_size(json_object_get(root, "steps")), FL_STEPS);
    assert_near(fl_child_number(root, "step_faults"), FL_PAGES);
}

CASE(marks_of_another_process_are_answered_and_ignored)
{
    const json_t *root = run_victim("fork");
    assert_string_equal(output.out, "marks 7\n");
    assert_int_equal(json_array_size(json_object_get(root, "steps")), FL_STEPS);
    assert_int_equal(fl_child_number(root, "foreign_marks"), FL_STEPS);
}

CASE(marks_stop_when_the_program_closes_the_channel)
{
    const json_t *root = run_victim("close");
    assert_string_equal(output.out, "marks 1\n");
    assert_int_equal(json_array_size(json_object_get(root, "steps")), 0);
}

CASE(without_faultstat_a_mark_does_nothing)
{
    static const char *const argv[] = {FL_VICTIM, "1", "1", "3", NULL};
    fl_child_run(argv, ARGV("FAULTSTAT_STEP_FD"));
    assert_string_equal(output.out, "marks 0\n");
    fl_child_run(argv, ARGV("FAULTSTAT_STEP_FD=1"));
    assert_string_equal(output.out, "marks 0\n"); /* a number that is another file's */
}

CASE(python_marks_as_c_does)
{
    static const char script[] = "import sys; sys.path.insert(0, sys.argv[1]); import step\n"
                                 "print([step.mark() for i in range(4)])";
    RUN(0, "--json", "/dev/stderr", "--", "python3", "-c", script, FL_WORKLOADS);
    assert_string_equal(output.out, "[True, True, True, True]\n");
    const json_t *root = fl_child_json(output.err);
    assert_int_equal(json_array_size(json_object_get(root, "steps")), 3);
    fl_child_run(ARGV("python3", "-c", script, FL_WORKLOADS), NULL);
    assert_string_equal(output.out, "[False, False, False, False]\n");
}

CASE(a_bare_byte_is_a_mark_too)
{
    static const char script[] =
        "import os, socket; s = socket.socket(fileno=int(os.environ['FAULTSTAT_STEP_FD']))\n"
        "for i in range(4): s.send(b's'); assert len(s.recv(1)) == 1";
    RUN(0, "--json", "/dev/stderr", "--", "python3", "-c", script);
    const json_t *root = fl_child_json(output.err);
    assert_int_equal(json_array_size(json_object_get(root, "steps")), 3);
}

CASES_MAIN()
