/* Steps on a fake region behind the malloc-shaped functions, and a loop to be learned. */
#ifndef FL_TESTS_UNIT_PLAN_FIXTURE_H
#define FL_TESTS_UNIT_PLAN_FIXTURE_H

#include "alloc/alloc.h"
#include "plan/context.h"
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

/* A region, a route from 64 KiB on, and steps, packed at once. NULL for that. */
void plan_begin(const struct fl_plan_config *c);
/* Set before it: there are several nodes; the fake kernel is another than fake_install's. */
extern const struct fl_placing *plan_placing;
extern void (*plan_kernel)(void);

/* Each test in a process of its own: contexts, arenas and their memory are made once a process. One
 * that hangs fails. */
int plan_run(const struct CMUnitTest *tests, size_t n);

/* The i-th request of a step, freed before the request that is `lives` later; beyond the step's
 * end: of the next step. */
struct ask {
    size_t n; /* bytes */
    unsigned lives;
};
enum { LOOP_MOST = 64, FOR_EVER = 1000000 };

/* A program's loop. What it holds is stamped, and looked at when it is freed. */
struct loop {
    const struct ask *ask;
    unsigned n; /* requests in a step */
    unsigned step;
    /* By the step's parity. */
    unsigned char *live[2][LOOP_MOST];
    size_t size[2][LOOP_MOST];
    /* Where each request of the last step lay, and of the one before; was it the plan's? */
    void *at[LOOP_MOST], *was[LOOP_MOST];
    bool planned[LOOP_MOST];
    /* Wishes for the next step. */
    unsigned skip,
        extra;      /* leave out that request; one more before that one: its number plus one */
    unsigned scale; /* sixteenths; 0: as they are */
    /* Before each request, and before or after the frees that come before it. */
    void (*also)(unsigned i), (*freed)(unsigned i);
};

/* A schedule of `n` requests with lives of all kinds within the step. */
const struct ask *loop_usual(unsigned n);
void loop_step(struct loop *l); /* its requests alone */
void loop_declared(struct loop *l, struct fl_step_context *c, unsigned steps);
/* Frees all that it holds. */
void loop_over(struct loop *l);
/* How many requests of the last step lay where they lay in the one before; and how many the plan
 * served. */
unsigned loop_same(const struct loop *l);
unsigned loop_planned(const struct loop *l);

/* Of the last step, all that it asked for was planned; and lay where it lay in the one before. */
#define assert_planned(l) assert_int_equal(loop_planned(l), (l)->n)
#define assert_repeated(l)                                                                         \
    do {                                                                                           \
        assert_planned(l);                                                                         \
        assert_int_equal(loop_same(l), (l)->n);                                                    \
    } while (0)

/* plan_begin, and a loop of loop_usual; five of its steps, after which all is planned. */
enum { USUAL = 30 };
extern struct loop usual;
void usual_begin(const struct fl_plan_config *c);
int usual_each(void **state); /* a set-up */
void usual_learn(void);

/* Any number. */
uint64_t loop_roll(void);

struct fl_plan_stats plan_stats(void);

/* The block's descriptor; NULL: it is not ours. */
struct fl_extent *extent_of(const void *p);

/* What f returns, in a thread of its own. */
void *in_thread(void *(*f)(void *), void *arg);
/* fork with its handlers: what the child returns, as fake_child. It calls plan_in_child first. */
int plan_fork(int (*child)(void));
void plan_in_child(void);

/* This thread's end, as far as we are concerned. */
void thread_end(void);

/* An arena of `height` bytes by itself, all zero before, as new_arena makes it; its blocks. */
extern struct fl_arena arena;
void open_at(size_t height);
struct fl_extent *block(size_t granule, size_t len, size_t room);
void give_block(struct fl_extent *e);

#endif
