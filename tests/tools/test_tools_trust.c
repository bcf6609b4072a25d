/* What a comparison must not get wrong: its input, its files, its interrupts, its words. */
#include "cases.h"
#include "child.h"

#include <signal.h>
#include <sys/stat.h>

#define RUN(status, ...) fl_child_ends(status, ARGV(__VA_ARGS__), NULL)
/* A shell script; $0 is faultstat, $1 a folder that is there. */
#define SHELL(status, script) RUN(status, "sh", "-c", script, FL_FAULTSTAT, fl_child_folder)

/* Every run's reported number `n`, which must be `wanted`, and how many runs there were. */
static size_t runs_that_reported(const char *json, double wanted)
{
    const json_t *root = fl_child_json(json);
    size_t count = 0;
    size_t i;
    size_t k;
    const json_t *one;
    const json_t *run;
    json_array_foreach(json_object_get(root, "allocators"), i, one)
    {
        json_array_foreach(json_object_get(one, "runs"), k, run)
        {
            double n = fl_child_number(json_object_get(run, "reported"), "n");
            if (n < wanted || n > wanted) {
                fail_msg("a run reported %g, not %g", n, wanted);
            }
            count++;
        }
    }
    return count;
}

#define COUNT_BYTES "sh -c 'echo SUMMARY {\\\"n\\\": $(wc -c)}'"

CASE(input_of_a_pipe_is_replayed_to_each_run)
{
    SHELL(0, "printf 12345 | $0 compare -a glibc,glibc-tuned -n 2 -j - -- " COUNT_BYTES);
    assert_int_equal(runs_that_reported(output.out, 5), 4);
}

CASE(input_of_a_file_is_replayed_from_where_it_stood)
{
    SHELL(0, "printf 'ab\\ncdefg' >$1/f; { read line; $0 compare -a glibc -n 3 -j - -- " COUNT_BYTES
             "; } <$1/f");
    assert_int_equal(runs_that_reported(output.out, 5), 3);
    SHELL(0, "printf 1234567 >$1/f; $0 compare --input $1/f -a glibc -n 2 -j - -- " COUNT_BYTES
             " </dev/null");
    assert_int_equal(runs_that_reported(output.out, 7), 2);
    SHELL(0, "$0 compare -a glibc -n 2 -j - -- " COUNT_BYTES " <&-");
    assert_int_equal(runs_that_reported(output.out, 0), 2);
    SHELL(125, "$0 compare --input $1/none -a glibc -- true");
    assert_says(output.err, "/none: No such file");
}

CASE(figures_do_not_cut_off_the_log)
{
    SHELL(0, "exec 2>$1/log; echo before >&2; $0 run -j /dev/stderr -- sh -c 'echo during >&2'; "
             "cat $1/log");
    assert_says(output.out, "before\nduring\n{");
}

CASE(a_socket_will_do_as_standard_error)
{
    RUN(0, "python3", "-c",
        "import socket, subprocess, sys\n"
        "a, b = socket.socketpair()\n"
        "r = subprocess.run([sys.argv[1], 'run', '-j', '/dev/stderr', '--', 'true'], stderr=b)\n"
        "b.close(); print(r.returncode, '\"faults\"' in a.makefile().read())",
        FL_FAULTSTAT);
    assert_string_equal(output.out, "0 True\n");
}

CASE(a_file_that_cannot_be_written_is_named_before_any_run)
{
    SHELL(0,
          "$0 compare -a glibc -n 1 -j /nonexistent/x.json -- touch $1/ran; echo $? $(ls $1/ran)");
    assert_string_equal(output.out, "125\n");
    assert_says(output.err, "faultstat: /nonexistent/x.json: No such file or directory");
    SHELL(0, "$0 run -j $1 -- touch $1/ran; echo $? $(ls $1/ran)");
    assert_string_equal(output.out, "125\n");
    assert_says(output.err, fl_child_folder);
    SHELL(125, "$0 compare -a glibc -n 1 --csv /dev/full -- true");
    assert_says(output.err, "/dev/full: No space left");
}

CASE(a_file_keeps_its_contents_until_there_are_new_ones)
{
    SHELL(2, "echo old >$1/j; $0 run -j $1/j -- /nonexistent/program; cat $1/j;"
             "$0 run -j $1/new -- /nonexistent/program; ls $1/new");
    assert_string_equal(output.out, "old\n");
}

CASE(the_first_that_was_measured_is_what_others_are_compared_with)
{
    RUN(1, FL_FAULTSTAT, "compare", "-n", "1", "-a", "bad=glibc,FL_FAIL=1", "-a", "glibc", "-a",
        "x=glibc", "--", "sh", "-c", "test -z \"$FL_FAIL\"");
    assert_says(output.out, "\nbad              not compared: every run failed\n");
    assert_says(output.out, "\nratio to glibc ");
    assert_says(output.out, "\nbad              FAILED 1 of 1, exit 1");
}

CASE(a_misspelt_option_is_refused_before_any_run)
{
    RUN(125, FL_FAULTSTAT, "compare", "-n", "1", "-a", "glibc", "-a",
        "x=faultless,FAULTLESS_THRESOLD=1M", "--", "echo", "ran");
    assert_says(output.err, "x: ");
    assert_says(output.err, "FAULTLESS_THRESOLD");
    RUN(125, FL_FAULTSTAT, "compare", "-n", "1", "-a", "faultless", "-e", "FAULTLESS_DECAY=1", "--",
        "true");
    assert_says(output.err, "FAULTLESS_DECAY");
    RUN(125, FL_FAULTSTAT, "compare", "-n", "1", "-a", "faultless", "-e", "LD_PRELOAD=libm.so.6",
        "--", "true");
    assert_says(output.err, "LD_PRELOAD is what loads it");
    RUN(0, FL_FAULTSTAT, "compare", "-n", "1", "-a", "x=faultless,FAULTLESS_THRESHOLD=1M", "--",
        "true");
}

