/* The packing of a context's layouts, by the worker.
 *
 * WANTED, NONE and ABANDONED are written by the context's thread, RUNNING and DONE by the worker: who
 * may change the state has the rest of the job to itself. */
#ifndef FL_PLAN_JOB_H
#define FL_PLAN_JOB_H

#include "plan/learn/learn.h"
#include "plan/serve/serve.h"

enum fl_job_state {
    FL_JOB_NONE,
    FL_JOB_WANTED,
    FL_JOB_RUNNING,
    FL_JOB_DONE,
    FL_JOB_ABANDONED, /* the thread is gone: the worker cleans up */
};

struct fl_pack_job {
    _Atomic uint32_t state;            /* enum fl_job_state */
    struct fl_lives lives[FL_RECORDS]; /* what it packs: records, or, with no lives, `draft` */
    unsigned nlives;
    struct fl_layout *grown; /* the layout that is made anew; NULL: none */
    struct fl_layout *draft; /* what it had grown to when the job was wanted */
    struct fl_layout *made;  /* NULL: it failed */
    bool unwanted;           /* what it makes anew is no good. The context's thread */
};

/* A search for a lower layout than one that serves: see repack.c. */
struct fl_repack {
    struct fl_better *search;         /* under way. The worker */
    _Atomic uint32_t wanted;          /* `first` of the layout that it is for; 0: for none */
    _Atomic(struct fl_layout *) made; /* what it has found; whoever takes it out has it */
};

/* What the packer is given for a layout, and what it has come to. */
struct fl_packing {
    struct fl_pack_buffer *buffer;
    uint32_t *back;
    size_t n, bytes, backs;
    struct fl_pack_progress progress;
    struct fl_pack_result result;
};

bool fl_packing_open(struct fl_packing *p, const struct fl_layout *l);
void fl_packing_close(struct fl_packing *p);
/* Goes on for so long; 0, 0: see fl_pack_progress. */
int fl_packing_run(struct fl_packing *p, uint64_t cost, uint64_t ns);
/* The layout's height by the offsets that were found; and may one be lower enough for a swap than `height`? */
uint64_t fl_packing_height(const struct fl_packing *p, const struct fl_layout *l);
bool fl_packing_is_worth(const struct fl_packing *p, const struct fl_layout *l, uint64_t height);
void fl_packing_store(const struct fl_packing *p, struct fl_layout *l);

/* engine.c */
void fl_engine_want(struct fl_step_context *c);
/* `l` takes the place of layout `i`, if there is one, and is written to the plan file. At a step's boundary. */
void fl_engine_know(struct fl_step_context *c, unsigned i, struct fl_layout *l);
/* Takes over what the job has made, at a step's boundary. NULL: nothing, or it failed. */
struct fl_layout *fl_engine_collect(struct fl_step_context *c);
/* In a child of fork: the job, if there is one, will never be done. */
void fl_engine_lose(struct fl_step_context *c);
/* Nobody is in it any more: its plans go, and it is another's; by the worker, if that is at it. */
void fl_engine_abandon(struct fl_step_context *c);

/* repack.c */
/* A search for a lower layout than `l`, from where `p` has come to, which is the search's then. The worker. */
void fl_better_begin(struct fl_step_context *c, const struct fl_layout *l, struct fl_packing *p);
/* A part of it. ns until the next; UINT64_MAX: there is none. The worker. */
uint64_t fl_better_work(struct fl_step_context *c);
/* Takes over what it has found. At a step's boundary. */
void fl_better_collect(struct fl_step_context *c);
/* `l` is no more, or will be made anew; NULL: whatever it is. The context's thread. */
void fl_better_forget(struct fl_step_context *c, const struct fl_layout *l);

#endif
