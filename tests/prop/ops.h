/* A region under a sequence of operations, beside a naive model of it: what is live, what is in it,
 * what it adds up to. The same player serves the random sequences of prop/ and the fuzzer's of
 * fuzz/. */
#ifndef FL_TESTS_PROP_OPS_H
#define FL_TESTS_PROP_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
    OP_TAKE,      /* a: size, b: alignment */
    OP_CALLOC,    /* the same, zeroed */
    OP_FREE,      /* a: which */
    OP_FREE_PAST, /* the same, without the cache */
    OP_DEFER,     /* the same, as a signal handler amid our work */
    OP_RESIZE,    /* a: which, b: size */
    OP_PURGE,     /* a: age */
    OP_TICK,
    OP_CACHE,  /* release the cache, take another */
    OP_REFUSE, /* a: the kernel refuses memory until the next of these */
    OP_PRESS,  /* a: how much memory is left, b: a limit on maps; until the next of these */
    OP_MOVE,   /* realloc that may move. a: which, b: how much more */
    OP_ANSWER, /* a: what the kernel says to moves, until the next of these */
    OP_FORGET, /* the peak: from here on pages have to move */
    OP_REFILL, /* the stock. a: how much was wanted */
    OP_CLEAR,  /* free memory */
    OP_REPAIR, /* a, b: what the kernel tells of single pages */
    OP_FORK,   /* a: with a child */
    OP_HIDE,   /* free memory, from core dumps. a: how, b: its age, and how much */
    OP_KINDS
};

struct op {
    uint8_t kind;
    uint16_t a, b;
};

/* How the region is set up. */
struct ops_config {
    const char *name;
    size_t eager_max, limit, stock; /* bytes, as in struct fl_region_config */
    bool huge, by_touch, reserved;
    int method; /* enum fl_move_method */
    bool wait_for_touch;
};

/* Bytes that `a` or `b` stands for. */
size_t ops_size(uint16_t v);
size_t ops_align(uint16_t v);

extern const struct ops_config ops_configs[];
extern const size_t ops_nconfigs;

/* Plays all of it on a new region. NULL, or what went wrong, with *out_at the operation's index. */
const char *ops_play(const struct ops_config *c, const struct op *ops, size_t n, size_t *out_at);
void ops_print(const struct op *ops, size_t n);

#endif
