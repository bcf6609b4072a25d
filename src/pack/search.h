/* The depth-first search's state: search.c and node.c alone.
 *
 * Buffers are placed in order of offset, each at the lowest offset that what is placed below allows: every layout can be brought
 * into that form without growing. A node is a set of buffers that are not placed (a *problem*) and the offset it has come to.
 * The items of a problem lie side by side in `item`: one that is placed goes behind the others, so that the way back need not
 * restore the order. */
#ifndef FL_PACK_SEARCH_H
#define FL_PACK_SEARCH_H

#include "pack/run.h"

struct fl_item {
    uint64_t low; /* the lowest offset it can have yet; UINT64_MAX: placed */
    uint64_t size;
    uint32_t start, end; /* sections, from the part's first */
    uint32_t rank; /* who is tried first at equal offsets; no two of a problem have the same */
    uint32_t id;   /* from the part's first */
};

struct fl_problem {
    uint32_t lo, hi;   /* items */
    uint32_t from, to; /* sections that hold all of theirs */
};

struct fl_node {
    struct fl_problem problem;
    uint64_t at; /* nothing is placed lower any more */
    uint64_t last_offset;
    uint32_t at_rank, last_rank; /* at `at`: only higher ranks; `last_`: what was tried last */
    uint64_t highest;            /* the highest offset that can do */
    uint32_t problems;           /* the length of their stack when it began */
    uint32_t trail;              /* its length when the node began */
    uint32_t part,
        parts;     /* problems that the last try left: [part, parts) are still to be solved */
    bool is_open;  /* since the last try nothing crosses some boundary that something crossed */
    bool is_alone; /* what was tried last has nothing above it */
    bool is_tried;
};

enum fl_trail_kind { FL_TRAIL_PLACED, FL_TRAIL_LOW, FL_TRAIL_RANK };

struct fl_trail {
    uint64_t was;
    uint32_t id, kind;
};

struct fl_search {
    struct fl_pack_run *r;
    const struct fl_pack_part *p;
    uint32_t n, sections;
    uint64_t capacity;
    unsigned order;    /* which ranking: 0..FL_PACK_ORDERS - 1 */
    double noise;      /* 0: the ranking is exact */
    uint64_t end_work; /* where this dive ends */

    struct fl_item *item;
    uint32_t *place; /* of each id: its item */
    uint32_t *twin;  /* of each id: the one before that is like it; UINT32_MAX: none */
    uint64_t *left;  /* of each section: bytes that are not placed */
    uint32_t *cross; /* of each section: items that live in it and in the one before, not placed */
    uint64_t *least; /* of each id: the lowest offset that it can have in the end */
    uint32_t *witness; /* of each section: an id that can lie low enough; a guess */
    struct fl_node *node;
    uint32_t depth;
    struct fl_problem *problem; /* stack */
    uint32_t problems;
    struct fl_trail *trail;
    uint32_t trail_len, trail_room;
    uint64_t *key; /* three for each item, for ranking */
    uint32_t *sorted;
    struct fl_pack_arena arena; /* what is left, for sorting */
    bool is_cut; /* not everything was looked at; what is placed is not known any more */
};

enum { FL_PACK_ORDERS = 3 };

/* ---- node.c ---- */

void fl_node_rank(struct fl_search *s, struct fl_problem q, bool is_root);
/* Opens a node for `q`. False: it can have no layout. */
bool fl_node_open(struct fl_search *s, struct fl_problem q, uint64_t at, uint32_t at_rank);
/* Places the node's next candidate and pushes the problems that are left, node.part .. node.parts. False: there is no
 * candidate. A candidate after which some section is too full is passed over. */
bool fl_node_next(struct fl_search *s, struct fl_node *node);
/* Takes back what was placed since the trail was `len` long. */
void fl_node_undo(struct fl_search *s, uint32_t len);

#endif
