/* The worker: one guest thread (sys/guest.c), named `fl-uffd`, that runs a table of jobs when they
 * are due, and gives free memory back when the system is short of it. It never allocates and never
 * touches a program's memory.
 *
 * It is a guest of the program: it starts with a request, after enough has been populated; it ends
 * when no job has had anything to do for a while; and it ends, waited for, before the program
 * changes what its threads are (fl_worker_retire). A call starts it again, with what the program
 * has by then. A child of fork has none until it needs one. It has a descriptor table of its own,
 * so it holds no pipe of the program's open and no program closes what it waits for; where the
 * kernel gives it none, it waits for calls alone. It must not print.
 * Left to others: what the jobs do (region/, plan/).
 * State: struct fl_worker, one a process. docs/internals/host.md draws its states. */
#ifndef FL_UFFD_UFFD_H
#define FL_UFFD_UFFD_H

#include "region/region.h"

enum fl_worker_state {
    FL_WORKER_NONE,
    FL_WORKER_STARTING,
    FL_WORKER_RUNNING, /* at work, or about to sleep */
    FL_WORKER_ASLEEP,  /* woken by a signal, and by its sources */
    /* Will look at every job. What took it out of ASLEEP sends its signal, or just did. */
    FL_WORKER_CALLED,
    FL_WORKER_ENDING, /* the same, but it ends */
};

enum { FL_WORKER_JOBS = 12, FL_WORKER_SOURCES = 8 };

/* What a job may return instead of ns. */
#define FL_JOB_IDLE UINT64_MAX        /* nothing to do until the next call */
#define FL_JOB_DELAY (UINT64_MAX - 1) /* again after its own delay */

struct fl_job {
    /* Returns the ns until it wants to run again, 0: at once, when the others have had their turn.
     * No lock is held. */
    uint64_t (*run)(struct fl_region *r);
    _Atomic uint64_t delay_ns; /* from a call to the run; FL_JOB_IDLE: it is off */
    uint64_t due_ns;           /* monotonic time, or FL_JOB_IDLE. The thread alone */
};

struct fl_worker;

/* A descriptor that the thread sleeps on. The thread alone. */
struct fl_source {
    int fd; /* in the thread's own table; -1: this place is free */
    short events;
    bool pressure; /* tells of memory that is short: see pressure.c */
    /* What poll answered; 0: it will be closed, and never again. False: it is no use any more, and
     * is closed. Of pressure the 0 is not told. */
    bool (*handle)(struct fl_worker *w, const struct fl_source *s, short came);
};

struct fl_worker {
    struct fl_region *region;
    struct fl_guest guest;
    _Atomic uint32_t state;         /* enum fl_worker_state */
    _Atomic bool unsent;            /* a call was made, and its signal could not be sent */
    _Atomic bool barred;            /* there are no guests here: it never starts */
    _Atomic uint64_t away_until_ns; /* monotonic time before which it does not start */
    int pid, tid; /* of the thread. Written before it first sleeps, read after ASLEEP was seen */
    struct fl_job job[FL_WORKER_JOBS];
    unsigned njobs; /* constant after boot */
    /* The rest is the thread's alone. */
    int wake_fd; /* -1: it has no sources */
    struct fl_source source[FL_WORKER_SOURCES];
    unsigned nsources;
    bool watching;     /* for pressure */
    uint64_t quiet_ns; /* monotonic time; no pressure is looked at before */
    struct fl_memory_scratch scratch;
};

/* `decay_ms` is the time after which free memory has been given back; 0: never, that job is off. */
void fl_worker_init(struct fl_worker *w, struct fl_region *r, uint64_t decay_ms);

/* One more job, FL_WORKER_JOBS in all; it runs `delay_ns` after the thread's start, and after each
 * call at the latest. Context: boot only. */
void fl_worker_add(struct fl_worker *w, uint64_t (*run)(struct fl_region *r), uint64_t delay_ns);

/* From the next call on; see fl_worker_call.  Threads: any. */
void fl_worker_set_delay(struct fl_worker *w, uint64_t (*run)(struct fl_region *r),
                         uint64_t delay_ns);
/* The first job: a tick of the region's clock. */
uint64_t fl_worker_decay(struct fl_region *r);

/* A job: arms and disarms what requests and frees ask for, see region/supply/touch.c. */
uint64_t fl_touch_requests(struct fl_region *r);

/* Has every job run, each after its delay; starts the thread where that is allowed. Cheap. When no
 * thread is to be had, nothing decays.
 * may_allocate  the first start allocates: not in a signal handler. Later ones do not, so a free
 * may cause them. Threads: any, no lock of ours held.  Signals: safe without may_allocate.  Fork:
 * child may call.
 * */
void fl_worker_call(struct fl_worker *w, bool may_allocate);

/* The thread ends, and is gone for the kernel too when this returns; at most 3 s. The caller has
 * barred guests. The next call after a tenth of a second starts it again.  Threads: any, no lock of
 * ours held.  Signals: safe. Cost: with none a load; else some 100 us, or what its job takes. */
void fl_worker_retire(struct fl_worker *w);

/* In the child after fork: the thread is not here. */
void fl_worker_fork_child(struct fl_worker *w);

#endif
