/* A thread's program for test_prop_plan.c: a loop that asks for blocks by a schedule, or nearly;
 * every block knows what it holds. */
#ifndef FL_TESTS_PROP_PLAN_PROGRAM_H
#define FL_TESTS_PROP_PLAN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fl_step_context;

enum { PROGRAM_BOXES = 32 };

/* All that a program may do; what it does is drawn. */
struct program_how {
    uint64_t seed;
    unsigned steps;
    size_t threshold; /* bytes: from here on blocks may be the product's */
    /* The schedule stays, and no request is beside it: a plan must be able to serve it. */
    bool steady;
    bool declares;
    bool hands;                     /* changes the protection of what it then frees */
    struct fl_step_context *shared; /* a context that several threads try to get into; NULL: none */
};

void program_run(const struct program_how *how);
/* Frees what the programs have handed over to each other. */
void program_empty_boxes(void);

#endif
