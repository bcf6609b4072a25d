/* This program once more, under the library and with the variables that CMD would have. It makes
 * one large request and tells what fl_stats_read says; the library's own lines say the rest. */
#include "launcher/check.h"

#include "faultless/faultless.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t large = (size_t)8 << 20; /* bytes; it has the library say how pages move */

int fl_probe_main(void)
{
    struct fl_stats s = {.size = sizeof s};
    void *found = dlsym(RTLD_DEFAULT, "fl_stats_read");
    int (*read_stats)(struct fl_stats *) = NULL;
    /* Not touched: the probe is to be cheap. */
    void *volatile block = malloc(large);

    memcpy(&read_stats, &found, sizeof found);
    free(block);
    bool told = read_stats != NULL && read_stats(&s) == 0;
    dprintf(STDERR_FILENO, "probe: loaded %d active %d rung %d\n", told, told && s.active != 0,
            told ? (int)s.rung : 2);
    _exit(EXIT_SUCCESS); /* no statistics of the probe's */
}

/* Variables that the probe has and CMD has not: their lines say what CMD's would. */
static void put_right(struct fl_probe_option *o)
{
    static const struct {
        const char *name, *usual;
    } changed[] = {{"FAULTLESS_CONFIRM", "0"}, {"FAULTLESS_LOG", "warn"}};

    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
        if (strcmp(o->name, changed[i].name) == 0) {
            const char *value = getenv(o->name);
            o->value = value != NULL ? value : changed[i].usual;
            o->origin = value != NULL ? "environment" : "default";
        }
    }
}

/* "NAME=VALUE (ORIGIN)". False: it is no such line. */
static bool take_option(struct fl_probe *p, char *line)
{
    size_t len = strlen(line);
    char *value = strchr(line, '='), *origin = strrchr(line, '(');

    if (value == NULL || line + strcspn(line, "= ") != value || origin == NULL ||
        origin - value < 2 || line[len - 1] != ')' || strstr(value, " is ") != NULL ||
        p->noptions == FL_PROBE_OPTIONS) {
        return false;
    }
    *value = origin[-1] = line[len - 1] = '\0';
    p->option[p->noptions] = (struct fl_probe_option){line, value + 1, origin + 1};
    put_right(&p->option[p->noptions++]);
    return true;
}

static void take_line(struct fl_probe *p, char *line)
{
    static const char prefix[] = "faultless: ";
    int loaded, active;

    if (sscanf(line, "probe: loaded %d active %d rung %u", &loaded, &active, &p->rung) == 3) {
        p->loaded = loaded != 0;
        p->active = active != 0;
        return;
    }
    if (strncmp(line, prefix, sizeof prefix - 1) == 0) {
        line += sizeof prefix - 1;
    }
    if (!take_option(p, line) && p->nnotes < FL_PROBE_NOTES) {
        p->note[p->nnotes++] = line;
    }
}

static char **environment(void)
{
    static char confirm[] = "FAULTLESS_CONFIRM=1", log[] = "FAULTLESS_LOG=info";
    size_t n = 0, kept = 0;

    while (environ[n] != NULL) {
        n++;
    }
    char **env = calloc(n + 3, sizeof *env);
    for (size_t i = 0; env != NULL && i < n; i++) {
        if (strncmp(environ[i], "FAULTLESS_CONFIRM=", 18) != 0 &&
            strncmp(environ[i], "FAULTLESS_LOG=", 14) != 0) {
            env[kept++] = environ[i];
        }
    }
    if (env != NULL) {
        env[kept++] = confirm;
        env[kept] = log;
    }
    return env;
}

/* Standard error is the pipe's; the rest is discarded. */
static int start(int pipe_end, pid_t *pid)
{
    static char name[] = "faultless", probe[] = "--probe";
    char *argv[] = {name, probe, NULL}, **env = environment();
    posix_spawn_file_actions_t actions;

    if (env == NULL || posix_spawn_file_actions_init(&actions) != 0) {
        free(env);
        return ENOMEM;
    }
    (void)posix_spawn_file_actions_adddup2(&actions, pipe_end, STDERR_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    free(env);
    return rc;
}

static void read_all(int fd, char *text, size_t size)
{
    size_t len = 0;

    for (ssize_t n; len + 1 < size;) {
        n = read(fd, text + len, size - len - 1);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            break;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = '\0';
}

bool fl_probe_run(struct fl_probe *p)
{
    int ends[2], status = 0;
    pid_t pid;

    *p = (struct fl_probe){.rung = 2};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    int rc = start(ends[1], &pid);
    close(ends[1]);
    if (rc == 0) {
        read_all(ends[0], p->text, sizeof p->text);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        p->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    close(ends[0]);
    char *rest;
    for (char *line = strtok_r(p->text, "\n", &rest); rc == 0 && line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        take_line(p, line);
    }
    return rc == 0;
}
