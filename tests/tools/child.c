/* fork, memfds for both outputs (no pipe to fill up), exec. */
#include "child.h"

#include "unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void apply(const char *const env[])
{
    for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
        char *copy = strdup(env[i]);
        char *equals = copy != NULL ? strchr(copy, '=') : NULL;
        if (equals == NULL) {
            unsetenv(env[i]);
        } else {
            *equals = '\0';
            setenv(copy, equals + 1, 1);
        }
        free(copy);
    }
}

static void take(int fd, char *text)
{
    ssize_t n = pread(fd, text, FL_OUTPUT_LEN - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
}

struct fl_output output;

static void run(const char *const argv[], const char *const env[], void (*change)(void))
{
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    int program = change != NULL ? open(argv[0], O_RDONLY) : -1, status;
    union {
        const char *const *in;
        char *const *out;
    } args = {.in = argv}; /* exec leaves them alone; its prototype is older than const */

    assert_true(out >= 0 && err >= 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        apply(env);
        if (change != NULL) {
            change();
            fexecve(program, args.out, environ);
        } else {
            execvp(argv[0], args.out);
        }
        _exit(99);
    }
    close(program);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    output.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    take(out, output.out);
    take(err, output.err);
    if (output.status == 99) {
        fail_msg("%s cannot be run", argv[0]);
    }
}

void fl_child_run(const char *const argv[], const char *const env[])
{
    run(argv, env, NULL);
}

void fl_child_run_changed(const char *const argv[], void (*change)(void))
{
    run(argv, NULL, change);
}

void fl_child_ends(int status, const char *const argv[], const char *const env[])
{
    run(argv, env, NULL);
    if (output.status != status) {
        fail_msg("%s ends with %d, not %d:\n%s%s", argv[0], output.status, status, output.out,
                 output.err);
    }
}

static const json_t *keep(json_t *root, const json_error_t *error, const char *text)
{
    static json_t *all;

    if (root == NULL) {
        fail_msg("not JSON: %s at line %d:\n%s", error->text, error->line, text);
    }
    all = all != NULL ? all : json_array();
    assert_int_equal(json_array_append_new(all, root), 0);
    return root;
}

const json_t *fl_child_json(const char *text)
{
    json_error_t error;
    return keep(json_loads(text, JSON_REJECT_DUPLICATES, &error), &error, text);
}

const json_t *fl_child_json_file(const char *path)
{
    json_error_t error;
    return keep(json_load_file(path, JSON_REJECT_DUPLICATES, &error), &error, path);
}

double fl_child_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        fail_msg("no number '%s'", key);
    }
    return json_number_value(value);
}

const char *fl_child_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL) {
        fail_msg("no text '%s'", key);
    }
    return text;
}

const json_t *fl_child_item(const json_t *object, const char *key, size_t i)
{
    const json_t *item = json_array_get(json_object_get(object, key), i);
    if (item == NULL) {
        fail_msg("no element %zu in '%s'", i, key);
    }
    return item;
}

char fl_child_folder[32];

void fl_child_make_folder(void)
{
    snprintf(fl_child_folder, sizeof(fl_child_folder), "/tmp/faultless-test-XXXXXX");
    assert_non_null(mkdtemp(fl_child_folder));
}

void fl_child_remove_folder(void)
{
    fl_child_ends(0, ARGV("rm", "-rf", fl_child_folder), NULL);
}
