/* A step's plan on the device: each request of the step has its place in one arena. Shared by the
 * pools' files alone.
 *
 * One thread's requests are followed, in their order: the one that said fl_gpu_pool_step. A request
 * that is as large as the plan's next one is given its place if that is free: neither whom the
 * place was given to last, for each of its bytes, nor a stream that is not in order with the
 * taker's. Whatever is different is served as by auto_growth, and costs memory, never a byte.
 *
 * Slots are taken by the owner alone, without a lock, and freed by any thread. In a joint plan
 * (options: all_threads) the owner is the thread with the turn, which none waits for but one that
 * ends a step. */
#ifndef FL_GPU_PLAN_PLAN_H
#define FL_GPU_PLAN_PLAN_H

#include "gpu/pool/pool.h"

enum fl_slot_state {
    FL_SLOT_FREE,
    FL_SLOT_USED,
    FL_SLOT_ENDING,
    FL_SLOT_HELD, /* freed while its stream was captured: a graph may use it */
};

struct fl_pool_slot {
    size_t len;               /* rounded */
    uint64_t address;         /* 0: has no place */
    uint32_t site;            /* of its address */
    uint32_t before, nbefore; /* plan.before: slots that had its bytes last */
    _Atomic uint32_t state;   /* release at its end, pairs with the owner's acquire */
    uint64_t step;            /* in which it was taken last. The owner's */
    size_t requested;
    struct fl_pool_stream *taker; /* the owner's, while it is free */
    /* Written by the thread that ends it. */
    struct fl_pool_stream *stream; /* NULL: safe for all */
    uint64_t stamp;
    struct fl_pool_use *use; /* Lock: the pool's; of a slot that is free the owner's */
};

struct fl_pool_site {
    uint64_t address;                  /* 0: nothing here */
    struct fl_pool_slot *_Atomic slot; /* that has it, or had it last */
};

/* What one side writes and statistics read. Relaxed. */
struct fl_pool_flow {
    _Atomic uint64_t count, bytes, requested;
};

struct fl_pool_life {
    size_t len;
    uint64_t birth, death; /* 0: not freed yet */
    const struct fl_pool_stream *stream;
    bool is_shared; /* by streams */
};

/* Constant but for what its slots and sites say of themselves; stays until the pool ends, so that
 * who frees may look. */
struct fl_pool_layout {
    struct fl_pool_layout *next;
    struct fl_pool_chunk *chunk;
    uint64_t address;
    size_t len;
    struct fl_pool_slot *slot;
    size_t n;
    uint32_t *before; /* slot * 2; + 1: as of the step before */
    size_t nbefore, before_room;
    struct fl_pool_site *site;
    size_t sites;        /* a power of two */
    unsigned site_shift; /* 64 - log2 of it */
};

struct fl_pool_plan {
    _Atomic uint64_t owner; /* thread's number; 0: none. Relaxed: no other thread ever was */
    bool is_joint;          /* the thread with the turn is the owner meanwhile. Constant */
    _Atomic bool is_taken;  /* the turn. Acquire, release */
    struct fl_pool_layout *_Atomic layout; /* release by the owner; NULL: there is none */
    struct fl_pool_layout *old;
    /* The owner's. */
    size_t cursor;
    uint64_t step;
    size_t misses, unlike_steps, like_steps;
    /* Unlike steps before it is learned anew: twice as many each time, until steps have been alike
     * for long. */
    size_t patience;
    size_t rest;  /* steps until one is learned, after one that was not worth a plan */
    void *handle; /* whose record is `stream`, which lasts */
    struct fl_pool_stream *stream;
    uint32_t stream_generation;
    struct fl_pool_flow taken, given;
    _Atomic uint64_t peak;
    /* For any stream. */
    struct fl_pool_flow given_by_others;
    /* Lock: the pool's. */
    struct fl_pool_life *life, *before; /* of the step that is learned, and the one before it */
    size_t lives, life_room, befores, before_room;
    uint64_t clock;
};

