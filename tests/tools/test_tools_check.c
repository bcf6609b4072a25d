/* faultless --check, judged from outside: verdict, exit status, one screen, JSON. */
#include "cases.h"
#include "child.h"

#include <sys/stat.h>

static void check(const char *const env[], const char *const argv[])
{
    const char *all_argv[8] = {FL_LAUNCHER, "--check"}, *all_env[8] = {"FAULTLESS_LIB=" FL_LIBRARY};
    size_t n = 2, e = 1;

    for (; argv != NULL && *argv != NULL; argv++) {
        all_argv[n++] = *argv;
    }
    for (; env != NULL && *env != NULL; env++) {
        all_env[e++] = *env;
    }
    fl_child_run(all_argv, all_env);
}

#define CHECK(...) check(NULL, ARGV(__VA_ARGS__))

/* Of the file `name` in the folder. */
static const char *path_of(const char *name)
{
    return text_as("%s/%s", fl_child_folder, name);
}

static const char *copy_of(const char *from, const char *name, mode_t mode)
{
    assert_int_equal(system(text_as("cp %s %s", from, path_of(name))), 0);
    assert_int_equal(chmod(path_of(name), mode), 0);
    return path_of(name);
}

static void assert_served(bool served, const char *verdict)
{
    const char *at = strstr(output.out, "\nverdict     ");

    assert_int_equal(output.status, !served);
    assert_non_null(at);
    at += strlen("\nverdict     ");
    assert_int_equal(strncmp(at, served ? "served, " : "not served: ", served ? 8 : 12), 0);
    assert_says(at, verdict);
}

CASE(one_screen_says_what_there_is)
{
    static const char *const labels[] = {"\nkernel  ",   "\nhuge pages", "\nnodes ",
                                         "\nmemory ",    "\nsandbox",    "\nGPU ",
                                         "\nautomatic ", "\ndefault "};
    size_t lines = 0;
    check(NULL, NULL);
    assert_served(true, "pages ");
    assert_string_equal(output.err, "");
    for (size_t i = 0; i < sizeof labels / sizeof labels[0]; i++) {
        assert_says(output.out, labels[i]);
    }
    for (const char *at = output.out; *at != '\0'; at += strcspn(at, "\n") + 1, lines++) {
        assert_true(strcspn(at, "\n") <= 80 || strstr(at, "/") != NULL); /* a path is one word */
    }
    assert_true(lines <= 30);
}

CASE(options_have_value_and_origin)
{
    check(ARGV("FAULTLESS_LIMIT=8GB", "FAULTLESS_THRESHOLD=1x", "FAULTLESS_LOG=none"), NULL);
    assert_served(true, "");
    assert_says(output.out, "\nset         LIMIT=8G LOG=none");
    assert_says(output.out, " HOST_SHARE=1");
    /* Behind what the machine lacks, where it lacks something. */
    assert_says(output.out, "\nbetter with - ");
    assert_says(output.out, " - FAULTLESS_THRESHOLD=1x is not understood");
}

CASE(a_command_that_cannot_be_served_is_told)
{
    CHECK(FL_WAITING);
    assert_served(true, "");
    assert_says(output.out, " dynamic\n");
    CHECK(FL_WAITING_STATIC);
    assert_served(false, "static");
    assert_says(output.out, "- link the command dynamically");
    CHECK(FL_WAITING_MALLOC);
    assert_served(false, "a malloc of its own");
    CHECK(FL_WAITING_ASAN); /* whose malloc is in a library of the compiler's */
    assert_served(false, "the command has a malloc of its own");
    CHECK(copy_of(FL_WAITING, "raised", 04755));
    assert_served(false, "raised privileges");
    CHECK("/nonexistent/program");
    assert_int_equal(output.status, 127);
    CHECK("/etc/passwd");
    assert_int_equal(output.status, 126);
    CHECK("/tmp");
    assert_int_equal(output.status, 126);
    assert_says(output.err, "/tmp: Is a directory");
}

