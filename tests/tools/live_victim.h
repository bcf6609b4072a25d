/* A running victim_live, and what faultstat top says of it. */
#ifndef FAULTLESS_TESTS_TOOLS_LIVE_VICTIM_H
#define FAULTLESS_TESTS_TOOLS_LIVE_VICTIM_H

#include "child.h"

#include <sys/types.h>

/* Run faultstat top, which must end with `status`. */
#define TOP(status, ...) fl_child_ends(status, ARGV(FL_FAULTSTAT, "top", __VA_ARGS__), NULL)

/* The library without its worker: nothing changes while a victim waits. */
extern const char *const fl_live_victim_still[];

struct fl_live_victim {
    pid_t pid;
    int in, out;        /* its standard input and output, from this side */
    const json_t *said; /* its own statistics */
};

/* Start `argv` with `env` as fl_child_run; any failure ends the test. */
struct fl_live_victim fl_live_victim_start(const char *const argv[], const char *const env[]);
/* Start victim_live with that word, and wait until it has said its statistics. */
struct fl_live_victim fl_live_victim_begin(const char *what, const char *const env[]);
/* The next line that it prints. The text is overwritten by the next call. */
const char *fl_live_victim_line(const struct fl_live_victim *v);
/* Ends its input; returns its exit status, or 128 + the signal that ended it. */
int fl_live_victim_end(const struct fl_live_victim *v);
/* The teardown of each case: all that did not end before end now, with status 0. */
void fl_live_victims_end_well(void);

/* A process number as text. */
const char *fl_live_victim_text(pid_t pid);
/* What top says of it in one round. */
const json_t *fl_live_victim_top(pid_t pid);
/* In /proc/PID/FILE, the number behind `key`; -1: there is none. */
double fl_live_victim_kib(pid_t pid, const char *file, const char *key);
/* The number at `key` is the same in both. */
void fl_live_victim_same(const json_t *seen, const json_t *said, const char *key);
void fl_live_victim_near(double a, double b, double most, const char *what);

/* Does nothing where the kernel lets a process read another's memory; else a line and 77, of
 * `test`. */
int fl_live_victim_skip(const char *test);
#define LIVE_VICTIM_MAIN(test, ...)                                                                \
    int main(void)                                                                                 \
    {                                                                                              \
        int skip = fl_live_victim_skip(test);                                                      \
        return skip != 0 ? skip : RUN_CASES(__VA_ARGS__);                                          \
    }

#endif
