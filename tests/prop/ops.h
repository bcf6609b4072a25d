/* A region under a sequence of operations, beside a naive model of it: what is live, what is in it,
 * what it adds up to. The same player serves the random sequences of prop/ and the fuzzer's of
 * fuzz/. */
#ifndef FL_TESTS_PROP_OPS_H
#define FL_TESTS_PROP_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A name, what plays it, and out of 256 how often it comes in a random sequence. The program's
 * operations go by what alloc/ does: slots first, then depots, then the region. `a` has the thread
 * in its highest bits where one takes or frees: ops_thread. */
#define OPS(X)                                                                                     \
    X(TAKE, take, 58)        /* a: size, b: alignment */                                           \
    X(CALLOC, take, 24)      /* the same, zeroed */                                                \
    X(FREE, let_go, 50)      /* a: which */                                                        \
    X(FREE_PAST, let_go, 12) /* the same, without cache and depot */                               \
    X(DEFER, let_go, 6)      /* the same, as a signal handler amid our work */                     \
    X(ROW, row, 4) /* a: length of a row of blocks, b: how many, and how many of them stay */      \
    X(RESIZE, resize, 20) /* a: which, b: size */                                                  \
    X(MOVE, move, 13)     /* realloc that may move. a: which, b: how much more */                  \
    X(CACHE, cache, 2)    /* a thread ends, another one begins */                                  \
    X(CPU, cpu, 3)        /* a thread goes to another CPU. b: its number; the nodes' policy */     \
    X(SHARD, shard, 2)    /* a: another one is opened, or more is shared out */                    \
    X(TICK, tick, 7)      /* the worker's clock; without a worker time passes */                   \
    X(WAIT, wait, 4)      /* a: how much time passes */                                            \
    X(IDLE, idle, 1)      /* so many ticks without a request that all that ages has aged */        \
    X(PURGE, purge, 4)    /* a: age */                                                             \
    X(GIVE_BACK, give_back, 2) /* a: how; b: how much stays */                                     \
    X(LIMIT, limit, 1)         /* a: what may be held from now on */                               \
    X(REFUSE, refuse, 4)       /* a: the kernel refuses memory until the next of these */          \
    X(PRESS, press, 6)         /* a: how much memory is left, b: a limit on maps; likewise */      \
    X(ANSWER, answer, 7)       /* a: what the kernel says to moves, likewise; b: and to others */  \
    X(FORGET, forget, 6)       /* the peak: from here on pages have to move */                     \
    X(REFILL, refill, 4)       /* the reserve. a: how much was wanted */                           \
    X(REPAIR, repair, 6)       /* a, b: what the kernel tells of single pages */                   \
    X(FORK, fork_off, 5)       /* a: with a child; b: which thread forks */                        \
    X(HIDE, hide, 5)           /* free memory, from core dumps. a: how, b: its age, and how much */

#define OP_KIND(name, f, share) OP_##name,
enum op_kind { OPS(OP_KIND) OP_KINDS };

struct op {
    uint8_t kind;
    uint16_t a, b;
};

/* Between two ticks where there is no worker. */
#define OPS_TICK_NS ((uint64_t)1000000000)

/* How the region is set up. */
struct ops_config {
    const char *name;
    size_t eager_max, limit, stock; /* bytes, as in struct fl_region_config */
    bool base_pages, by_touch, reserved;
    int method; /* enum fl_move_method */
    bool wait_for_touch;
    bool alone;      /* no worker: requests and frees see to what ages */
    bool nodes;      /* two; else there is one */
    unsigned shards; /* of one node, from the start; 0: one, others may be opened */
};

/* Bytes that `a` or `b` stands for. */
size_t ops_size(uint16_t v);
size_t ops_align(uint16_t v);
/* A number in bits that ops_size leaves alone. */
unsigned ops_thread(uint16_t v);

extern const struct ops_config ops_configs[];
extern const size_t ops_nconfigs;

/* Plays all of it on a new region. NULL, or what went wrong, with *out_at the operation's index. */
const char *ops_play(const struct ops_config *c, const struct op *ops, size_t n,
                     volatile size_t *out_at);
void ops_print(const struct op *ops, size_t n);

#endif
