/* Reads a running command now and then, its descendants included, from a thread of its own, so that
 * a step mark is answered at once; and reads it at each mark. Leaves /proc to proc.h and the helper
 * threads' table to threads.h.
 *
 * It spends at most 1 % of one CPU: after a reading that took t it rests at least 100 t.
 * S1: `threads` and the peaks only grow. */
#ifndef FAULTLESS_FAULTSTAT_SAMPLER_H
#define FAULTLESS_FAULTSTAT_SAMPLER_H

#include "faultstat/family.h"
#include "faultstat/nodes.h"
#include "faultstat/threads.h"

#include <pthread.h>
#include <stdbool.h>

/* A paused or running process, read whole. */
struct fl_look {
    struct fl_usage app;    /* all threads but the helpers */
    struct fl_usage helper; /* threads named fl-* */
    struct fl_memory memory;
    struct fl_rollup rollup; /* of all processes of the command; 0: not read */
};

struct fl_peaks {
    uint64_t huge;            /* most AnonHugePages seen, all processes together; likewise below */
    uint64_t pss;             /* most memory in proportional sets */
    struct fl_rollup at_peak; /* the sample with most anonymous memory */
    uint64_t samples;         /* of smaps_rollup */
    uint64_t sampled_ns;      /* when the last one was taken; 0: none was */
    double pss_ns, for_ns;    /* pss over time, and that time: its mean */
    /* The last sample with nearly as much anonymous memory as at the peak; count 0: there is
     * none. */
    struct fl_nodes nodes;
};

struct fl_sampler {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;       /* with `stop` */
    unsigned interval_ms;      /* constant after start; 0 = at marks only */
    bool with_nodes;           /* constant after start: read numa_maps too */
    bool stop;                 /* Lock: lock */
    pid_t pid;                 /* whom to read. Lock: lock */
    struct fl_threads threads; /* Lock: lock */
    struct fl_family family;   /* Lock: lock */
    struct fl_peaks peaks;     /* Lock: lock */
};

/* Start to read `pid` every `interval_ms` (0: only when fl_sampler_look asks). One look is taken at
 * once: `pid` has executed its command.
 *   with_nodes   its nodes too, where that is new.
 *   library      see fl_family; kept.
 * Returns 0; -errno of pthread_create.  Threads: one. */
int fl_sampler_start(struct fl_sampler *sampler, pid_t pid, unsigned interval_ms, bool with_nodes,
                     const char *library);

/* Read another process from now on.  Threads: any. */
void fl_sampler_focus(struct fl_sampler *sampler, pid_t pid);

/* Read the process in focus now. Helpers are read before and after the total, until both agree, a
 * few times at most: then what they fault in between counts as the application's, so its figure
 * errs upward.
 * Returns 0, or -errno when the process has gone.  Threads: any. */
int fl_sampler_look(struct fl_sampler *sampler, struct fl_look *out);

/* Read all processes of the command now, those included that they waited for. Helpers are as last
 * sampled.  Threads: any. */
void fl_sampler_look_at_all(struct fl_sampler *sampler, struct fl_look *out);

/* Send a signal to the command and its descendants.  Threads: any. */
void fl_sampler_kill(struct fl_sampler *sampler, int signal_number);

/* End the thread; the peaks and the table stay readable.  Threads: the one that started it. */
void fl_sampler_stop(struct fl_sampler *sampler);

#endif
