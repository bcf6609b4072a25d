/* Sums up the faults of a command while it runs: by stack, kind and mapping, over time and by step.
 * Two sources: perf events, or where they are refused the kernel's counters of each thread, which
 * know no stacks and no kinds.
 * Leaves starting and waiting to watch.h, and names to save.h. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_RECORDER_H
#define FAULTLESS_FAULTSTAT_RECORD_RECORDER_H

#include "faultstat/record/cost.h"
#include "faultstat/record/intern.h"
#include "faultstat/record/points.h"
#include "faultstat/record/queue.h"
#include "faultstat/record/ring.h"
#include "faultstat/record/series.h"
#include "faultstat/record/unwind.h"
#include "faultstat/watch.h"

#include <stdio.h>

/* Faults with the same stack, kind and mapping. The key of `stacks`: kind, span, numbers of places,
 * innermost first, each a uint32_t. */
enum { FL_KEY_KIND, FL_KEY_SPAN, FL_KEY_FRAMES };

/* Since the process's start. */
struct fl_io {
    uint64_t calls; /* read, write and their like */
    uint64_t bytes;
};

/* Ticks of the clock that met the process that marks, FL_CLOCK_NS each. */
struct fl_ticks {
    double user;
    double memory; /* in the kernel, in a fault or a call that maps or unmaps */
    double other;  /* in another call */
};

/* One step's part, or what lay before the first mark. */
struct fl_step_sum {
    double faults;
    double cost_ns;
    double avoidable;  /* those that faultless would not take; the next six are of them */
    double kernel_ns;  /* what they cost in system time, as calibrated */
    double trail_ns;   /* and in user time: fl_costs.user_ns */
    double reach_ns;   /* how far that may lie off */
    double clear_ns;   /* what clearing costs where they read zeros */
    double pages;      /* base pages that they brought, ... */
    double base_pages; /* ... of those that are no part of huge ones */
    double kept_ns;    /* what all others cost */
    struct fl_ticks ticks;
    uint64_t cpu_ns; /* processor time of the process when the part began; 0 = not known */
    struct fl_io io; /* what it had read and written then */
};

/* The last fault on a present page, of a thread. */
struct fl_protected {
    pid_t tid;
    uint64_t addr;
    uint64_t time_ns;
};

enum { FL_PROTECTED = 256 };

/* What went wrong or was left out. */
struct fl_gaps {
    bool forked;     /* a process did: copies on write may be among its faults */
    uint64_t lost;   /* records that found a ring full */
    uint64_t broken; /* that could not be decoded */
    double cut;      /* faults whose stack has no beginning */
    double unmapped; /* faults at addresses of no known mapping */
};

struct fl_thread_count {
    pid_t tid;
    uint64_t born; /* start time, tells two users of a number apart */
    uint64_t faults;
};

/* Faults by stack. */
struct fl_tally {
    struct fl_intern places; /* of struct fl_place */
    struct fl_intern stacks;
    double *faults; /* by number of stack */
    size_t room;    /* entries of `faults` */
};

/* Faults by step. */
struct fl_step_sums {
    struct fl_step_sum *part; /* [0]: before the first mark; [i + 1]: step i */
    size_t count;             /* entries of `part` */
    size_t marks;             /* whose processor time is noted */
    struct fl_points now;     /* addresses of the step that runs */
    struct fl_points last;    /* of the last whole one */
};

struct fl_recorder {
    bool has_perf;
    bool may_swap;  /* the machine has a swap area */
    int perf_error; /* why not: -errno */
    double every;   /* faults that a sample stands for */
    struct fl_rings rings;
    struct fl_queue queue;
    struct fl_unwinder unwinder;
    struct fl_processes processes;
    struct fl_tally tally;
    uint64_t samples;
    struct fl_series series;
    struct fl_step_sums steps;
    struct fl_costs costs;
    struct fl_gaps gaps;
    struct fl_protected protected[FL_PROTECTED];
    struct fl_counters *counters; /* without perf events */
};

/* Open the events, or say in perf_error why there are none. Measures costs.
 *   spec       NULL: no perf events are wanted.
 * Returns 0; -ENOMEM. */
int fl_recorder_open(struct fl_recorder *recorder, const struct fl_rings_spec *spec);

/* The hook for fl_watch_run; `arg` is the recorder. */
void fl_recorder_look(void *arg, const struct fl_watch *watch, pid_t pid);

/* Take what is still in the rings, after the command's end. */
void fl_recorder_finish(struct fl_recorder *recorder, const struct fl_watch *watch);

/* Note the maps of /proc/PID/maps, or of such lines, that are not known yet. */
void fl_recorder_read_maps(struct fl_recorder *recorder, struct fl_process *process, FILE *file);

/* Count faults under a stack. */
void fl_recorder_add(struct fl_recorder *recorder, const struct fl_place *place, size_t count,
                     enum fl_kind kind, enum fl_span span, double faults);

void fl_recorder_close(struct fl_recorder *recorder);

#endif
