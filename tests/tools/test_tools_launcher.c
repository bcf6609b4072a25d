/* The faultless launcher: what it puts into the environment, where it finds the library, exit
 * codes. */
#include "cases.h"
#include "child.h"

#include <limits.h>
#include <sys/stat.h>

static char preloaded[PATH_MAX]; /* as the launcher names it: the build folder may be a link */

#define LAUNCH(status, ...)                                                                        \
    fl_child_ends(status, ARGV(FL_LAUNCHER, __VA_ARGS__),                                          \
                  ARGV("FAULTLESS_LIB=" FL_PRELOAD, "LD_PRELOAD"))

CASE(the_library_comes_before_what_was_preloaded)
{
    static const char *const argv[] = {FL_LAUNCHER, "sh", "-c", "echo $LD_PRELOAD", NULL};
    LAUNCH(0, "sh", "-c", "echo $LD_PRELOAD");
    assert_string_equal(output.out, text_as("%s\n", preloaded));
    fl_child_run(argv, ARGV("FAULTLESS_LIB=" FL_PRELOAD, "LD_PRELOAD=libm.so.6"));
    assert_string_equal(output.out, text_as("%s:libm.so.6\n", preloaded));
    assert_int_equal(output.status, 0);
}

CASE(options_become_variables)
{
    LAUNCH(0, "-o", "decay-ms=5", "--option=FAULTLESS_THRESHOLD=64K", "-o", "log=", "--", "sh",
           "-c", "echo $FAULTLESS_DECAY_MS $FAULTLESS_THRESHOLD ${FAULTLESS_LOG-unset}.");
    assert_string_equal(output.out, "5 64K .\n");
}

CASE(what_follows_the_command_is_the_commands)
{
    LAUNCH(0, "echo", "-o", "--help", "--", "x");
    assert_string_equal(output.out, "-o --help -- x\n");
}

CASE(exit_codes_are_those_of_a_shell)
{
    LAUNCH(5, "sh", "-c", "exit 5");
    LAUNCH(128 + 9, "sh", "-c", "kill -KILL $$");
    LAUNCH(127, "/nonexistent/program");
    assert_says(output.err, "/nonexistent/program: No such file");
    LAUNCH(126, "/etc/passwd");
    assert_says(output.err, "/etc/passwd: Permission denied: it is not executable; a script's");
    static const char go[] = "cd " FL_FOLDER " && : >loop && \"$0\" loop";
    LAUNCH(127, "sh", "-c", go, FL_LAUNCHER);
    assert_says(output.err,
                "faultless: loop: No such file or directory in PATH; ./loop is in this");
}

CASE(wrong_use_is_125_and_runs_nothing)
{
    LAUNCH(125, "-o", "novalue", "echo", "ran");
    assert_string_equal(output.out, "");
    LAUNCH(125, "-o", "sp ace=1", "echo", "ran");
    LAUNCH(125, "--nosuch", "echo", "ran");
    LAUNCH(125, "--");
    LAUNCH(125, "--check", "1", "2");
    assert_says(output.err, "one process, or one command");
    fl_child_ends(125, ARGV(FL_LAUNCHER, "echo", "ran"), ARGV("FAULTLESS_LIB=/nonexistent/lib.so"));
    assert_string_equal(output.out, "");
    assert_string_equal(output.err, "faultless: FAULTLESS_LIB=/nonexistent/lib.so: "
                                    "No such file or directory\n");
    fl_child_ends(125, ARGV(FL_LAUNCHER, "echo", "ran"), ARGV("FAULTLESS_LIB=/usr"));
    assert_string_equal(output.err, "faultless: FAULTLESS_LIB=/usr: Is a directory\n");
}

CASE(version_and_help_run_nothing)
{
    LAUNCH(0, "--version");
    assert_memory_equal(output.out, "faultless ", strlen("faultless "));
    LAUNCH(0, "--help");
    assert_says(output.out, "FAULTLESS_LIB");
}

CASE(the_librarys_path_is_one_line)
{
    LAUNCH(0, "--library");
    assert_string_equal(output.out, text_as("%s\n", preloaded));
    assert_string_equal(output.err, "");
    LAUNCH(125, "--library", "echo", "ran");
    assert_string_equal(output.out, "");
    fl_child_ends(125, ARGV(FL_LAUNCHER, "--library"), ARGV("FAULTLESS_LIB=/usr"));
    assert_string_equal(output.err, "faultless: FAULTLESS_LIB=/usr: Is a directory\n");
}

#define TUNED "thp:always,dirty_decay_ms:10000,muzzy_decay_ms:10000"

