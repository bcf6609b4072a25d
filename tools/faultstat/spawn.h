/* Starts a command so that it can be watched: perf events in place before its first instruction,
 * one end of the step channel inherited, output captured when asked. Leaves waiting for it to
 * watch.h. */
#ifndef FAULTLESS_FAULTSTAT_SPAWN_H
#define FAULTLESS_FAULTSTAT_SPAWN_H

#include "faultstat/perf.h"

#include <stdbool.h>
#include <stddef.h>

/* One change of the environment, applied in order. */
struct fl_env {
    const char *name;
    const char *value; /* NULL: remove it */
};

/* Where the command's output goes. */
enum fl_output_kind {
    FL_OUTPUT_INHERITED,
    FL_OUTPUT_PIPES,    /* both to us */
    FL_OUTPUT_TERMINAL, /* the same, standard output through a pseudo-terminal: so that the command
                         * flushes each line of it */
};

struct fl_spawn_spec {
    char *const *argv; /* ends with NULL */
    const struct fl_env *env;
    size_t env_count;
    bool use_perf; /* count faults by perf events too; that work sits in the path of every fault */
    enum fl_output_kind output;
    int input_fd; /* its standard input; 0: ours */
};

struct fl_child {
    pid_t pid;
    uint64_t start_ns; /* when it was let go towards exec, CLOCK_MONOTONIC */
    int pidfd;         /* readable when the command has ended */
    int step_fd;       /* our end of the step channel; messages carry the sender's pid */
    int out_fd;        /* the command's standard output, -1 when it is not captured */
    int err_fd;        /* its standard error, likewise */
    int exec_error; /* 0, or why exec failed: -errno; the child then ends with status 127 or 126 */
    struct fl_perf perf;
};

/* Start argv[0] with the arguments and changes of the environment given. What comes through out_fd
 * and err_fd does not block.
 * Returns 0; -errno when no process could be made. A command that cannot be executed is no error
 * here: exec_error says why and the child ends as a shell's would.
 * Threads: the caller must be the only thread.
 * Signals: the child starts with none blocked and SIGINT, SIGQUIT, SIGPIPE at their defaults. */
int fl_spawn(struct fl_child *child, const struct fl_spawn_spec *spec);

#endif
