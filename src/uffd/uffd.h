/* The `fl-uffd` thread: today the decay timer. It never allocates and never touches a user's memory.
 *
 * It starts with a request after enough has been populated (not with a free: that may come from a signal handler, where
 * no thread can be made), sleeps without a timer when nothing is left to age, and is gone after fork: the child starts
 * its own when it needs one. All signals are blocked on it.
 * State: struct fl_worker, one a process. */
#ifndef FL_UFFD_UFFD_H
#define FL_UFFD_UFFD_H

#include "region/region.h"

enum fl_worker_state {
    FL_WORKER_NONE,
    FL_WORKER_RUNNING,
    FL_WORKER_ASLEEP,
    FL_WORKER_STARTING,
    FL_WORKER_RETIRED, /* gone, and never started again */
};

struct fl_worker {
    struct fl_region *region;
    uint64_t decay_ms;      /* constant after init; not 0 */
    _Atomic uint32_t state; /* enum fl_worker_state; also the futex that it sleeps on */
};

void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms);

/* Wakes the thread, or starts it where that is allowed. Cheap when it runs. When no thread is to be had, nothing decays.
 *   may_start  pthread_create may be called here and now: not in a signal handler.
 * Threads: any, no lock of ours held.  Signals: safe without may_start.  Fork: child may call. */
void fl_worker_call(struct fl_worker *w, bool may_start);

/* The main thread ends alone (pthread_exit): the worker ends too, or the process would outlive its last thread.
 * Threads: any.  Signals: safe. */
void fl_worker_retire(struct fl_worker *w);

/* In the child after fork: the thread is not here. */
void fl_worker_fork_child(struct fl_worker *w);

#endif