/* Is the caller the step's thread, until fl_planned_leave? */
static FL_INLINE bool fl_planned_enter(struct fl_pool_plan *plan)
{
    return FL_UNLIKELY(plan->is_joint)
               ? !atomic_exchange_explicit(&plan->is_taken, true, memory_order_acquire)
               : atomic_load_explicit(&plan->owner, memory_order_relaxed) == fl_stream_thread();
}
static FL_INLINE void fl_planned_leave(struct fl_pool_plan *plan)
{
    if (FL_UNLIKELY(plan->is_joint)) {
        atomic_store_explicit(&plan->is_taken, false, memory_order_release);
    }
}

/* ---- replay.c ---- */

bool fl_planned_take(struct fl_gpu_pool *p, size_t size, void *stream, uint64_t *out);
/* As fl_pool_free. */
int fl_planned_give(struct fl_gpu_pool *p, uint64_t address, struct fl_stream_name name, bool live);
/* The slot that has `address`. False: none that is taken. Lock: held. */
bool fl_planned_find(const struct fl_gpu_pool *p, uint64_t address, struct fl_gpu_block *out);
int fl_planned_inplace(struct fl_gpu_pool *p, uint64_t address, size_t size);
/* Where the uses of that slot hang; NULL: it is not taken. Lock: held. */
struct fl_pool_use **fl_planned_uses(struct fl_gpu_pool *p, uint64_t address);
static inline struct fl_pool_layout *fl_planned_layout(const struct fl_gpu_pool *p)
{
    return atomic_load_explicit(&p->plan->layout, memory_order_acquire);
}
static inline bool fl_planned_owns(const struct fl_gpu_pool *p, uint64_t address)
{
    const struct fl_pool_layout *l = fl_planned_layout(p);

    return l != NULL && address - l->address < l->len;
}
/* That address's site; where there is none, where it would be, with address 0. */
static inline struct fl_pool_site *fl_planned_site(const struct fl_pool_layout *l, uint64_t address)
{
    size_t i = (size_t)(address / FL_POOL_UNIT * UINT64_C(0x9e3779b97f4a7c15) >> l->site_shift);

    while (l->site[i].address != address && l->site[i].address != 0) {
        i = (i + 1) & (l->sites - 1);
    }
    return &l->site[i];
}
uint64_t fl_planned_live_bytes(const struct fl_pool_plan *plan);
uint64_t fl_planned_live(const struct fl_pool_plan *plan);
void fl_planned_add_stats(const struct fl_gpu_pool *p, struct fl_gpu_pool_stats *s);

/* ---- layout.c ---- */

/* A layout for the arena, which comes from the driver in the place of the chunks that are idle.
 * -ENOENT: these are fewer; then the pool is better off without it. Lock: not held, nothing is
 * live; context current. 0 or -errno. */
int fl_planned_install(struct fl_gpu_pool *p, const struct fl_gpu_slot *slot, size_t n);
/* The arena goes back. -EBUSY: something is there, or a graph may use it. */
int fl_planned_remove(struct fl_gpu_pool *p);
/* What graphs may use is free: there are none any more. */
void fl_planned_release_held(struct fl_gpu_pool *p);
void fl_planned_free(struct fl_gpu_pool *p);

/* ---- learn.c ---- */

/* Both with the lock. */
void fl_learn_saw_alloc(struct fl_gpu_pool *p, struct fl_pool_block *b,
                        const struct fl_pool_stream *s);
void fl_learn_saw_free(struct fl_gpu_pool *p, struct fl_pool_block *b,
                       const struct fl_pool_stream *s);
static inline void fl_learn_alloc(struct fl_gpu_pool *p, struct fl_pool_block *b,
                                  const struct fl_pool_stream *s)
{
    if (FL_UNLIKELY(p->is_learning)) {
        fl_learn_saw_alloc(p, b, s);
    }
}
static inline void fl_learn_free(struct fl_gpu_pool *p, struct fl_pool_block *b,
                                 const struct fl_pool_stream *s)
{
    if (FL_UNLIKELY(b->life != 0)) {
        fl_learn_saw_free(p, b, s);
    }
}

#endif
