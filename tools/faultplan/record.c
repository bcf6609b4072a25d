/* `faultplan record`: a command whose steps are written to a folder, a table each, by the library
 * (FAULTLESS_TRACE). This side makes the folder, starts the command, and says what came of it. */
#include "faultplan/faultplan.h"
#include "faultplan/live.h"
#include "launcher/find.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FL_EXIT_CANNOT_RUN = 126, FL_EXIT_NOT_FOUND = 127 }; /* as env(1) does */

struct options {
    const char *output;
    char **command;
};

/* Files of steps, by process, context and step. */
struct steps {
    struct dirent **file;
    int n;
};

struct folder {
    char path[PATH_MAX]; /* absolute: the command may go elsewhere */
    char told[PATH_MAX +
              32]; /* a file in it for the library's statistics: why there is no step; "": none */
    bool is_made;
    struct steps before; /* what an earlier run left in it */
};

static const char doc[] =
    "Run CMD with the faultless allocator preloaded, and write each step to a folder, as a "
    "table that faultplan pack and draw take.\v"
    "What was written is said on standard error. Steps are those that CMD declares. The exit "
    "status is that of CMD, 128 + N when signal N ended it; 125: faultplan itself failed, or no "
    "step was seen, 126: CMD cannot be run, 127: CMD was not found.";

