/* The record of one comparison: filled by rounds.c, judged by analysis.c, shown by compare_table.c,
 * compare_json.c and compare_export.c. */
#ifndef FAULTLESS_FAULTSTAT_COMPARE_H
#define FAULTLESS_FAULTSTAT_COMPARE_H

#include "faultstat/bootstrap.h"
#include "faultstat/input.h"
#include "faultstat/json.h"
#include "faultstat/library_stats.h"
#include "faultstat/machine.h"
#include "faultstat/peers.h"
#include "faultstat/repeats.h"

enum { FL_ROUNDS_MAX = FL_SAMPLES_MOST, FL_ROUNDS_DEFAULT = 10 };

/* One run under one allocator. */
struct fl_run {
    bool is_done; /* false: interrupted before its end */
    bool is_timed_out;
    int exit_status; /* of the command; 128 + signal */
    unsigned order;  /* 0, 1, ...: its place among all runs */
    size_t steps;
    struct fl_served served;
    struct fl_library_stats library;
    double value[FL_METRIC_COUNT];
    struct fl_nodes nodes; /* near its peak; count 0: not read */
    json_t *reported;      /* numbers of its SUMMARY line, or NULL; owned */
};

/* How each run is made. */
struct fl_run_plan {
    char **command;
    unsigned rounds;
    unsigned warm_mib;
    int warmup;
    unsigned interval_ms;
    bool with_nodes;
    bool verbose;
    double timeout_s; /* 0: none */
    char *prepare;    /* a command for sh before each run; NULL: none */
    const regex_t *step_regex;
    struct fl_input input;
};

struct fl_comparison {
    struct fl_peers peers;
    struct fl_machine machine;
    struct fl_run_plan plan;
    unsigned runs_done;
    unsigned runs_planned;
    bool is_interrupted;
    size_t repeats; /* lines of one kind that the first run printed, for a hint; 0: none */
    char repeats_pattern[FL_PATTERN_LEN];
    struct fl_run *run; /* run[peer * rounds + round]; owned */
};

/* Run every round. A line of progress goes to standard error.
 * Returns 0; -EINTR when we were told to stop, and is_interrupted is set; -errno, after a line on
 * standard error.  Threads: the caller must be the only thread. */
int fl_comparison_run(struct fl_comparison *c);

/* Was it the allocator of its row that was measured, to a good end? */
bool fl_run_is_good(const struct fl_run *run);

#endif
