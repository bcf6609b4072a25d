/* A thread's program with loops, and what it knows: which blocks are live, where they lie, what is
 * in them. Functions return NULL, or what went wrong. */
#ifndef FL_TESTS_PROP_PLAN_MODEL_H
#define FL_TESTS_PROP_PLAN_MODEL_H

#include "prop/must.h"
#include "unit/plan_fixture.h"

enum { LOOPS = 3, SHAPES = 6, REQUESTS = 28, SLOTS = 96 };

struct model_block {
    unsigned char *p; /* NULL: none */
    size_t n;         /* bytes */
    uint64_t stamp;
    struct fl_extent *e; /* NULL: the next allocator's */
    uint16_t id;         /* of its pages, in the shadow */
    bool inner, kept;    /* of an arena; lives longer than its like */
    size_t held;         /* bytes of the window that are its own */
};

struct request {
    size_t n;
    unsigned how, lives; /* freed so many requests later, maybe in the next step */
    bool varies;         /* in each step another size */
};

struct model_loop {
    struct fl_step_context *context; /* NULL: the thread's own, or there is none */
    bool shared;                     /* other threads step in it, too */
    struct request script[SHAPES][REQUESTS];
    bool varies[SHAPES];
    unsigned n[SHAPES], shape, next_shape, at, steps;
    uint32_t clock, due[SLOTS]; /* requests */
    struct model_block block[SLOTS];
    unsigned vary, vary_all; /* sixteenths, 0: none */
    bool omit, inside;
    unsigned calm; /* steps in a row that nothing disturbed */
    /* The layout's serial when the step began, for so many steps; had the steps that it was learned
     * from been calm? */
    uint32_t served;
    unsigned same;
    bool learned_calm;
};

extern _Thread_local struct model {
    uint16_t thread;
    struct model_loop loop[LOOPS];            /* the first one's context is the thread's own */
    struct model_loop *stack[LOOPS], *chosen; /* those with a step under way; whose is next */
    unsigned depth;
    unsigned unplanned;           /* steps that should have been served as planned */
    uint64_t stamps, hits, inner; /* requests that the plan served; blocks in arenas */
    bool ever_refused;            /* memory, by the kernel */
} model;

/* After plan_begin: the process; and each thread of it, 0, 1 and so on. */
void model_start(void);
void model_start_thread(unsigned thread);
struct model_loop *model_current(void);
void model_disturb_all(void);

const char *model_ask(struct model_loop *l, size_t n, unsigned how, unsigned lives);
const char *model_drop(struct model_loop *l, struct model_block *b);
/* The loop has it no more: b, which lies elsewhere, has; any thread frees it. */
void model_hand_over(struct model_loop *l, struct model_block *b, struct model_block *to);
const char *model_free(const struct model_block *b);
const char *model_resize(struct model_loop *l, struct model_block *b, size_t n);
/* The first that is live from there on; NULL. */
struct model_block *model_live_block(struct model_loop *l, uint16_t which);

void model_draw_script(struct model_loop *l, unsigned shape, uint64_t random);
const char *model_begin(struct model_loop *l);
const char *model_end(struct model_loop *l);
/* Frees one that is due, begins a step, asks, or ends it. */
const char *model_next(struct model_loop *l);
/* The loop gets another context, once it begins a step. */
const char *model_other_context(struct model_loop *l);
void model_end_thread(void);
/* Frees all that the loops have. */
const char *model_drop_all(void);

#endif
