/* What a context learns its steps from: watches, records, a leader. */
#ifndef FL_PLAN_LEARN_LEARN_H
#define FL_PLAN_LEARN_LEARN_H

#include "plan/plan.h"

enum { FL_RECORDS = 8, FL_LIVES_MOST = 32768 };

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
    uint64_t live;     /* bytes asked for by its thread, less what that thread freed */
    _Atomic uint64_t freed_by_others;
    /* Steps. */
    struct fl_record record[FL_RECORDS];
    unsigned newest; /* record under way */
    bool recording;
    bool relearn;     /* steps that are served are worth recording again */
    uint32_t begun;   /* steps of this loop */
    uint32_t sampled; /* recorded since a plan was last made */
    uint32_t stable;  /* of these, the last ones in a row that repeated the one before */
};

/* Threads that share a step. One whose own requests tell of none takes over those of its leader,
 * the owner of blocks that it frees. */
struct fl_lead {
    _Atomic uint32_t ended; /* steps of this context, but for those of its leader's: followers that
                             * lead each other would never come to an end. Its thread writes */
    struct fl_step_context *leader;
    uint32_t followed; /* steps of the leader that are known */
    bool led;          /* the step under way ends as the leader's has */
    bool alone;        /* the leader's steps were none of its own */
};

/* See watch.c. The context's thread, but for what says otherwise. */
struct fl_watch {
    struct fl_detect *detect; /* NULL: steps are declared, or there was no memory */
    uint32_t more_at;         /* events, at which the worker is called for more of it */
    _Atomic uint32_t warms;   /* events whose memory is to come; 0: none. The worker takes it */
    uint32_t unfound;         /* requests of this watch, since the last step */
    unsigned watches;         /* in a row, in vain: each makes watch and rest longer */
    _Atomic uint64_t rest;    /* requests, or declared steps, until it learns again. Any thread may
                               * end it, which finds a step */
    _Atomic uint64_t over;    /* of these, how many are for what others were watched in vain */
    unsigned rests;           /* after plans that were no good, in a row: each is longer */
};

struct fl_step_context;

void fl_record_begin(struct fl_step_context *c);
void fl_record_end(struct fl_step_context *c);
uint64_t fl_record_mix(uint64_t hash, uint64_t size);
void fl_record_drop_all(struct fl_step_context *c);
/* How many records, the newest first, may be learned from; 0: not yet. */
unsigned fl_record_ready(struct fl_step_context *c, struct fl_lives out[static FL_RECORDS]);

/* The request's life, if it is recorded. Any thread. False: it is not. */
bool fl_record_mark(struct fl_step_context *c, uint32_t request, uint32_t zone);

/* The thread is watched from here on, its detector in memory as far as it is used at once. False:
 * it cannot be. */
bool fl_watch_begin(struct fl_step_context *c);
/* A step was found, or nothing is known of its steps: it is watched for as long as at first. */
void fl_watch_anew(struct fl_step_context *c);
/* A request was watched, and no step ended with it. */
void fl_watch_count(struct fl_step_context *c);
/* The thread ends, or its watch does: without a step, if it has been watched since one. */
void fl_watch_end(struct fl_step_context *c);
/* A step was found or served: what was watched in vain is forgotten. */
void fl_watch_found(void);
/* A thread has just come: c->watch.rest says how long it is left alone; 0: not at all. */
void fl_watch_rest_first(struct fl_step_context *c);
/* Brings memory of its detector ahead of the stream. The worker. */
void fl_watch_warm(struct fl_step_context *c);

#endif
