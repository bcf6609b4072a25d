/* The record of one comparison, filled by compare.c and shown by compare_report.c. */
#ifndef FAULTLESS_FAULTSTAT_COMPARE_H
#define FAULTLESS_FAULTSTAT_COMPARE_H

#include "faultstat/json.h"
#include "faultstat/machine.h"
#include "faultstat/peers.h"

/* One run under one allocator. */
struct fl_run {
    bool is_done;    /* false: interrupted before its turn */
    int exit_status; /* of the command; 128 + signal */
    unsigned order;  /* 0, 1, ...: its place among all runs */
    size_t steps;
    double value[FL_METRIC_COUNT];
    struct fl_nodes nodes; /* near its peak; count 0: not read */
    json_t *reported;      /* numbers of its SUMMARY line, or NULL; owned */
};

struct fl_comparison {
    struct fl_peers peers;
    struct fl_machine machine;
    char **command;
    unsigned rounds;
    unsigned warm_mib;
    int warmup;
    bool with_nodes;
    struct fl_run *run; /* run[peer * rounds + round]; owned */
};

/* What the successful runs of one allocator say of one figure. */
struct fl_spread {
    size_t count; /* 0: the rest means nothing */
    double median;
    double least;
    double most;
};

/* Collect figure `metric` of peer `peer`.  Rounds past FL_ROUNDS_MAX do not exist. */
struct fl_spread fl_comparison_spread(const struct fl_comparison *c, size_t peer,
                                      enum fl_metric metric);

enum { FL_ROUNDS_MAX = 1000 };

/* Does any run mark steps? Then the table shows the figures of steps. */
bool fl_comparison_has_steps(const struct fl_comparison *c);

/* How many runs of `peer` ended with another status than 0; `status` receives the last such. */
size_t fl_comparison_failures(const struct fl_comparison *c, size_t peer, int *status);

/* Print the machine, the versions, the medians and their ratios to the first allocator. */
void fl_comparison_print(const struct fl_comparison *c, FILE *file);

/* The whole record as JSON. Returns a new reference; NULL: no memory. */
json_t *fl_comparison_json(const struct fl_comparison *c);

#endif
