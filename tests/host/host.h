/* What the suites about the host program share. They compare a run under the library with one under
 * glibc, and build on preload/run.h. */
#ifndef FAULTLESS_TESTS_HOST_HOST_H
#define FAULTLESS_TESTS_HOST_HOST_H

#include "preload/run.h"

/* How often something is done that is done at random: FL_HOST_RUNS, or `ordinary` without it. */
long fl_host_runs(long ordinary);

/* As fl_run_how, but the victim's stdout is a pipe. What it wrote there replaces `out`; it must fit
 * into a pipe. */
void fl_host_piped(const struct fl_how *how, struct fl_run *result);

/* A number from a sequence that FL_TEST_SEED repeats. The first call prints the seed. */
uint64_t fl_host_random(void);

/* Failures of a matrix: all rows run, then the test fails with the first `FL_HOST_SHOWN` of
 * them. */
enum { FL_HOST_SHOWN = 12 };
struct fl_host_tally {
    unsigned rows, failed;
    char text[16384];
};
__attribute__((format(printf, 2, 3))) void fl_host_failed(struct fl_host_tally *t, const char *text,
                                                          ...);
void fl_host_judge(const struct fl_host_tally *t);

/* "exit 3", "signal 31 (Bad system call)", "killed: it took too long". In a static buffer. */
const char *fl_host_end(const struct fl_run *r);

#endif