CASE(tune_sets_what_the_user_has_not)
{
    static const char *const argv[] = {
        FL_LAUNCHER, "--tune", "sh", "-c", "env | grep -E 'RJEM|DUCKDB|ARROW' | sort", NULL};

    fl_child_run(argv, ARGV("FAULTLESS_LIB=" FL_PRELOAD, "ARROW_DEFAULT_MEMORY_POOL",
                            "_RJEM_MALLOC_CONF", "DUCKDB_JE_MALLOC_CONF="));
    assert_string_equal(output.out, "ARROW_DEFAULT_MEMORY_POOL=system\nDUCKDB_JE_MALLOC_CONF=\n"
                                    "_RJEM_MALLOC_CONF=" TUNED "\n");
    assert_string_equal(output.err, "faultless: --tune set ARROW_DEFAULT_MEMORY_POOL=system "
                                    "_RJEM_MALLOC_CONF=" TUNED "; yours stay: "
                                    "DUCKDB_JE_MALLOC_CONF\n");
    fl_child_run(argv, ARGV("FAULTLESS_LIB=" FL_PRELOAD, "ARROW_DEFAULT_MEMORY_POOL=x",
                            "_RJEM_MALLOC_CONF=y", "DUCKDB_JE_MALLOC_CONF=z"));
    assert_string_equal(output.out, "ARROW_DEFAULT_MEMORY_POOL=x\nDUCKDB_JE_MALLOC_CONF=z\n"
                                    "_RJEM_MALLOC_CONF=y\n");
    LAUNCH(125, "--tune");
}

/* Copies launcher and library into PREFIX/bin and PREFIX/`library`, and asks what is preloaded. */
static void assert_found_as(const char *library)
{
    char prefix[] = "/tmp/faultless-test-XXXXXX";
    assert_non_null(mkdtemp(prefix));
    const char *script =
        text_as("cd %s && mkdir -p bin $(dirname %s) && cp %s bin/faultless && cp %s %s && "
                "bin/faultless sh -c 'echo $LD_PRELOAD'; rm -rf %s",
                prefix, library, FL_LAUNCHER, FL_PRELOAD, library, prefix);
    fl_child_run(ARGV("sh", "-c", script), ARGV("FAULTLESS_LIB", "LD_PRELOAD"));
    assert_string_equal(output.out, text_as("%s/%s\n", prefix, library));
}

CASE(the_library_is_found_as_built_and_as_installed)
{
    assert_found_as("bin/libfaultless.so");
    assert_found_as("lib/libfaultless.so");
    assert_found_as("lib/" FL_MULTIARCH "/libfaultless.so");
    assert_found_as("lib/libfaultless.so.0");
    assert_found_as("lib/" FL_MULTIARCH "/libfaultless.so.0");
    assert_found_as("lib64/libfaultless.so.0");
}

/* Runs `script` with the library, as `name`, in a folder that has `mark` in its path. */
static void launch_in(const char *mark, const char *name, const char *script)
{
    char folder[64];
    snprintf(folder, sizeof(folder), "/tmp/faultless%stest-XXXXXX", mark);
    assert_non_null(mkdtemp(folder));
    const char *text =
        text_as("cp %s '%s/%s'; export FAULTLESS_LIB='%s/%s'; %s %s; s=$?; rm -rf '%s'; exit $s",
                FL_PRELOAD, folder, name, folder, name, FL_LAUNCHER, script, folder);
    fl_child_run(ARGV("sh", "-c", text), ARGV("LD_LIBRARY_PATH", "LD_PRELOAD"));
}

CASE(a_path_with_a_space_is_preloaded)
{
    launch_in(" ", "lib.so",
              "sh -c 'echo $LD_PRELOAD; grep -c \"/faultless test.*lib.so\" /proc/$$/maps'");
    assert_int_equal(output.status, 0);
    assert_memory_equal(output.out, "lib.so\n", strlen("lib.so\n"));
    assert_string_equal(output.err, "");
}

CASE(a_path_that_LD_PRELOAD_cannot_express_is_refused)
{
    launch_in(":", "lib.so", "echo ran");
    assert_int_equal(output.status, 125);
    assert_string_equal(output.out, "");
    assert_says(output.err, "name the copy in FAULTLESS_LIB\n");
    launch_in("-", "l ib.so", "echo ran");
    assert_int_equal(output.status, 125);
    assert_string_equal(output.out, "");
}

int main(void)
{
    if (realpath(FL_PRELOAD, preloaded) == NULL) {
        return 1;
    }
    return RUN_CASES();
}
