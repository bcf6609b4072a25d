/* The forms of the output: width, escapes, CSV, Markdown, JSON's schema. */
#include "cases.h"
#include "child.h"

#include <fcntl.h>

#define RUN(status, ...) fl_child_ends(status, ARGV(__VA_ARGS__), NULL)

/* No line is wider; one word alone, such as a path, may be. */
static void assert_fits(const char *text, size_t columns)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        size_t indent = strspn(text, " ");
        char line[512];
        snprintf(line, sizeof(line), "%.*s", (int)len, text);
        if (len > columns && strchr(line + indent, ' ') != NULL) {
            fail_msg("%zu columns: %s", len, line);
        }
        text += len + (text[len] == '\n');
    }
}

CASE(a_pipe_gets_80_columns_and_no_escapes)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc,glibc-tuned,jemalloc-tuned", "-n", "1", "-N", "--",
        FL_VICTIM, "10", "0", "6");
    assert_says(output.out, "faults/step");
    assert_says(output.out, "\nverdict          none: too few runs");
    assert_fits(output.out, 80);
    assert_null(strchr(output.out, '\033'));
    assert_null(strchr(output.err, '\033'));
    RUN(0, FL_FAULTSTAT, "run", "-o", "-", "--", FL_VICTIM, "10", "0", "6");
    assert_fits(output.out, 80);
}

/* Run `script` with a terminal of 60 columns at both outputs. Returns what came out of it. */
static const char *on_a_terminal(const char *variable)
{
    static const char script[] =
        "import fcntl, os, pty, struct, sys, termios\n"
        "pid, fd = pty.fork()\n"
        "if pid == 0:\n"
        "    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 60, 0, 0))\n"
        "    os.environ['TERM'] = 'xterm'\n"
        "    os.environ.pop('NO_COLOR', None)\n"
        "    name, _, value = sys.argv[2].partition('=')\n"
        "    os.environ[name] = value\n"
        "    os.execv(sys.argv[1], [sys.argv[1]] + sys.argv[3:])\n"
        "text = b''\n"
        "while True:\n"
        "    try: piece = os.read(fd, 4096)\n"
        "    except OSError: piece = b''\n"
        "    if not piece: break\n"
        "    text += piece\n"
        "sys.stdout.write(text.decode().replace('\\r\\n', '\\n'))\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n";
    RUN(0, "python3", "-c", script, FL_FAULTSTAT, variable, "compare", "-a", "glibc,glibc-tuned",
        "-n", "1", "--", "true");
    return output.out;
}

CASE(a_terminal_gets_its_width_and_one_line_of_progress)
{
    const char *text = on_a_terminal("FL_NOTHING=1");
    assert_says(text, "\r\033[K[2/2] round 1 of 1: glibc-tuned");
    assert_fits(strstr(text, "command "), 60);
}

CASE(a_dumb_terminal_gets_no_escapes)
{
    assert_null(strchr(on_a_terminal("TERM=dumb"), '\033'));
    assert_says(output.out, "[2/2] round 1 of 1: glibc-tuned\n");
    assert_null(strchr(on_a_terminal("TERM="), '\033'));
    assert_null(strchr(on_a_terminal("NO_COLOR=1"), '\033'));
}

CASE(csv_has_a_line_for_each_run)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "a\"b=glibc", "-n", "2", "--csv", "-", "--", "true");
    assert_int_equal(strncmp(output.out, "allocator,round,order,exit,served_by,step_ms,", 45), 0);
    assert_says(output.out, "\r\n\"a\"\"b\",0,0,0,ok,,");
    assert_says(output.out, "\r\n\"a\"\"b\",1,1,0,ok,,");
    size_t commas[3] = {0};
    const char *line = output.out;
    for (size_t i = 0; i < 3; i++, line = strchr(line, '\n') + 1) {
        for (const char *c = line; *c != '\n'; c++) {
            commas[i] += *c == ',';
        }
    }
    assert_int_equal(*line, '\0');
    assert_true(commas[0] > 30 && commas[1] == commas[0] && commas[2] == commas[0]);
}

CASE(markdown_has_tables_and_the_verdict)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-a", "a|b=glibc", "-n", "1", "--markdown", "-",
        "--", "echo", "x");
    assert_says(output.out, "`echo x`\n");
    assert_says(output.out, "| allocator | wall s | min..max | ");
    assert_says(output.out, "\n|---|---:|");
    assert_says(output.out, "\n| a\\|b | ");
    assert_says(output.out, "\n**Verdict**: none: too few runs");
}

CASE(json_has_a_version_and_the_intervals)
{
    RUN(0, FL_FAULTSTAT, "compare", "-a", "glibc", "-a", "x=glibc", "-n", "5", "-j", "-", "--",
        FL_VICTIM, "100", "0", "6");
    const json_t *root = fl_child_json(output.out);
    assert_int_equal(fl_child_number(root, "schema"), 2);
    assert_string_equal(fl_child_text(root, "kind"), "compare");
    assert_string_equal(fl_child_text(root, "metric"), "step_ms");
    assert_true(json_is_true(json_object_get(root, "complete")));
    const json_t *other = fl_child_item(root, "allocators", 1);
    const json_t *pair = json_object_get(json_object_get(other, "ratio_interval"), "step_faults");
    assert_int_equal(json_array_size(pair), 2);
    double low = json_number_value(json_array_get(pair, 0));
    double high = json_number_value(json_array_get(pair, 1));
    assert_true(low > 0.9 && low <= high && high < 1.1);
    const char *verdict = fl_child_text(other, "verdict");
    assert_true(strcmp(verdict, "too few runs") != 0 && strcmp(verdict, "not compared") != 0);
    const json_t *first = fl_child_item(root, "allocators", 0);
    assert_string_equal(fl_child_text(first, "verdict"), "reference");
}

/* README: "the last line says which one is fastest". That the command runs as it is written there,
 * tests/docs/test_docs_commands finds out. */
CASE(a_comparison_without_options_ends_with_a_verdict)
{
    RUN(0, FL_FAULTSTAT, "compare", "--", FL_VICTIM, "300", "0", "6");
    assert_says(output.out, "\ncolumns   step ms: time of a steady step, median; faults/step: ");
    const char *verdict = strstr(output.out, "\nverdict          ");
    assert_non_null(verdict);
    assert_null(strstr(verdict, "too few"));
    assert_true(strlen(verdict) < 300); /* nothing follows */
}

CASES_MAIN()
