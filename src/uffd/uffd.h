/* The `fl-uffd` thread: runs jobs when they are due, and gives free memory back when the system is short of it. It never
 * allocates and never touches a user's memory.
 *
 * It starts with a request after enough has been populated (not with a free: that may come from a signal handler, where
 * no thread can be made) and is gone after fork: the child starts its own when it needs one. All signals are blocked on
 * it. It has a descriptor table of its own where the kernel gives it one, so it holds no pipe of the program's open and
 * no program closes what it waits for; then it must not print. When no job has anything to do it sleeps without a timer.
 * Left to others: what the jobs do (region/).
 * State: struct fl_worker, one a process. */
#ifndef FL_UFFD_UFFD_H
#define FL_UFFD_UFFD_H

#include "region/region.h"

enum fl_worker_state {
    FL_WORKER_NONE,
    FL_WORKER_STARTING,
    FL_WORKER_RUNNING, /* at work, or about to sleep */
    FL_WORKER_ASLEEP,  /* on the futex that the state is */
    FL_WORKER_POLLING, /* asleep in poll: woken by a signal */
    FL_WORKER_CALLED, /* will look at every job; whoever took it out of POLLING has yet to send its signal, or just did */
    FL_WORKER_RETIRED, /* gone, and never started again */
};

enum { FL_WORKER_JOBS = 10, FL_WORKER_SOURCES = 8 };

/* What a job may return instead of ns. */
#define FL_JOB_IDLE UINT64_MAX        /* nothing to do until somebody calls */
#define FL_JOB_DELAY (UINT64_MAX - 1) /* again after its own delay */

struct fl_job {
    /* Returns the ns until it wants to run again, 0: at once, when the others have had their turn. No lock is held. */
    uint64_t (*run)(struct fl_region *r);
    uint64_t delay_ns; /* from a call to the run */
    uint64_t due_ns;   /* monotonic time, or FL_JOB_IDLE. The thread alone */
};

struct fl_worker;

/* A descriptor that the thread sleeps on. The thread alone. */
struct fl_source {
    int fd; /* in the thread's own table; -1: this place is free */
    short events;
    bool pressure; /* tells of memory that is short: see pressure.c */
    /* What poll answered; 0: it will be closed, and never again. False: it is no use any more, and is closed. Of pressure
     * the 0 is not told. */
    bool (*handle)(struct fl_worker *w, const struct fl_source *s, short came);
};

struct fl_worker {
    struct fl_region *region;
    _Atomic uint32_t state; /* enum fl_worker_state; also the futex that it sleeps on */
    _Atomic bool unsent;    /* somebody called, and could not send his signal */
    int pid, tid; /* of the thread. Written before it first polls, read after POLLING was seen */
    struct fl_job job[FL_WORKER_JOBS];
    unsigned njobs; /* constant after boot */
    /* The rest is the thread's alone. */
    int wake_fd; /* -1: it cannot be woken from poll, so it sleeps on the futex and has no sources */
    struct fl_source source[FL_WORKER_SOURCES];
    unsigned nsources;
    bool watching;     /* for pressure */
    uint64_t quiet_ns; /* monotonic time; no pressure is looked at before */
    struct fl_memory_scratch scratch;
};

/* `decay_ms` is the time after which free memory has been given back; 0: never, there is no such job. */
void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms);

/* One more job, FL_WORKER_JOBS in all; it runs `delay_ns` after the thread's start, and after each call at the latest.
 * Context: boot only. */
void fl_worker_add(struct fl_worker *w, uint64_t (*run)(struct fl_region *r), uint64_t delay_ns);

/* A job: arms and disarms what requests and frees ask for, see region/touch.c. */
uint64_t fl_touch_requests(struct fl_region *r);

/* Has every job run, each after its delay; starts the thread where that is allowed. Cheap. When no thread is to be had,
 * nothing decays.
 *   may_start  pthread_create may be called here and now: not in a signal handler.
 * Threads: any, no lock of ours held.  Signals: safe without may_start.  Fork: child may call. */
void fl_worker_call(struct fl_worker *w, bool may_start);

/* The main thread ends alone (pthread_exit): the worker ends too, or the process would outlive its last thread.
 * Threads: any.  Signals: safe. */
void fl_worker_retire(struct fl_worker *w);

/* In the child after fork: the thread is not here. */
void fl_worker_fork_child(struct fl_worker *w);

#endif
