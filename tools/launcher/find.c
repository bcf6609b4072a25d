/* Finds libfaultless.so from the place of the running binary: the build folder and the installed
 * prefix look alike to it. Holds no state but the environment. */
#include "launcher/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0: the loader would look at it as a library. Else -errno. */
static int look_at(const char *path)
{
    struct stat file;
    char magic[4] = "";

    if (access(path, R_OK) != 0 || stat(path, &file) != 0) {
        return -errno;
    }
    if (!S_ISREG(file.st_mode)) {
        return S_ISDIR(file.st_mode) ? -EISDIR : -EINVAL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    ssize_t got = read(fd, magic, sizeof magic);
    (void)close(fd);
    return got == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0 ? 0 : -ENOEXEC;
}

int fl_find_library(char path[PATH_MAX])
{
    static const char *const place[] = {
        "libfaultless.so",
        "../lib/libfaultless.so",
        "../lib/" FL_MULTIARCH "/libfaultless.so",
        /* as packages have it without what programs are linked with: pip's, Debian's, Fedora's */
        "../lib/libfaultless.so.0",
        "../lib/" FL_MULTIARCH "/libfaultless.so.0",
        "../lib64/libfaultless.so.0",
    };
    const char *forced = getenv("FAULTLESS_LIB");
    if (forced != NULL && forced[0] != '\0') {
        int rc = look_at(forced);
        return rc != 0 || realpath(forced, path) != NULL ? rc : -errno;
    }
    char folder[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (len < 0) {
        return -errno;
    }
    folder[len] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        return -ENOENT;
    }
    slash[1] = '\0';
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++) {
        char trial[2 * PATH_MAX];
        int n = snprintf(trial, sizeof(trial), "%s%s", folder, place[i]);
        if (n < 0 || (size_t)n >= sizeof(trial)) {
            return -ENAMETOOLONG;
        }
        if (access(trial, R_OK) == 0) {
            return realpath(trial, path) != NULL ? 0 : -errno;
        }
    }
    return -ENOENT;
}

static void say_missing(const char *program, int rc)
{
    const char *forced = getenv("FAULTLESS_LIB");
    bool is_forced = forced != NULL && forced[0] != '\0';

    fprintf(stderr, "%s: %s%s: %s%s\n", program, is_forced ? "FAULTLESS_LIB=" : "",
            is_forced ? forced : "libfaultless.so", strerror(-rc),
            is_forced ? "" : "; FAULTLESS_LIB may name it");
}

bool fl_find_or_say(const char *program, char path[PATH_MAX])
{
    int rc = fl_find_library(path);

    if (rc != 0) {
        say_missing(program, rc);
    }
    return rc == 0;
}

/* `first` before what the variable holds. */
static int put_first(const char *variable, const char *first)
{
    const char *before = getenv(variable);
    char *value = NULL;
    bool is_alone = before == NULL || before[0] == '\0';
    if (asprintf(&value, "%s%s%s", first, is_alone ? "" : ":", is_alone ? "" : before) < 0) {
        return -ENOMEM;
    }
    int rc = setenv(variable, value, 1) == 0 ? 0 : -errno;
    free(value);
    return rc;
}

int fl_find_preloadable(char path[PATH_MAX])
{
    int rc = fl_find_library(path);
    if (rc != 0 || strpbrk(path, ": \t\n") == NULL) {
        return rc;
    }
    char *name = strrchr(path, '/');
    if (strpbrk(path, ":;") != NULL || strpbrk(name, " \t\n") != NULL) {
        return -EILSEQ;
    }
    *name = '\0';
    rc = put_first("LD_LIBRARY_PATH", path);
    memmove(path, name + 1, strlen(name + 1) + 1);
    return rc;
}

bool fl_find_preload(const char *program)
{
    char path[PATH_MAX];
    int rc = fl_find_preloadable(path);
    if (rc == -EILSEQ) {
        fprintf(stderr,
                "%s: '%s': LD_PRELOAD cannot express this path; copy the file elsewhere and name "
                "the copy in FAULTLESS_LIB\n",
                program, path);
        return false;
    }
    if (rc != 0) {
        say_missing(program, rc);
        return false;
    }
    if (put_first("LD_PRELOAD", path) != 0) {
        fprintf(stderr, "%s: out of memory\n", program);
        return false;
    }
    return true;
}

/* A file without a name has all rights, too. */
static bool is_program(const char *path)
{
    char head[4] = "";
    FILE *file = access(path, X_OK) == 0 ? fopen(path, "re") : NULL;
    size_t len = file != NULL ? fread(head, 1, sizeof(head), file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return (len == 4 && memcmp(head, "\177ELF", 4) == 0) ||
           (len >= 2 && memcmp(head, "#!", 2) == 0);
}

void fl_say_not_run(const char *program, const char *name, int error)
{
    struct stat file;
    bool is_here = strchr(name, '/') == NULL && stat(name, &file) == 0 && S_ISREG(file.st_mode);

    fprintf(stderr, "%s: %s: %s", program, name, strerror(error));
    if (error == ENOENT && is_here) {
        fprintf(stderr, " in PATH; ./%s is in this folder", name);
    } else if (error == EACCES && strchr(name, '/') != NULL && access(name, R_OK) == 0 &&
               access(name, X_OK) != 0) {
        fputs(": it is not executable; a script's interpreter runs it, as in: python3 script.py",
              stderr);
    }
    fputc('\n', stderr);
}

bool fl_is_output(const char *name)
{
    return strcmp(name, "-") == 0 || (name[0] != '-' && !is_program(name));
}
