/* libheld.so: faultless with a clock around its locks, for bench/contend.
 *
 * The linker puts these functions around the lock's own (--wrap). All locks are counted together.
 * While a thread holds one, rseq_cs of its restartable-sequences area names a sequence in which it
 * never is: where the kernel takes the processor from it, it clears that word. Such holds are
 * counted apart: how long they last is the scheduler's. For programs that do not fork: there locks
 * are let go of in other ways. rseq(2), Linux 4.18; glibc 2.35. Without it all count. */
#include "held.h"
#include "sys/sys.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/rseq.h>
#include <time.h>

enum { OF_OCTAVE = 16, OCTAVES = 40, BUCKETS = OF_OCTAVE * OCTAVES, RANKS = 64 };

/* What the kernel asks for where a sequence would begin anew. */
static const uint32_t anew[2] = {RSEQ_SIG, 0};
/* A byte of data, where no thread ever is. */
static struct rseq_cs nowhere = {.post_commit_offset = 1};

static struct {
    _Atomic uint64_t holds, lost, sum_ns, shard_ns, one_ns, of[BUCKETS];
    _Atomic uint64_t worst; /* ns, and the lock's rank in the lowest byte */
} held;

static _Thread_local struct {
    uint64_t since[RANKS];
    unsigned depth;
    bool lost;
    bool all_shards; /* locks of the others are held behind the first one's */
} mine;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The thread's rseq_cs, which is a union in the headers of older kernels. NULL: the kernel has
 * none, or glibc was told not to (glibc.pthread.rseq). */
static uint64_t *sequence(void)
{
    char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
    return __rseq_size != 0 ? (uint64_t *)(area + offsetof(struct rseq, rseq_cs)) : NULL;
}

static void watch_for_loss(uint64_t *s)
{
    nowhere.start_ip = (uintptr_t)&anew[0];
    nowhere.abort_ip = (uintptr_t)&anew[1];
    if (s != NULL) {
        __atomic_store_n(s, (uintptr_t)&nowhere, __ATOMIC_RELAXED);
    }
    mine.lost = false;
}

static bool was_lost(uint64_t *s)
{
    return s != NULL && __atomic_load_n(s, __ATOMIC_RELAXED) == 0;
}

static unsigned bucket(uint64_t ns)
{
    unsigned octave = 63 - (unsigned)__builtin_clzll(ns | OF_OCTAVE);
    uint64_t part = ns >> (octave - 4) & (OF_OCTAVE - 1);
    unsigned b = (octave - 4) * OF_OCTAVE + (unsigned)part;

    return ns < OF_OCTAVE ? (unsigned)ns : b + OF_OCTAVE < BUCKETS ? b + OF_OCTAVE : BUCKETS - 1;
}

static uint64_t most_of(unsigned b)
{
    unsigned octave = b / OF_OCTAVE + 3, part = b % OF_OCTAVE;

    return b < OF_OCTAVE ? b : ((uint64_t)OF_OCTAVE + part + 1) << (octave - 4);
}

static void count(uint64_t ns, enum fl_rank rank)
{
    uint64_t worst = atomic_load_explicit(&held.worst, memory_order_relaxed);
    uint64_t this = ns << 8 | rank;

    atomic_fetch_add_explicit(&held.holds, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&held.sum_ns, ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&held.of[bucket(ns)], 1, memory_order_relaxed);
    while (this > worst && !atomic_compare_exchange_weak(&held.worst, &worst, this)) {
    }
}

/* All shards' locks at once are released from the last one on, and count with the first. */
static void count_part(uint64_t ns, enum fl_rank rank)
{
    bool shards = rank >= FL_RANK_REGION && rank < FL_RANK_LEAF;
    bool last = rank == FL_RANK_REGION, alone = shards && !mine.all_shards;

    if (alone) {
        atomic_fetch_add_explicit(&held.shard_ns, ns, memory_order_relaxed);
    } else if (!shards || last) {
        atomic_fetch_add_explicit(&held.one_ns, ns, memory_order_relaxed);
    }
}

static void begin(const struct fl_lock *l)
{
    if (mine.depth++ == 0) {
        watch_for_loss(sequence());
    }
    mine.since[l->rank] = now_ns();
}

static void end(const struct fl_lock *l)
{
    uint64_t ns = now_ns() - mine.since[l->rank];

    mine.lost = mine.lost || was_lost(sequence());
    if (mine.lost) {
        atomic_fetch_add_explicit(&held.lost, 1, memory_order_relaxed);
    } else {
        count(ns, l->rank);
        count_part(ns, l->rank);
    }
    mine.all_shards = mine.all_shards && l->rank != FL_RANK_REGION;
    mine.depth--;
}

void __real_fl_lock_acquire(struct fl_lock *l);
bool __real_fl_lock_acquire_unless_forking(struct fl_lock *l);
bool __real_fl_lock_acquire_soon(struct fl_lock *l);
void __real_fl_lock_acquire_behind(struct fl_lock *l);
void __real_fl_lock_release(struct fl_lock *l);
void __wrap_fl_lock_acquire(struct fl_lock *l);
bool __wrap_fl_lock_acquire_unless_forking(struct fl_lock *l);
bool __wrap_fl_lock_acquire_soon(struct fl_lock *l);
void __wrap_fl_lock_acquire_behind(struct fl_lock *l);
void __wrap_fl_lock_release(struct fl_lock *l);

void __wrap_fl_lock_acquire(struct fl_lock *l)
{
    __real_fl_lock_acquire(l);
    begin(l);
}

bool __wrap_fl_lock_acquire_unless_forking(struct fl_lock *l)
{
    bool acquired = __real_fl_lock_acquire_unless_forking(l);

    if (acquired) {
        begin(l);
    }
    return acquired;
}

bool __wrap_fl_lock_acquire_soon(struct fl_lock *l)
{
    bool acquired = __real_fl_lock_acquire_soon(l);

    if (acquired) {
        begin(l);
    }
    return acquired;
}

void __wrap_fl_lock_acquire_behind(struct fl_lock *l)
{
    __real_fl_lock_acquire_behind(l);
    begin(l);
    mine.all_shards = true;
}

/* The clock stops before the lock is free: it is the holder's no more after that. */
void __wrap_fl_lock_release(struct fl_lock *l)
{
    end(l);
    __real_fl_lock_release(l);
}

__attribute__((visibility("default"))) void fl_held_begin(void)
{
    memset(&held, 0, sizeof held);
}

__attribute__((visibility("default"))) void fl_held_read(struct fl_held *out)
{
    uint64_t below = 0, wanted = held.holds - held.holds / 1000;
    unsigned b = 0;

    while (b < BUCKETS - 1 && (below += held.of[b]) < wanted) {
        b++;
    }
    *out = (struct fl_held){.holds = held.holds,
                            .lost = held.lost,
                            .mean_ns = (double)held.sum_ns / (double)(held.holds + !held.holds),
                            .p999_ns = (double)most_of(b),
                            .shard_ns = (double)held.shard_ns,
                            .one_ns = (double)held.one_ns,
                            .worst_ns = (double)(held.worst >> 8),
                            .worst_rank = (unsigned)(held.worst & 0xff)};
}
