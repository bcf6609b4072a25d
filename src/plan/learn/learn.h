/* What a context learns its steps from: records. */
#ifndef FL_PLAN_LEARN_LEARN_H
#define FL_PLAN_LEARN_LEARN_H

#include "plan/plan.h"

enum { FL_LIVES_MOST = 32768 }; /* of a step, in 1.5 MiB; a longer one is not planned */

/* A step as it happens: see record.c. */
struct fl_record {
    struct fl_life *life; /* FL_LIVES_MOST; NULL: none has been recorded */
    uint32_t n;
    uint32_t first;      /* ordinal of the first request */
    uint64_t begin, end; /* the context's clock */
    uint64_t hash;       /* of the sizes, in order */
    bool full;           /* more requests than there is room for */
    bool closed;         /* ended */
    bool complete; /* and so has the next one: what it left behind has been freed there, or stays */
};

struct fl_learn {
    /* Since the context was made. */
    uint32_t requests; /* ordinal of the last one. Others who free read it, and the next one */
    uint32_t before;   /* as it was when the thread came: what is not later was another thread's */
    uint64_t clock;    /* events */
    /* Steps. */
    struct fl_record record[FL_MERGE_STEPS];
    unsigned newest; /* record under way */
    bool recording;
    bool relearn;     /* steps that are served are worth recording again */
    uint32_t begun;   /* steps of this loop */
    uint32_t sampled; /* recorded since a plan was last made */
    uint32_t stable;  /* of these, the last ones in a row that repeated the one before */
};

struct fl_step_context;

void fl_record_begin(struct fl_step_context *c);
void fl_record_end(struct fl_step_context *c);
uint64_t fl_record_mix(uint64_t hash, uint64_t size);
void fl_record_drop_all(struct fl_step_context *c);
/* How many records, the newest first, may be learned from; 0: not yet. */
unsigned fl_record_ready(struct fl_step_context *c, struct fl_lives out[static FL_MERGE_STEPS]);

/* A complete step as text: step_trace.c. */
void fl_trace_step(struct fl_step_context *c, const struct fl_record *rec);

/* The request's life, if it is recorded. Any thread. False: it is not. */
bool fl_record_mark(struct fl_step_context *c, uint32_t request, uint32_t zone);

#endif
