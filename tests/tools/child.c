/* fork, memfds for both outputs (no pipe to fill up), exec. */
#include "child.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

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

void fl_child_run(struct fl_output *output, const char *const argv[], const char *const env[])
{
    int out = memfd_create("out", MFD_CLOEXEC);
    int err = memfd_create("err", MFD_CLOEXEC);
    int status;
    assert_true(out >= 0 && err >= 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        union {
            const char *const *in;
            char *const *out;
        } args = {.in = argv}; /* exec leaves them alone; its prototype is older than const */
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        apply(env);
        execvp(argv[0], args.out);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    output->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    take(out, output->out);
    take(err, output->err);
    if (output->status == 99) {
        fail_msg("%s cannot be run", argv[0]);
    }
}

json_t *fl_child_json(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        fail_msg("not JSON: %s at line %d:\n%s", error.text, error.line, text);
    }
    return root;
}

double fl_child_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value)) {
        fail_msg("no number '%s'", key);
    }
    return json_number_value(value);
}

void assert_says(const char *text, const char *wanted)
{
    if (strstr(text, wanted) == NULL) {
        fail_msg("'%s' is not in:\n%s", wanted, text);
    }
}

char fl_child_folder[32];

int fl_child_make_folder(void **state)
{
    (void)state;
    snprintf(fl_child_folder, sizeof(fl_child_folder), "/tmp/faultless-test-XXXXXX");
    return mkdtemp(fl_child_folder) != NULL ? 0 : -1;
}

int fl_child_remove_folder(void **state)
{
    static struct fl_output output;
    (void)state;
    fl_child_run(&output, (const char *const[]){"rm", "-rf", fl_child_folder, NULL}, NULL);
    return 0;
}