CASE(what_the_environment_forbids_is_told)
{
    check(ARGV("FAULTLESS_DISABLE=all"), NULL);
    assert_served(false, "FAULTLESS_DISABLE has all");
    check(ARGV("FAULTLESS_STRICT=1", "FAULTLESS_LIMIT=x"), NULL);
    assert_served(false, "FAULTLESS_STRICT");
    check(ARGV("FAULTLESS_DISABLE=uffd"), NULL);
    assert_served(true, "pages do not move");
    assert_says(output.out, "- FAULTLESS_DISABLE without uffd and move");
    check(ARGV("LD_PRELOAD=" FL_PRELOAD), NULL);
    assert_says(output.out, "\npreloaded   " FL_PRELOAD);
    fl_child_ends(125, ARGV(FL_LAUNCHER, "--check"), ARGV("FAULTLESS_LIB=/nonexistent"));
}

static void write_script(const char *name, const char *text)
{
    write_text(path_of(name), text);
    assert_int_equal(chmod(path_of(name), 0755), 0);
}

CASE(a_script_is_its_interpreters)
{
    write_script("script",
                 text_as("#!/usr/bin/env -S VAR=1 sh\necho ran > %s/ran\n", fl_child_folder));
    CHECK(path_of("script"), "--its", "options");
    assert_served(true, "");
    assert_says(output.out, "/script, run by ");
    assert_int_not_equal(access(path_of("ran"), F_OK), 0); /* nothing of it is run */
}

/* What the manager says is judged; the shell that runs the shim is not. */
CASE(a_shim_is_what_it_would_run)
{
    write_script("pyenv", text_as("#!/bin/sh\n[ \"$1 $2\" = \"which shim\" ] && echo %s\n",
                                  FL_WAITING_STATIC));
    write_script("shim",
                 text_as("#!/usr/bin/env sh\nset -e\nprogram=\"${0##*/}\"\n"
                         "export PYENV_ROOT=\"%s\"\nexec \"%s/pyenv\" exec \"$program\" \"$@\"\n",
                         fl_child_folder, fl_child_folder));
    CHECK(path_of("shim"));
    assert_served(false, "the command is static");
    assert_says(output.out, "/shim, run by");
    write_script("pyenv", "#!/bin/sh\nexit 1\n"); /* it does not know either: the shell's, then */
    CHECK(path_of("shim"));
    assert_served(true, "");
}

CASE(memory_that_is_not_mallocs_is_told)
{
    CHECK(FL_WAITING_JEMALLOC);
    assert_int_equal(output.status, 0);
    assert_says(output.out, "\nverdict     served in part, ");
    assert_says(output.out, "the memory of its jemalloc is not malloc's");
    assert_says(output.out, "VICTIM_MALLOC_CONF=thp:always,");
    CHECK(FL_WAITING_GO);
    assert_says(output.out, "\nverdict     served in part, ");
    assert_says(output.out, "victim_check_go: the heap of Go is not malloc's\n");
    CHECK("--json=-", FL_WAITING_GO);
    const json_t *all = fl_child_json(output.out);
    assert_int_equal(json_array_size(json_object_get(json_object_get(all, "command"), "own")), 1);
}

CASE(packages_with_an_allocator_are_told)
{
    static const char said[] = "own memory  pyarrow, where it is imported: Arrow's memory is not ";
    assert_int_equal(system(text_as("mkdir -p %s/bin %s/lib/python3.11/site-packages/pyarrow",
                                    fl_child_folder, fl_child_folder)),
                     0);
    CHECK(copy_of(FL_WAITING, "bin/python3", 0755));
    assert_served(true, "");
    assert_says(output.out, said);
    assert_says(output.out, "ARROW_DEFAULT_MEMORY_POOL=system it is\n");
    check(ARGV("ARROW_DEFAULT_MEMORY_POOL=system"), ARGV(path_of("bin/python3")));
    assert_null(strstr(output.out, said));
    check(ARGV("ARROW_DEFAULT_MEMORY_POOL=jemalloc"), ARGV(path_of("bin/python3")));
    assert_says(output.out, said);
    assert_null(strstr(output.out, "ARROW_DEFAULT_MEMORY_POOL=system it is\n")); /* their choice */
}

