/* Steps by lines of output, several processes, ranks of a job. */
#include "cases.h"
#include "child.h"

#define RUN(status, ...) fl_child_ends(status, ARGV(__VA_ARGS__), NULL)
/* A shell script; $0 is faultstat, $1 a folder that is there. */
#define SHELL(status, script) RUN(status, "sh", "-c", script, FL_FAULTSTAT, fl_child_folder)

/* The victim is a child that has ended and was waited for before its line comes. */
#define STEPS "for i in 1 2 3 4 5 6; do " FL_VICTIM " 800 0 0 >/dev/null; echo step $i; done"

CASE(lines_of_the_output_are_steps_of_all_processes)
{
    RUN(0, FL_FAULTSTAT, "run", "-j", "/dev/stderr", "-r", "^step [0-9]+$", "--", "sh", "-c",
        STEPS);
    assert_string_equal(output.out, "step 1\nstep 2\nstep 3\nstep 4\nstep 5\nstep 6\n");
    const json_t *root = fl_child_json(output.err);
    assert_int_equal(json_array_size(json_object_get(root, "steps")), 5);
    assert_true(fl_child_number(root, "faults") >= 6 * 800);
}

/* Each line waits for an answer, so that what follows it is in the next step. */
CASE(a_step_has_the_faults_between_its_lines)
{
    static const char script[] =
        "import mmap, sys, time\n"
        "for i in range(6):\n"
        "    m = mmap.mmap(-1, 500 * 4096); m.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "    for k in range(500): m[k * 4096] = 1\n"
        "    m.close(); print('loss', i, end='\\r'); sys.stdout.flush(); time.sleep(0.05)\n";
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-n", "1", "-j", "-", "-r", "^loss", "-w", "0",
        "--", "python3", "-c", script);
    const json_t *root = fl_child_json(output.out);
    const json_t *one = fl_child_item(root, "allocators", 0);
    double faults = fl_child_number(json_object_get(one, "median"), "step_faults");
    assert_true(faults >= 500 && faults < 600);
}

CASE(a_program_sees_a_terminal_and_so_flushes_each_line)
{
    RUN(0, FL_FAULTSTAT, "run", "-r", "x", "--", "python3", "-c",
        "import sys; print(sys.stdout.isatty(), sys.stderr.isatty())");
    assert_string_equal(output.out, "True False\n");
    RUN(125, FL_FAULTSTAT, "run", "-r", "(", "--", "echo", "ran");
    assert_string_equal(output.out, "");
    RUN(0, FL_FAULTSTAT, "run", "-r", "nothing", "--", "echo", "line");
    assert_says(output.err, "no step: 0 lines of the output matched 'nothing'");
}

CASE(lines_that_are_alike_are_proposed_as_steps)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-n", "1", "--", "sh", "-c",
        "echo start; for i in 1 2 3 4 5 6; do echo \"[$i/6] loss 0.$i\"; done");
    assert_says(output.out, "6 lines of the output are alike; --step-regex '^\\[[0-9]' gives");
}

CASE(children_are_counted)
{
    RUN(0, FL_FAULTSTAT, "run", "-j", "-", "--", "sh", "-c", "sleep 0.5 & sleep 0.5; wait");
    const json_t *root = fl_child_json(output.out);
    assert_int_equal(fl_child_number(root, "processes"), 3);
    assert_true(fl_child_number(root, "pss_peak_mib") > 0);
}

CASE(each_rank_has_a_file_of_its_own)
{
    SHELL(0, "export OMPI_COMM_WORLD_SIZE=2; for r in 0 1; do OMPI_COMM_WORLD_RANK=$r $0 run "
             "-j $1/mpi -- true; OMPI_COMM_WORLD_RANK=$r $0 run -j $1/a.mpi.json -- true; done; "
             "unset OMPI_COMM_WORLD_SIZE; export WORLD_SIZE=2;"
             "for r in 0 1; do RANK=$r $0 run -j $1/torch-%r-%h-%% -- true; done; unset WORLD_SIZE;"
             "$0 run -j $1/alone -- true; $0 run -j $1/%z -- true; echo $?;"
             "cd $1; ls | sed s/$(hostname)/HOST/");
    assert_string_equal(
        output.out,
        "125\na.mpi.0.json\na.mpi.1.json\nalone\nmpi.0\nmpi.1\ntorch-0-HOST-%\ntorch-1-HOST-%\n");
    assert_says(output.err, "%r, %h, %p and %% are known");
}

CASE(merge_shows_the_slowest_rank_first)
{
    SHELL(0, "t='\"schema\": 2, \"kind\": \"run\", \"faults\": 7'; cd $1;"
             "echo \"{$t, \\\"rank\\\": 0, \\\"host\\\": \\\"a\\\", \\\"step_ms\\\": 10}\" >m0;"
             "echo \"{$t, \\\"rank\\\": 1, \\\"host\\\": \\\"b\\\", \\\"step_ms\\\": 15}\" >m1;"
             "echo \"{$t, \\\"rank\\\": 2, \\\"host\\\": \\\"c\\\", \\\"step_ms\\\": 9}\" >m2;"
             "$0 merge -j merged m0 m1 m2; cat merged >&2");
    const char *b = strstr(output.out, "\n1 ");
    const char *a = strstr(output.out, "\n0 ");
    const char *c = strstr(output.out, "\n2 ");
    assert_true(b != NULL && a != NULL && c != NULL && b < a && a < c);
    assert_says(output.out, "\ncolumns   step ms: time of a steady step, median; faults/step: ");
    assert_says(output.out, "slowest: rank 1 on b, 1.50 x the median step of 3 ranks\n");
    const json_t *root = fl_child_json(output.err);
    const json_t *ranks = json_object_get(root, "ranks");
    assert_int_equal(fl_child_number(json_array_get(ranks, 0), "rank"), 1);
    assert_int_equal(json_array_size(ranks), 3);
    SHELL(0, "echo '{}' >$1/odd; $0 merge $1/odd; echo $?; $0 merge $1/none; echo $?");
    assert_string_equal(output.out, "125\n125\n");
    assert_says(output.err, "/odd: no record of faultstat run");
}

CASE(ranks_of_real_runs_are_merged)
{
    SHELL(0, "export WORLD_SIZE=2; for r in 0 1; do RANK=$r $0 run -j $1/real-%r -- " FL_VICTIM
             " $((r * 100 + 10)) 0 6 >/dev/null; done; $0 merge $1/real-*");
    assert_says(output.out, "x median");
    assert_says(output.out, "x the median step of 2 ranks");
}

CASE(each_rank_has_a_recording_of_its_own)
{
    SHELL(
        0,
        "cd $1; for r in 0 1; do OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$r"
        " $0 record -Pq -o rec -- true;"
        " OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=$r $0 record -Pq -o rec-%r-%z -- true; done;"
        "ls | grep ^rec");
    assert_string_equal(output.out, "rec.0\nrec.1\n");
    assert_says(output.err, "%r, %h, %p and %% are known");
}

CASE(lines_of_the_output_are_steps_of_a_recording)
{
    SHELL(0, "$0 record -Pq -o $1/lines -r '^step' -- sh -c 'for i in 1 2 3; do echo step $i; done;"
             " echo more'; cat $1/lines >&2");
    assert_string_equal(output.out, "step 1\nstep 2\nstep 3\nmore\n");
    const json_t *root = fl_child_json(output.err);
    assert_int_equal(json_array_size(json_object_get(root, "steps")), 2);
}

CASES_MAIN(IN_FOLDER)
