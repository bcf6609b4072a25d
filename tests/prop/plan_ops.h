/* The planner as a state machine: a thread's loops under a sequence of operations, beside a model
 * of what is live, where it lies and what it holds. The clock and the kernel are fakes. */
#ifndef FL_TESTS_PROP_PLAN_OPS_H
#define FL_TESTS_PROP_PLAN_OPS_H

#include "plan/plan.h"

/* A name, and how often it comes where the program is not calm. */
#define PLAN_OPS(X)                                                                                \
    X(NEXT, 0)        /* what the loop does next: frees what is due, begins, asks, or ends */      \
    X(WORK, 6)        /* the worker's job, which may come late */                                  \
    X(PASS, 2)        /* time. a: ms */                                                            \
    X(TICK, 2)        /* of the region */                                                          \
    X(AGE, 4)         /* of the arenas */                                                          \
    X(LOOK, 3)        /* at the layout. a: whose */                                                \
    X(END, 2)         /* the step ends early */                                                    \
    X(NEST, 4)        /* a: whose step begins within this one */                                   \
    X(LOOP, 3)        /* a: whose steps come next */                                               \
    X(SHAPE, 4)       /* a: which script is next */                                                \
    X(SCRIPT, 2)      /* a: which, b: drawn anew from */                                           \
    X(VARY, 8)        /* a: sixteenths of the next size; b: or of all until the step's end */      \
    X(OMIT, 6)        /* the next request */                                                       \
    X(EXTRA, 6)       /* a: size, b: how, and how long it lives */                                 \
    X(RESIZE, 8)      /* a: which, b: to sixteenths */                                             \
    X(FREE, 6)        /* a: which, due or not */                                                   \
    X(KEEP, 3)        /* a: which is not freed when it is due */                                   \
    X(MARK, 3)        /* a: which, b: zone */                                                      \
    X(HOLD, 1)        /* a: whose arena */                                                         \
    X(LET_GO, 2)      /* a: which */                                                               \
    X(RELEASE, 2)     /* all that is idle */                                                       \
    X(LEND, 3)        /* a: bytes */                                                               \
    X(PURGE, 1)       /* the region. a: age */                                                     \
    X(REFUSE, 2)      /* a: what the kernel refuses, b: for so many operations */                  \
    X(NEW_CONTEXT, 1) /* a: whose context is freed, and another one made */                        \
    X(THREAD_END, 1)

#define PLAN_OP_KIND(name, share) PLAN_##name,
enum plan_op_kind { PLAN_OPS(PLAN_OP_KIND) PLAN_KINDS };
extern const char *const plan_op_names[PLAN_KINDS];

struct plan_op {
    enum plan_op_kind kind;
    uint16_t a, b;
};

struct plan_ops_config {
    const char *name;
    bool background, moves, refuses; /* there is a worker; the kernel moves pages, refuses some */
};
enum { PLAN_CONFIGS = 4 };
extern const struct plan_ops_config plan_ops_configs[PLAN_CONFIGS];

/* Plays all of it, once in a process: NULL, or what went wrong. *at: the operation under way.
 * *out: the planner's figures of it all. */
const char *plan_ops_play(const struct plan_ops_config *c, const struct plan_op *ops, size_t n,
                          _Atomic size_t *at, struct fl_plan_stats *out);

/* Any sequence: stretches of calm, in which the worker comes all the same; of some disorder; of
 * much. */
void plan_ops_draw(struct plan_op *ops, size_t n, uint64_t random);
/* One of them alone; and when all has been freed, is all as it was? NULL, or what is wrong. */
const char *plan_ops_apply(const struct plan_op *op);
const char *plan_ops_all_is_free(void);

#endif
