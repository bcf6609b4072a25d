/* The packing of a context's layouts, by the worker.
 *
 * WANTED, NONE and ABANDONED are written by the context's thread, RUNNING and DONE by the worker:
 * who may change the state has the rest of the job to itself. */
#ifndef FL_PLAN_JOB_H
#define FL_PLAN_JOB_H

#include "plan/learn/learn.h"
#include "plan/serve/serve.h"

/* Jobs in a row that fail, or steps of eight beside others', until the context rests. */
enum { FL_FAILURES = 3 };

enum fl_job_state {
    FL_JOB_NONE,
    FL_JOB_WANTED,
    FL_JOB_RUNNING,
    FL_JOB_DONE,
    FL_JOB_ABANDONED, /* the thread is gone: the worker cleans up */
};

struct fl_pack_job {
    _Atomic uint32_t state;                /* enum fl_job_state */
    struct fl_lives lives[FL_MERGE_STEPS]; /* what it packs: records, or, with no lives, `layout` */
    unsigned nlives;
    struct fl_layout *again;  /* the layout that is made anew; NULL: none */
    struct fl_layout *layout; /* a copy of that; DONE: the new one, or NULL: it failed */
    bool unwanted;            /* what it makes anew is no good. The context's thread */
    unsigned failures;        /* in a row: the steps were too different. The context's thread */
};

/* offsets.c */
/* Offsets for its slots, and its height. 0 or -errno. */
int fl_engine_pack(struct fl_layout *l);

/* engine.c */
void fl_engine_want(struct fl_step_context *c);
/* Takes over what the job has made, at a step's boundary. NULL: nothing, or it failed. */
struct fl_layout *fl_engine_collect(struct fl_step_context *c);
/* In a child of fork: the job, if there is one, will never be done. */
void fl_engine_lose(struct fl_step_context *c);
/* No thread is in it any more: its plans go, and it is another's; by the worker, if that is at
 * it. */
void fl_engine_abandon(struct fl_step_context *c);

#endif
