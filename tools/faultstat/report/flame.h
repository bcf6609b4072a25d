/* The tree of a flame graph: a node a function called from its parent's. */
#ifndef FAULTLESS_FAULTSTAT_REPORT_FLAME_H
#define FAULTLESS_FAULTSTAT_REPORT_FLAME_H

#include <jansson.h>
#include <stddef.h>

struct fl_flame_node {
    int frame;     /* number in "frames"; -1: the root */
    int first;     /* child, -1: none */
    int next;      /* sibling, -1: none */
    double faults; /* its own and its children's */
};

/* node[0] is the root. */
struct fl_flame {
    struct fl_flame_node *node;
    size_t count;
    size_t capacity;
};

/* Returns 0; -ENOMEM. */
int fl_flame_get(const json_t *record, struct fl_flame *flame);

void fl_flame_clear(struct fl_flame *flame);

#endif