static const struct argp_option option[] = {
    {"output", 'o', "FOLDER", 0,
     "Write to FOLDER, which is made if it is not there (default: "
     "faultplan-PID)",
     0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;

    switch (key) {
    case 'o':
        o->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        o->command = &state->argv[state->next - 1];
        state->next = state->argc; /* all that follows belongs to CMD */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no command given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static bool complain(const char *what)
{
    fprintf(stderr, "faultplan: %s: %s\n", what, strerror(errno));
    return false;
}

/* ---- the folder ---- */

/* PID-CONTEXT-N.csv */
static int is_step(const struct dirent *entry)
{
    const char *at = entry->d_name;

    for (int i = 0; i < 3; i++) {
        size_t digits = strspn(at, "0123456789");
        at += digits;
        if (digits == 0 || (i < 2 && *at++ != '-')) {
            return 0;
        }
    }
    return strcmp(at, ".csv") == 0;
}

static bool list(const char *path, struct steps *out)
{
    out->n = scandir(path, &out->file, is_step, versionsort);
    if (out->n < 0) {
        *out = (struct steps){0};
        return complain(path);
    }
    return true;
}

static void forget(struct steps *s)
{
    for (int i = 0; i < s->n; i++) {
        free(s->file[i]);
    }
    free(s->file);
    *s = (struct steps){0};
}

static bool open_folder(struct folder *f, const char *name)
{
    char usual[32];

    if (name == NULL) {
        snprintf(usual, sizeof usual, "faultplan-%ld", (long)getpid());
        name = usual;
    }
    f->is_made = mkdir(name, 0777) == 0;
    if ((!f->is_made && errno != EEXIST) || realpath(name, f->path) == NULL) {
        return complain(name);
    }
    return list(f->path, &f->before) && (access(f->path, W_OK | X_OK) == 0 || complain(name));
}

static void close_folder(struct folder *f)
{
    if (f->told[0] != '\0') {
        (void)unlink(f->told);
    }
    if (f->is_made) {
        (void)rmdir(f->path); /* when there is nothing in it */
    }
    forget(&f->before);
}

/* ---- the command ---- */

static int status_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* False: it was never started, or lost. `exit_status` is what this program ends with. */
static bool run(char **command, int *exit_status)
{
    pid_t pid;
    int status, rc = posix_spawnp(&pid, command[0], NULL, NULL, command, environ);

    if (rc != 0) {
        fprintf(stderr, "faultplan: %s: %s\n", command[0], strerror(rc));
        *exit_status = rc == ENOENT ? FL_EXIT_NOT_FOUND : FL_EXIT_CANNOT_RUN;
        return false;
    }
    signal(SIGINT, SIG_IGN); /* of a terminal: for the command to answer */
    signal(SIGQUIT, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return complain(command[0]);
        }
    }
    *exit_status = status_of(status);
    return true;
}

/* ---- what came of it ---- */

/* Up to the last dash: process and context. */
static size_t context_len(const char *name)
{
    return (size_t)(strrchr(name, '-') - name);
}

static bool is_same_context(const char *a, const char *b)
{
    size_t len = context_len(a);

    return len == context_len(b) && strncmp(a, b, len) == 0;
}

/* Takes out of `s` what was there before. */
static void leave_out(struct steps *s, const struct steps *before)
{
    int kept = 0, j = 0;

    for (int i = 0; i < s->n; i++) {
        while (j < before->n && strverscmp(before->file[j]->d_name, s->file[i]->d_name) < 0) {
            j++;
        }
        if (j < before->n && strcmp(before->file[j]->d_name, s->file[i]->d_name) == 0) {
            free(s->file[i]);
        } else {
            s->file[kept++] = s->file[i];
        }
    }
    s->n = kept;
}

static void report_step(const struct folder *f, const char *name)
{
    char path[PATH_MAX + NAME_MAX + 2];
    struct fl_table t;
    uint64_t bound = 0;

    snprintf(path, sizeof path, "%s/%s", f->path, name);
    if (!fl_table_read(&t, path)) {
        return;
    }
    if (fl_live_bound(&t, &bound)) {
        fprintf(stderr, "  %-20s %8zu blocks, lower bound %llu bytes\n", name, t.n,
                (unsigned long long)bound);
    }
    fl_table_free(&t);
}

static bool is_last(const struct steps *s, int i)
{
    return i + 1 == s->n || !is_same_context(s->file[i]->d_name, s->file[i + 1]->d_name);
}

/* The sum of a figure over the processes, a line each. */
static unsigned long long sum(const char *lines, const char *key)
{
    unsigned long long all = 0;

    for (const char *at = lines; (at = strstr(at, key)) != NULL; at += strlen(key)) {
        all += strtoull(at + strlen(key), NULL, 10);
    }
    return all;
}

static void explain(const char *lines)
{
    unsigned long long requests = sum(lines, "\"requests\": ");

    if (strstr(lines, "\"pid\"") == NULL) {
        fprintf(stderr,
                "faultplan: no process told of itself: CMD is static or set-user-ID, clears "
                "LD_PRELOAD, or was killed\n");
    } else if (sum(lines, "\"active\": ") == 0) {
        fprintf(stderr, "faultplan: faultless was not active: try faultless --check CMD\n");
    } else if (requests == 0) {
        fprintf(stderr, "faultplan: there was no large request (FAULTLESS_THRESHOLD)\n");
    } else {
        fprintf(stderr,
                "faultplan: %llu large requests, and too few steps: declare each round of the loop "
                "(fl_step_begin and fl_step_end, python3 -m faultless), three of them or more\n",
                requests);
    }
}

/* What the library told of itself; without it there is no reason to give. */
static void explain_nothing(const struct folder *f)
{
    static char lines[1 << 20];
    FILE *file = f->told[0] != '\0' ? fopen(f->told, "r") : NULL;
    size_t n = file != NULL ? fread(lines, 1, sizeof lines - 1, file) : 0;

    lines[n] = '\0';
    fprintf(stderr, "faultplan: no step was seen\n");
    if (f->told[0] != '\0') {
        explain(lines);
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* False: there is none. */
static bool report(const struct folder *f)
{
    struct steps s;
    int contexts = 0;

    if (!list(f->path, &s)) {
        return false;
    }
    leave_out(&s, &f->before);
    for (int i = 0; i < s.n; i++) {
        contexts += is_last(&s, i);
    }
    if (s.n == 0) {
        explain_nothing(f);
    } else {
        fprintf(stderr, "faultplan: %d step%s of %d context%s in %s; the last of each:\n", s.n,
                s.n == 1 ? "" : "s", contexts, contexts == 1 ? "" : "s", f->path);
    }
    for (int i = 0; i < s.n; i++) {
        if (is_last(&s, i)) {
            report_step(f, s.file[i]->d_name);
        }
    }
    bool any = s.n != 0;
    forget(&s);
    return any;
}

/* The variables that the command is started with. What the user has for statistics stays. */
static bool set_environment(struct folder *f)
{
    if (getenv("FAULTLESS_STATS") == NULL) {
        snprintf(f->told, sizeof f->told, "%s/.record-%ld", f->path, (long)getpid());
    }
    return setenv("FAULTLESS_TRACE", f->path, 1) == 0 &&
           (f->told[0] == '\0' || setenv("FAULTLESS_STATS", f->told, 1) == 0);
}

int fl_plan_record_main(int argc, char **argv)
{
    static struct folder folder; /* static for its size */
    struct options o = {0};
    struct argp argp = {option, parse, "[--] CMD [ARG...]", doc, fl_command_help, NULL, NULL};
    int status = FL_EXIT_OWN;

    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    if (open_folder(&folder, o.output) && fl_find_preload("faultplan")) {
        if (set_environment(&folder)) {
            if (run(o.command, &status) && !report(&folder) && status == 0) {
                status = FL_EXIT_OWN; /* a script is to notice */
            }
        } else {
            complain("FAULTLESS_TRACE");
        }
    }
    close_folder(&folder);
    return status;
}