CASE(an_absent_library_says_why)
{
    fl_child_run(ARGV(FL_FAULTSTAT, "compare", "-n", "1", "-a", "glibc,faultless", "--", "true"),
                 ARGV("FAULTLESS_LIB=/nonexistent/lib.so"));
    assert_says(output.err, "FAULTLESS_LIB=/nonexistent/lib.so: No such file or directory");
    SHELL(125, "FAULTLESS_LIB=/etc/passwd $(dirname $0)/faultless true");
    assert_says(output.err, "FAULTLESS_LIB=/etc/passwd: Exec format error");
    SHELL(0, "mkdir -p \"$1/a b\"; cp " FL_PRELOAD " \"$1/a b/x.so\";"
             "$0 compare -n 1 -a glibc -a \"x=$1/a b/x.so\" -- true");
    assert_says(output.err, "holds a space or colon, which LD_PRELOAD cannot express");
    SHELL(0, "echo no library >$1/x.so; $0 compare -n 1 -a glibc -a x=$1/x.so -- true");
    assert_says(output.err, "x.so: file too short");
}

CASE(a_library_behind_a_space_is_compared)
{
    SHELL(0, "mkdir -p \"$1/a b\"; cp " FL_PRELOAD " \"$1/a b/x.so\";"
             "FAULTLESS_LIB=\"$1/a b/x.so\" $0 compare -n 1 -a glibc,faultless --"
             " dd if=/dev/zero of=/dev/null bs=16M count=20");
    assert_says(output.out, "a b/x.so)");
    assert_null(strstr(output.out, "not compared"));
}

CASE(an_interrupt_leaves_what_was_measured_and_says_so)
{
    SHELL(
        0,
        "rm -f $1/n; $0 compare -a glibc,glibc-tuned -n 3 -j $1/j --csv $1/c -- sh -c 'echo >>$0;"
        "test $(wc -l <$0) -lt 4 || kill -INT $PPID' $1/n; echo rc $?; wc -l <$1/c; cat $1/j >&2");
    assert_says(output.out, "INTERRUPTED after 3 of 6 runs");
    assert_says(output.out, "(interrupted: 3 of 6 runs)\nrc 130\n4\n");
    const json_t *root = fl_child_json(strchr(output.err, '{'));
    assert_true(json_is_false(json_object_get(root, "complete")));
    assert_int_equal(fl_child_number(root, "runs_done"), 3);
    assert_int_equal(fl_child_number(root, "runs_planned"), 6);
}

CASE(three_rounds_show_no_difference)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-a", "x=glibc", "-n", "3", "--", "sleep",
        "0.01");
    assert_says(output.out, "x the time of glibc, but too few runs to tell");
    assert_says(output.out, "\nverdict          none: too few runs to tell");
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-n", "1", "--", "true");
    assert_says(output.out, "\nwarning:  start-up: ");
}

/* Nothing wakes the child: only its end by the time limit ends it. */
CASE(a_time_limit_ends_a_run_and_its_descendants)
{
    RUN(1, FL_FAULTSTAT, "compare", "-a", "glibc", "-n", "1", "-t", "0.3", "-j", "-", "--", "sh",
        "-c", "sleep 1000 & echo child $!; trap '' TERM; wait; sleep 1000");
    assert_says(output.err, "glibc: ended after 0.3 s, the time limit");
    const json_t *root = fl_child_json(output.out);
    const json_t *one = fl_child_item(root, "allocators", 0);
    const json_t *run = fl_child_item(one, "runs", 0);
    assert_true(json_is_true(json_object_get(run, "timed_out")));
    char line[256] = "";
    FILE *stat = fopen(text_as("/proc/%d/stat", atoi(strstr(output.err, "child ") + 6)), "re");
    if (stat != NULL) {
        assert_non_null(fgets(line, sizeof(line), stat));
        fclose(stat);
        assert_says(line, ") Z"); /* not reaped yet */
    }
}

CASE(prepare_runs_before_each_run_and_may_end_all)
{
    SHELL(0, "$0 compare -a glibc,glibc-tuned -n 2 --prepare \"echo >>$1/p\" -- true; wc -l <$1/p");
    assert_says(output.out, "\n4\n");
    SHELL(2, "$0 compare -a glibc -n 2 --prepare 'echo broken; exit 3' -- touch $1/ran; echo $?;"
             "ls $1/ran");
    assert_says(output.out, "125\n");
    assert_null(strstr(output.out, "ran"));
    assert_says(output.err, "broken");
    assert_says(output.err, "--prepare failed with exit status 3");
}

CASE(names_that_are_not_utf8_make_valid_json)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "n\xff\xc3\xa9=glibc,FL_X=\xfe", "-e", "FL_Y=\xc0\x80",
        "-n", "1", "-j", "-", "--", "echo",
        "a\x80"
        "b");
    const json_t *root = fl_child_json(output.out);
    const json_t *one = fl_child_item(root, "allocators", 0);
    assert_string_equal(fl_child_text(one, "name"), "n\xef\xbf\xbd\xc3\xa9");
    const json_t *arg = fl_child_item(root, "command", 1);
    assert_string_equal(json_string_value(arg), "a\xef\xbf\xbd"
                                                "b");
    RUN(0, FL_FAULTSTAT, "run", "-j", "-", "--", "true", "\xff");
    (void)fl_child_json(output.out);
}

CASES_MAIN(IN_FOLDER)
