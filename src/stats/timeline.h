/* The timeline: what the library did when, the last so many events of it. Included by stats.h.
 *
 * A ring of fixed size in memory of its own. Any thread writes, with any lock held or none, in a
 * signal handler too: a place is claimed by one atomic addition, and a number in it says whether it
 * is whole. A reader leaves out what is being written just then. A writer that is held up while
 * all places are written once more may leave one event that is a mixture of two.
 * While it is off, all that is told here costs one load. */
#ifndef FL_STATS_TIMELINE_H
#define FL_STATS_TIMELINE_H

#include "sys/sys.h"

enum fl_timeline_kind {
    FL_TIMELINE_STEP,  /* span; value: the context's number, twice, and 1 where a plan served it */
    FL_TIMELINE_STALL, /* span; bytes that a request had brought into memory */
    FL_TIMELINE_POPULATE, /* span; the same, by a thread of the library's */
    FL_TIMELINE_MOVE,     /* span; bytes */
    FL_TIMELINE_PURGE,    /* span; bytes */
    FL_TIMELINE_RELEASE,  /* moment; memory is short */
    FL_TIMELINE_PLAN,     /* moment; a plan was made: bytes of its arena */
    FL_TIMELINE_DROP,     /* moment; a plan was given up: the context's number */
    FL_TIMELINE_GPU_TAKE, /* span; bytes that the CUDA driver was asked for */
    FL_TIMELINE_GPU_GIVE, /* span; bytes that went back to it */
    FL_TIMELINE_GPU_PIN,  /* span; bytes of the host's registered with it, or no more */
    FL_TIMELINE_GPU_WAIT, /* span; the host waited for copies: times, 1 */
    FL_TIMELINE_KINDS
};

enum { FL_TIMELINE_EVENTS = 1 << 14 };

struct fl_timeline_event {
    uint64_t at_ns, lasts_ns, value;
    uint32_t tid;
    enum fl_timeline_kind kind;
    _Atomic uint64_t
        number; /* of all events, from 1: whole; 0: none yet; UINT64_MAX: being written */
};

struct fl_timeline {
    _Atomic uint64_t count; /* events so far */
    uint64_t
        first; /* number of the first that is of this process, less 1. Fork's child writes it */
    struct fl_timeline_event event[FL_TIMELINE_EVENTS];
};
/* NULL: off. Constant after boot. */
extern FL_HIDDEN struct fl_timeline *fl_timeline;

/* Turns it on. -ENOMEM.  Context: boot. */
int fl_timeline_begin(void);
/* In a child of fork: what came before is the parent's. */
void fl_timeline_fork_child(void);
/* An event that began at `from_ns`; a moment where that is 0. */
void fl_timeline_add(enum fl_timeline_kind kind, uint64_t from_ns, uint64_t value);
/* The trace, in Chrome's format, in place of the file at `path`. -errno.  Context: one thread at a
 * time, not under a lock. */
int fl_timeline_write(const char *path, int pid, const char *program);

static inline bool fl_timeline_is_on(void)
{
    return FL_UNLIKELY(fl_timeline != NULL);
}

/* The time at which a span begins; 0: off. */
static inline uint64_t fl_timeline_now(void)
{
    return fl_timeline_is_on() ? fl_sys.now_ns() : 0;
}

/* A span that began at `from_ns`, as fl_timeline_now said it. Nothing where that or the value is
 * 0. */
static inline void fl_timeline_span(enum fl_timeline_kind kind, uint64_t from_ns, uint64_t value)
{
    if (FL_UNLIKELY(from_ns != 0) && value != 0) {
        fl_timeline_add(kind, from_ns, value);
    }
}

/* Memory was brought in by the calling thread. */
static inline void fl_timeline_brought(uint64_t from_ns, uint64_t bytes)
{
    bool waits = fl_thread == FL_THREAD_PROGRAM;

    fl_timeline_span(waits ? FL_TIMELINE_STALL : FL_TIMELINE_POPULATE, from_ns, bytes);
}

static inline void fl_timeline_moment(enum fl_timeline_kind kind, uint64_t value)
{
    if (fl_timeline_is_on()) {
        fl_timeline_add(kind, 0, value);
    }
}

#endif
