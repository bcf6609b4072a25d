/* What a comparison's runs say: medians, intervals, verdicts, warnings. Made once, then shown. */
#ifndef FAULTLESS_FAULTSTAT_ANALYSIS_H
#define FAULTLESS_FAULTSTAT_ANALYSIS_H

#include "faultstat/compare.h"
#include "faultstat/noise.h"
#include "faultstat/ratio.h"

enum { FL_WARNINGS_MAX = 40, FL_WARNING_LEN = 600 };

/* One figure of one allocator, over its good runs. */
struct fl_figure {
    size_t count; /* 0: the next three mean nothing */
    double median;
    double least;
    double most;
    double ratio; /* to the reference's median; NAN: none */
    bool has_interval;
    struct fl_interval interval; /* of the ratio */
};

struct fl_judgement {
    struct fl_figure figure[FL_METRIC_COUNT];
    enum fl_verdict verdict;
    char reason[128]; /* why it was not compared, or too little; "" otherwise */
    size_t failures;  /* runs that failed or ran out of time */
    int failure;      /* the exit status of the last of them */
    struct fl_noise noise;
    bool is_tied; /* it is faster, and no difference to the fastest could be shown */
};

struct fl_analysis {
    size_t reference;      /* the first allocator that was measured */
    double level;          /* of each interval */
    bool has_steps;        /* some run had steps: figures of a step are shown */
    bool has_processes;    /* some run had several */
    enum fl_metric metric; /* the time that verdicts are about */
    size_t fastest;        /* of those that are faster, by the ratio; else the reference */
    struct fl_judgement peer[FL_PEERS_MAX];
    char warning[FL_WARNINGS_MAX][FL_WARNING_LEN];
    size_t warnings;
};

/* Judge all runs that were made. */
void fl_analysis_make(struct fl_analysis *a, const struct fl_comparison *c);

/* Add the warnings; fl_analysis_make calls it. */
void fl_analysis_warn(struct fl_analysis *a, const struct fl_comparison *c);

/* A row's verdict as a sentence. */
void fl_analysis_sentence(const struct fl_analysis *a, const struct fl_comparison *c, size_t peer,
                          char *text, size_t len);

/* All rows' in one. */
void fl_analysis_conclude(const struct fl_analysis *a, const struct fl_comparison *c, char *text,
                          size_t len);

#endif
