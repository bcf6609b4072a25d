/* Shims of pyenv and its like (rbenv, asdf): scripts of one line that counts, exec MANAGER exec
 * NAME, which choose the program when they run. The manager says which one: nothing of CMD runs. */
#include "launcher/check.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_manager(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(name);

    return path[0] == '/' &&
           (strcmp(name, "asdf") == 0 || (len > 3 && strcmp(name + len - 3, "env") == 0));
}

/* The manager that is named behind the word exec of a line; "": there is none. */
static void manager_of(char *text, char manager[PATH_MAX])
{
    char *rest_of_text, *rest;

    manager[0] = '\0';
    for (char *line = strtok_r(text, "\n", &rest_of_text); line != NULL && manager[0] == '\0';
         line = strtok_r(NULL, "\n", &rest_of_text)) {
        const char *first = strtok_r(line, " \t\"", &rest);
        const char *path =
            first != NULL && strcmp(first, "exec") == 0 ? strtok_r(NULL, " \t\"", &rest) : NULL;
        const char *second = path != NULL ? strtok_r(NULL, " \t\"", &rest) : NULL;
        if (second != NULL && strcmp(second, "exec") == 0 && is_manager(path)) {
            snprintf(manager, PATH_MAX, "%s", path);
        }
    }
}

/* Runs MANAGER which NAME. False: it did not say. */
static bool ask(const char *manager, const char *name, char path[PATH_MAX])
{
    static char which[] = "which";
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    pid_t pid;
    ssize_t n = 0;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    char *argv[] = {strdup(manager), which, strdup(name), NULL};
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool began = argv[0] != NULL && argv[2] != NULL &&
                 posix_spawn(&pid, manager, &actions, NULL, argv, environ) == 0;
    close(ends[1]);
    if (began) {
        n = read(ends[0], path, PATH_MAX - 1); /* a line, at once */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    close(ends[0]);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(argv[0]);
    free(argv[2]);
    path[n > 0 ? n : 0] = '\0';
    path[strcspn(path, "\n")] = '\0';
    return status == 0 && path[0] == '/';
}

bool fl_shim_read(const char *text, size_t len, const char *path, char program[PATH_MAX])
{
    enum { LONGEST = 4096 };
    char copy[LONGEST], manager[PATH_MAX], answer[PATH_MAX];
    const char *slash = strrchr(path, '/');

    if (len >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    manager_of(copy, manager);
    if (manager[0] == '\0' || !ask(manager, slash != NULL ? slash + 1 : path, answer)) {
        return false;
    }
    memcpy(program, answer, sizeof answer);
    return true;
}
