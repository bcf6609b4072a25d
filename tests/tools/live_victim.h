/* A running victim_live, and what faultstat top says of it. */
#ifndef FAULTLESS_TESTS_TOOLS_LIVE_VICTIM_H
#define FAULTLESS_TESTS_TOOLS_LIVE_VICTIM_H

#include "child.h"

#include <sys/types.h>

/* Run faultstat top. */
#define FL_LIVE_VICTIM_TOP(output, ...)                                                            \
    fl_child_run((output), (const char *const[]){FL_FAULTSTAT, "top", __VA_ARGS__, NULL}, NULL)

/* The library without its worker: nothing changes while a victim waits. */
extern const char *const fl_live_victim_still[];

struct fl_live_victim {
    pid_t pid;
    int in, out; /* its standard input and output, from this side */
};

/* Start victim_live with that word. */
struct fl_live_victim fl_live_victim_begin(const char *what, const char *const env[]);
/* Start `argv` with `env` as fl_child_run; any failure ends the test. */
struct fl_live_victim fl_live_victim_start(const char *const argv[], const char *const env[]);
/* The next line that it prints. The text is overwritten by the next call. */
const char *fl_live_victim_line(const struct fl_live_victim *v);
/* Ends its input; returns its exit status, or 128 + the signal that ended it. */
int fl_live_victim_end(struct fl_live_victim *v);

/* A process number as text, which is overwritten by the next call. */
const char *fl_live_victim_text(pid_t pid);
/* What top says of it in one round, as JSON; *root is the caller's. */
const json_t *fl_live_victim_top(pid_t pid, json_t **root);
/* What it says in one round, as text, when `change` has changed its process before it began. */
void fl_live_victim_run_changed(struct fl_output *output, pid_t pid, void (*change)(void));
/* In /proc/PID/FILE, the number behind `key`; -1: there is none. */
double fl_live_victim_kib(pid_t pid, const char *file, const char *key);
/* The number at `key` is the same in both. */
void fl_live_victim_same(const json_t *seen, const json_t *said, const char *key);
void fl_live_victim_near(double a, double b, double most, const char *what);

/* Does nothing where the kernel lets a process read another's memory; else a line and 77, of
 * `test`. */
int fl_live_victim_skip(const char *test);

#endif
