/* What one thread of victim_oracle does: steps, whose blocks say whose they are. */
#ifndef FAULTLESS_TESTS_PRELOAD_ORACLE_H
#define FAULTLESS_TESTS_PRELOAD_ORACLE_H

#include "owned.h"

#include <stdatomic.h>

enum { THREADS = 8, REQUESTS = 64, SHAPES = 2, LASTING = 8, CAUGHT = 4, POSTS = 32, STAY = 32 };
enum { FROM_HANDLER = 32, ALONE = 64, MAIN = 128 }; /* owners, beside the threads' numbers */
enum { LARGE = 68 * 1024, CHILD_OPERATIONS = 400, NEVER = 1 << 30 };
/* What the steps of a thread are like. JITTER: with requests more or less. RANDOM: nothing
 * repeats. */
enum manner { ALIKE, DRIFT, JITTER, PHASES, RANDOM, MANNERS };

enum how { MALLOC, CALLOC, ALIGNED, LONGER, SHORTER };

struct request {
    size_t n;
    size_t align; /* ALIGNED */
    enum how how;
    bool posted; /* for another thread to free */
};

/* A step: each request's block is made, and freed some requests later; past the step's end in the
 * next one. */
struct event {
    enum { MAKE, FREE, FREE_LAST } what;
    unsigned slot;
};

struct shape {
    unsigned n, events;
    struct request request[REQUESTS];
    struct event event[2 * REQUESTS];
};

struct worker {
    pthread_t thread;
    unsigned owner, parity;
    uint64_t random, serial;
    long operations, limit, fork_at;
    enum manner manner;
    bool declared, alone; /* alone: in a child of fork */
    void *context;
    size_t scale; /* of sizes, in 64ths */
    struct shape shape[SHAPES];
    struct owned live[2][REQUESTS], lasting[LASTING];
    struct { /* the signal handler's */
        struct owned block[CAUGHT];
        uint64_t random, serial;
    } handler;
};

/* What the round has. Written between rounds. */
struct oracle {
    bool forks, signals;
    unsigned threads;
    int (*step_begin)(void *), (*step_end)(void *); /* NULL: there are none */
    atomic_long forked;                             /* children that ended well */
    struct owned stay[STAY];                        /* for ever. The main thread's */
};
extern struct oracle oracle;

/* Handed over, for any thread to free. A handler that interrupts the thread in the midst of an
 * exchange finds `busy` set. */
struct post {
    atomic_flag busy;
    struct owned block;
};
extern struct post post[POSTS];

/* Leaves the block in `b` at some post, and takes what lay there; false: neither, now. */
bool exchange(uint64_t *random, struct owned *b);

static inline uint64_t draw(uint64_t *random, uint64_t below)
{
    return (next_random(random) >> 16) % below;
}

static inline bool one_in(struct worker *w, uint64_t n)
{
    return draw(&w->random, n) == 0;
}

/* Draws the shapes of the steps of `w`, whose `random` is set. */
void some_steps(struct worker *w);
/* Until the limit; a child ends there. */
void run_steps(struct worker *w);
void check_all(const struct worker *w, const char *when);
void drop_all(struct worker *w);
void reap(pid_t pid);

#endif
