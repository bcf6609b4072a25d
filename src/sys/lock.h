/* Ranked locks, and what becomes of them across fork(2). Included by sys.h. See lock.c. */
#ifndef FL_SYS_LOCK_H
#define FL_SYS_LOCK_H

#include "base/base.h"

#include <stdatomic.h>

/* Locks, by rank: acquire left to right only. Follows the layers, highest first
 * (src/layers.txt). The region has a lock for each shard, each with a rank of its own. */
enum { FL_SHARDS = 32 };
enum fl_rank {
    FL_RANK_RUNTIME,
    FL_RANK_PLAN,
    FL_RANK_LOOK,
    FL_RANK_REGION,
    FL_RANK_LEAF = FL_RANK_REGION + FL_SHARDS
};

/* Futex lock, not recursive. Zero-initialised is unlocked (rank RUNTIME). Signals: not safe. */
struct fl_lock {
    _Atomic uint32_t word; /* see lock.c */
    enum fl_rank rank;
};

void fl_lock_init(struct fl_lock *l, enum fl_rank rank);
void fl_lock_acquire(struct fl_lock *l);
/* False: a fork holds it. */
bool fl_lock_acquire_unless_forking(struct fl_lock *l);
/* False: it is not to be had without sleeping. */
bool fl_lock_acquire_soon(struct fl_lock *l);
/* By who has a lock that forks take before this one: the fork that has it does not hold it up, for
 * it waits for that other lock, or has lost it. */
void fl_lock_acquire_behind(struct fl_lock *l);
void fl_lock_release(struct fl_lock *l);
/* Is it not free? As of a moment ago. is_held: by the calling thread, one of those `n` ranks. */
static inline bool fl_lock_is_busy(const struct fl_lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_relaxed) != 0;
}
bool fl_lock_is_held(enum fl_rank first, unsigned n);
/* Ends the process, at FL_CHECK_LEVEL 2 and above, where the calling thread holds a lock of that
 * rank or of one behind it: before what may take long. */
void fl_lock_must_be_free(enum fl_rank rank);
/* At the same levels, of a call that works on memory or reads a file: ends the process where the
 * calling thread holds a lock of the region's, and has not permitted such calls (they nest). */
void fl_lock_check_call(const char *slot);
void fl_lock_permit_calls(bool yes);

/* The locks across fork(2). hold_for_fork: the caller has acquired `l`, and from here on changes
 * nothing under it. Others wait for a tenth of a second and then take the lock over, so a circle by
 * way of glibc's own locks is broken. release_in_child: false when the lock was taken over: what it
 * guards cannot be trusted. */
void fl_lock_hold_for_fork(struct fl_lock *l);
void fl_lock_release_in_parent(struct fl_lock *l);
bool fl_lock_release_in_child(struct fl_lock *l);
/* The same for a handler that forks and may have interrupted the library's own work. acquire_amid:
 * false where the thread holds a lock of that rank, and where it is not to be had until then:
 * others may wait for what the thread holds. amid_until: monotonic; a tenth of a second from now,
 * for all locks. free_in_child: unless a fork that the thread is in holds the lock, it is free: the
 * interrupted call does not wait for a thread that is not there. */
uint64_t fl_lock_amid_until(void);
bool fl_lock_acquire_amid(struct fl_lock *l, uint64_t until_ns);
void fl_lock_free_in_child(struct fl_lock *l);

#endif
