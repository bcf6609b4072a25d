/* Composition root: boots the layers upward, joins fork, reports at exit. The process's only global state is here.
 *
 * Order of boot: pages, options, window, next allocator, fork and thread hooks, route. */
#ifndef FL_RUNTIME_RUNTIME_H
#define FL_RUNTIME_RUNTIME_H

#include "alloc/alloc.h"
#include "gpu/gpu.h"
#include "numa/numa.h"

struct fl_runtime {
    struct fl_options options;
    struct fl_region region;
    struct fl_worker worker;
    struct fl_numa_process numa;
    bool next_is_libc;      /* the next allocator is glibc's own */
    _Atomic bool tune_next; /* its thresholds are ours to raise */
    bool active;            /* large requests are served from the window */
};

extern struct fl_runtime fl_runtime;

/* Boots once, whoever comes first; others wait. Returns at once when this thread is in the midst of it.
 * Context: early. */
void fl_boot(void);

/* Fills fl_route.next from the object that defines the next malloc. False: there is none. Sets fl_runtime.next_is_libc. */
bool fl_find_next(struct fl_next *out, bool *out_is_libc);

/* Fills in the next definition of each name that there is. */
void fl_find_libc(struct fl_libc *out);

/* FAULTLESS_STATS_SIGNAL: that signal asks for a report, unless the program has a handler or ignores it; 0: none. The worker writes it,
 * to where FAULTLESS_STATS says, else to standard error. */
void fl_report_on_signal(int signal);
/* A job of the worker's. */
uint64_t fl_report_wanted(struct fl_region *r);

/* Several nodes: the region is divided by them, and asks here where. With one, nothing. After fl_region_start, before the first
 * request. */
void fl_place_start(void);
/* A job of the worker's: what an administrator may have changed. */
uint64_t fl_place_refresh(struct fl_region *r);

/* One snapshot of everything. */
void fl_read_stats(struct fl_stats_values *out);

#endif
