/* A context: whose steps these are, and what is done about them. src/plan/README.md has the
 * diagram. */
#ifndef FL_PLAN_CONTEXT_H
#define FL_PLAN_CONTEXT_H

#include "plan/job.h"

/* What a context does. It changes in go() alone: context.c. */
enum fl_plan_state {
    FL_LEARN, /* steps are recorded */
    FL_PACK,  /* the worker makes a layout of them; nothing is served yet */
    FL_SERVE, /* requests come from a layout */
    FL_REST,  /* steps are counted until it learns again */
};

/* The first ones of fl_plan_stats, in its order. */
struct fl_plan_counters {
    /* words alone: see fl_plan_add_counters */
    _Atomic uint64_t hits, misses, hit_bytes, unplaced, missed_bytes, recorded, steps, layouts,
        drops;
};

/* Added to the thread that looks where blocks lie, and is in no step of the context. */
enum { FL_LOOKS = 1 };

/* Who is in it. */
struct fl_identity {
    uint32_t id;                   /* its place in fl_plan.context; 0: it has no thread */
    _Atomic uintptr_t thread;      /* the one inside, as fl_plan_self, or FL_LOOKS; 0: none */
    uint64_t begun_ns;             /* when its step began; 0: none has, or there is no timeline */
    bool open;                     /* not freed by the program */
    uint32_t number;               /* of its step, among all that were begun */
    bool beside;                   /* another thread steps, too, in a context of its own */
    _Atomic bool asked;            /* for addresses, ever: it is planned all the same. Any thread */
    struct fl_step_context *outer; /* the one this thread was in before */
};

/* What a context waits for that rests. Its thread. */
struct fl_rest {
    uint64_t steps;     /* until it learns again */
    bool asked;         /* for addresses, before it began */
    unsigned doublings; /* of the next rest */
};

/* Its address is one for ever. While no thread has it it is zero, and takes no memory: a late look
 * finds nothing. Its thread alone writes it, but for what says otherwise. */
struct fl_step_context {
    struct fl_serve serve;
    _Atomic bool inside; /* its thread is at work here: a handler that sees it leaves all alone */
    enum fl_plan_state state;
    unsigned steps_away; /* in a row, in another zone than the arena's. Its thread */
    struct fl_learn learn;
    struct fl_rest rest;
    struct fl_pack_job job;
    struct fl_identity who;
    struct fl_plan_counters stats;
};

enum { FL_CONTEXTS = 1024 }; /* each takes addresses for its records: 12 MiB */

extern struct fl_plan {
    struct fl_lock lock;
    struct fl_region *region;
    struct fl_plan_config config;
    struct fl_own_memory memory;
    /* Type-stable. Lock: plan, to add. The first is no thread's: it has the figures of those that
     * have ended. */
    struct fl_step_context *context[FL_CONTEXTS + 1];
    _Atomic uint32_t ncontexts;
    uint16_t free[FL_CONTEXTS]; /* places of those without a thread, `nfree`. Lock: plan */
    uint32_t nfree;             /* Lock: plan */
    _Atomic uint64_t stepping;  /* threads in steps; from bit 32 on: steps that they ever began */
    uint32_t requests;          /* ordinals that none of them has used begin after it. Lock: plan */
    _Atomic(struct fl_arena *) arenas; /* the newest of all that ever were. Lock: plan, to add */
    bool trace_failed;
} fl_plan;

extern _Thread_local struct fl_step_context *fl_plan_mine, *fl_plan_default;

/* The calling thread, by its thread-local storage: gettid(2) is a system call, which a filter of
 * the program's may kill for. In a child of fork its thread is the one that forked. */
static inline uintptr_t fl_plan_self(void)
{
    return (uintptr_t)&fl_plan_mine;
}
extern struct fl_cursor fl_plan_no_cursor;

/* The addresses of fl_plan.memory, beside the window's, are taken. Lock: plan, or boot. */
void fl_plan_claim_memory(void);

/* Layout `i` of those that are known is `l`; NULL: none. */
static inline void fl_context_set_known(struct fl_step_context *c, unsigned i, struct fl_layout *l)
{
    fl_assert(i < FL_LAYOUTS);
    c->serve.known[i] = l;
    c->serve.ready = false;
}

struct fl_step_context *fl_context_make(void);
void fl_context_unmake(struct fl_step_context *c);
/* Its thread has ended, and its plans are no more: the memory goes, and another thread may have the
 * context. No lock held. */
void fl_context_leave(struct fl_step_context *c);
/* What a context has memory for beside itself: of one thing after the other, mapped when it is
 * first wanted. NULL: it cannot be. Its thread. */
enum fl_context_part { FL_PART_CONTEXT, FL_PART_RECORDS, FL_PARTS };
void *fl_context_part(uint32_t place, enum fl_context_part part);
void fl_plan_add_counters(struct fl_plan_counters *sum, const struct fl_plan_counters *c);
/* The thread is in `c` from here on; a handler never finds modes without a context. */
void fl_context_enter(struct fl_step_context *c);
/* Has it a layout, whichever is served? */
bool fl_context_knows_any(const struct fl_step_context *c);
/* Which of its layouts is for steps with that hash and so many requests; FL_LAYOUTS: none. */
unsigned fl_context_find_known(const struct fl_step_context *c, uint64_t hash, uint32_t n);
/* The one way out of FL_SERVE. */
void fl_context_end_plan(struct fl_step_context *c, enum fl_end why);
void fl_context_step_begin(struct fl_step_context *c);
void fl_context_step_end(struct fl_step_context *c);
/* In a child of fork: a thread that is not here was in it, amid anything. Nothing that it has can
 * be relied on or given back, so it learns anew. Its blocks are live. */
void fl_context_abandon(struct fl_step_context *c);
/* In a child of fork: what other threads left amid something is not gone on with. */
void fl_context_in_child(struct fl_step_context *c);
/* The last requests were the first ones of `l`, which we know. */
void fl_context_resume(struct fl_step_context *c, struct fl_layout *l);

/* There is something for the worker to do. */
void fl_plan_call_worker(void);

/* The thread's step is over; `all`: it is in none. One that is not counted: a handler forked amid
 * its begin or end. */
static inline void fl_plan_leave_steps(bool all)
{
    atomic_fetch_sub(&fl_plan.stepping, all && (uint32_t)atomic_load(&fl_plan.stepping) != 0);
}

/* With a signal guard: see fl_region_busy. */
void fl_plan_lock(void);
void fl_plan_unlock(void);

#endif
