/* A region under a sequence of operations, beside a naive model of it: what is live, what is in it,
 * what it adds up to. The same player serves the random sequences of prop/ and the fuzzer's of
 * fuzz/. */
#ifndef FL_TESTS_PROP_OPS_H
#define FL_TESTS_PROP_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name, and out of 128 how often it comes in a random sequence. */
#define OPS(X)                                                                                     \
    X(TAKE, 31)     /* a: size, b: alignment */                                                    \
    X(CALLOC, 13)   /* the same, zeroed */                                                         \
    X(FREE, 26)     /* a: which */                                                                 \
    X(FREE_PAST, 8) /* the same, without the cache */                                              \
    X(DEFER, 3)     /* the same, as a signal handler amid our work */                              \
    X(RESIZE, 11)   /* a: which, b: size */                                                        \
    X(PURGE, 3)     /* a: age */                                                                   \
    X(TICK, 4)                                                                                     \
    X(CACHE, 1)  /* release the cache, take another */                                             \
    X(REFUSE, 2) /* a: the kernel refuses memory until the next of these */                        \
    X(PRESS, 3)  /* a: how much memory is left, b: a limit on maps; until the next of these */     \
    X(MOVE, 7)   /* realloc that may move. a: which, b: how much more */                           \
    X(ANSWER, 4) /* a: what the kernel says to moves, until the next of these */                   \
    X(FORGET, 3) /* the peak: from here on pages have to move */                                   \
    X(REFILL, 2) /* the stock. a: how much was wanted */                                           \
    X(CLEAR, 2)  /* free memory */                                                                 \
    X(REPAIR, 1) /* a, b: what the kernel tells of single pages */                                 \
    X(FORK, 2)   /* a: with a child */                                                             \
    X(HIDE, 2)   /* free memory, from core dumps. a: how, b: its age, and how much */

#define OP_KIND(name, share) OP_##name,
enum op_kind { OPS(OP_KIND) OP_KINDS };

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