CASE(a_file_that_is_cut_is_survived)
{
    static const int length[] = {0, 1, 18, 63, 64, 100, 700, 4096, 12000};
    for (size_t i = 0; i < sizeof length / sizeof length[0]; i++) {
        (void)copy_of(FL_WAITING, "cut", 0755);
        assert_int_equal(truncate(path_of("cut"), length[i]), 0);
        CHECK(path_of("cut"));
        assert_true(output.status <= 1);
    }
}

/* The process that was launched says what it did, though it is nothing; its helpers do not. */
CASE(one_line_of_the_launched_process)
{
    const char *const env[] = {"FAULTLESS_LIB=" FL_LIBRARY, "FAULTLESS_STATS=1", NULL};
    fl_child_run(ARGV(FL_LAUNCHER, "ls", "/"), env);
    assert_says(output.err, "] ls: nothing done: no request of 64K or more came here\n");
    fl_child_run(ARGV(FL_LAUNCHER, "find", "/", "-maxdepth", "0", "-exec", "true", ";"), env);
    assert_says(output.err, "] find: ");
    assert_ptr_equal(strchr(output.err, '\n'), output.err + strlen(output.err) - 1);
}

enum {
    OPTIONS = 0 /* lines of the table */
#define X(...) +1
#include "core/options.def"
#undef X
};

/* As a word of --json's it would be lost. */
CASE(json_writes_over_no_program)
{
    const char *program = copy_of(FL_WAITING, "program", 0755);
    fl_child_ends(125, ARGV(FL_LAUNCHER, "--check", "--json", program), NULL);
    assert_says(output.err, "program' is no name for a file to be written");
    fl_child_run(ARGV("cmp", FL_WAITING, program), NULL);
    assert_int_equal(output.status, 0);
}

CASE(json_has_a_schema_and_all_of_it)
{
    CHECK("--json=-", copy_of(FL_WAITING, "no\xff\xfeutf8", 0755));
    assert_int_equal(output.status, 0);
    const json_t *all = fl_child_json(output.out), *options = json_object_get(all, "options");
    assert_int_equal(fl_child_number(all, "schema"), 1);
    assert_true(json_is_true(json_object_get(all, "served")));
    assert_string_equal(fl_child_text(json_object_get(all, "command"), "kind"), "dynamic");
    assert_true(fl_child_number(json_object_get(all, "memory"), "total_bytes") > 1 << 20);
    bool found = false;
    for (size_t i = 0; i < json_array_size(options); i++) {
        const json_t *o = json_array_get(options, i);
        if (strcmp(fl_child_text(o, "name"), "FAULTLESS_LIMIT") == 0) {
            found = true;
            assert_string_equal(fl_child_text(o, "origin"), "automatic");
            assert_true(atoll(fl_child_text(o, "value")) > 0);
        }
    }
    assert_true(found);
    assert_int_equal(json_array_size(options), OPTIONS);
    fl_child_ends(125, ARGV(FL_LAUNCHER, "--json=-", "true"), ARGV("FAULTLESS_LIB=" FL_LIBRARY));
}

CASE(json_has_the_settings_that_others_name)
{
    static const char *const env[] = {"FAULTLESS_LIB=" FL_LIBRARY, "MXNET_GPU_MEM_POOL_RESERVE=7",
                                      NULL};
    fl_child_run(ARGV(FL_LAUNCHER, "--check", "--json=-"), env);
    const json_t *all = fl_child_json(output.out), *options = json_object_get(all, "options");
    assert_int_equal(json_array_size(options), OPTIONS + 1);
    const json_t *o = json_array_get(options, OPTIONS);
    assert_string_equal(fl_child_text(o, "name"), "MXNET_GPU_MEM_POOL_RESERVE");
    assert_string_equal(fl_child_text(o, "value"), "7");
    assert_string_equal(fl_child_text(o, "origin"), "environment");
}

CASES_MAIN(IN_FOLDER)
