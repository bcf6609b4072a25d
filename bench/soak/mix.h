/* mix: the long-lived process of the soak (bench/soak/run). What its files share.
 *
 *   mix.c     options, threads, the cycle of phases, a line for each epoch
 *   phases.c  what each phase does
 *   block.c   blocks with contents that can be checked, and the table of those that all threads
 *             share
 *   spoil.c   --spoil: faults of the program itself, which the soak has to notice
 *
 * An epoch is one cycle of all phases. How much a thread does in it is fixed, and drawn from the
 * seed; which thread comes first is the scheduler's. */
#ifndef SOAK_MIX_H
#define SOAK_MIX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MIX_THREADS = 16,
    MIX_SLOTS = 64, /* of the table; with mean lifetimes and sizes about 1.4 GiB of 1.5 are live */
    MIX_KEPT = 16,  /* blocks that outlive epochs */
    MIX_STEPS = 64, /* of the steady phase, at most */
};

/* In the order in which they run. */
enum mix_phase { MIX_STEADY, MIX_VARY, MIX_COMING, MIX_FORKING, MIX_IDLE, MIX_PHASES };

enum mix_how { MIX_MALLOC, MIX_CALLOC, MIX_MEMALIGN, MIX_ALIGNED, MIX_HOWS };

struct mix_options {
    double seconds; /* no epoch begins after that; 0: no such end */
    int epochs;     /* at most so many; 0: no such end */
    int threads;
    int live_mib; /* most bytes in blocks at one time */
    int work_pct; /* of the usual number of steps, operations and forks */
    int idle_ms;
    uint64_t seed;
    const char *spoil; /* NULL: nothing */
};

struct mix_worker {
    int index;
    uint64_t random;
};

struct mix_block {
    unsigned char *base;
    size_t len;
    uint64_t seed;
};

/* What one epoch did. Everything is written by thread 0 while the others wait, but for the
 * atomics. */
struct mix_epoch {
    int number;
    double phase_s[MIX_PHASES];
    _Atomic long
        faults[MIX_PHASES]; /* minor faults of the threads of the program, each by RUSAGE_THREAD */
    _Atomic long steady_faults; /* those of the second half of the steady steps */
    double step_ms[MIX_STEPS];
    int steps;
    _Atomic long operations;
    atomic_size_t peak_live; /* bytes in the table's blocks */
    int forks;
    int threads_started;
};

extern struct mix_options mix_options;
extern struct mix_epoch mix_epoch;
extern atomic_size_t mix_live; /* bytes in blocks */
extern _Atomic long mix_errors;

/* One more error, described on stderr; may be called in a forked child. */
__attribute__((format(printf, 1, 2))) void mix_error(const char *format, ...);
double mix_now_s(void);
long mix_thread_faults(void);
int mix_scaled(int n); /* n * work_pct / 100, at least 1 */

uint64_t mix_draw(uint64_t *random, uint64_t below);
size_t mix_draw_len(uint64_t *random, size_t low, size_t high); /* log-uniform */

/* A block with its contents; calloc's zeros and an alignment are checked before. False: none to be
 * had (an error). */
bool mix_take(struct mix_block *b, size_t len, uint64_t seed);
/* realloc; contents are checked up to the shorter length. */
bool mix_resize(struct mix_block *b, size_t len);
/* Other contents. */
void mix_rewrite(struct mix_block *b, uint64_t seed);
/* Contents are as written; an error otherwise. */
void mix_check(const struct mix_block *b);
/* mix_check and free. */
void mix_put(struct mix_block *b);

/* The table of shared blocks. A thread owns a slot between claim and publish; no thread waits for
 * it. */
bool mix_reserve(size_t len); /* room below live_mib */
void mix_operate(struct mix_worker *w);
void mix_hand_over(struct mix_block *b,
                   uint64_t *random); /* into the table, or freed when it is full */
void mix_drain(void);
void mix_check_table(void);
void mix_lock_table(void);
void mix_unlock_table(void);
void mix_free_some(int n); /* of the table; in a forked child */

void mix_run_phase(enum mix_phase phase, struct mix_worker *w);
void mix_phases_init(void);
void mix_barrier(void);

/* What --spoil asks for, once an epoch; mix_spoil_child once a child. */
bool mix_spoil_known(const char *kind);
void mix_spoil(struct mix_block kept[static MIX_KEPT]);
bool mix_spoil_child(void);

#endif
