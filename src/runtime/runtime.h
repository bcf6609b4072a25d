/* Composition root: boots the layers upward, joins fork, reports at exit. The process's only global
 * state is here.
 *
 * Order of boot: next allocator, options, route, fork; with the first large request pages, window,
 * thread hooks. */
#ifndef FL_RUNTIME_RUNTIME_H
#define FL_RUNTIME_RUNTIME_H

#include "alloc/alloc.h"
#include "gpu/gpu.h"
#include "heap/heap.h"
#include "numa/numa.h"
#include "runtime/past.h"

#include <pthread.h>

struct fl_runtime {
    struct fl_options options;
    struct fl_region region;
    struct fl_worker worker;
    struct fl_numa_process numa;
    bool next_is_libc;       /* the next allocator is glibc's own */
    _Atomic bool tune_next;  /* its thresholds are ours to raise */
    bool active;             /* large requests are served from the window */
    const char *shadowed_by; /* the file of the program's malloc, while that has not come to ours */
    _Atomic bool has_own_filter; /* the program has installed a seccomp filter */
};

extern struct fl_runtime fl_runtime;

/* Boot's first step, once, in the first thread that comes; others wait. Returns at once when this
 * thread is in the midst of it. Context: early. */
void fl_load(void);
/* Both steps. Does not wait for another thread's second: it may not be done on return. errno stays.
 * Threads: any.  Signals: safe, as far as the C library's keys are. */
void fl_boot(void);
/* The same for what wants all there, as a public call: waits for another thread's second step, and
 * for forks that keep it off, 0.1 s at most. False: that was not enough. */
bool fl_boot_for_call(void);
/* As fl_boot, but not in a process that has confined itself. Waits for another thread's second step
 * 50 ms at most, and not again where that was not enough. */
void fl_boot_for_request(void);
/* Is all there? */
bool fl_is_started(void);
/* The second step itself: fl_boot alone calls it. */
void fl_start_once(void);
/* A quarter of FAULTLESS_DECAY_MS. */
uint64_t fl_tick_ns(void);
/* As the options now say. */
bool fl_steps_are_on(void);
/* Some thread is amid the second step; `*out_here`: this one. */
bool fl_is_starting(bool *out_here);

/* Fills in the next allocator; next.c says from which objects. False: there is none. */
bool fl_find_next(struct fl_next *out, bool *out_is_libc);

/* Notes whose malloc the program has, and whose free: front.c. Once, at start, of a library that
 * interposes them. */
void fl_find_first(void);

/* Fills in the next definition of each name that there is. */
void fl_find_libc(struct fl_libc *out);

/* Joins fork(2): see fork.c. 0 or an error number of pthread_atfork(3). */
int fl_fork_watch(void);
/* A thread forks, and the region may not start. */
bool fl_fork_is_near(void);

/* Around a call by which the program changes what its threads are (credentials, namespaces,
 * scheduling): the library has none of its own meanwhile. begin: false in a child of vfork(2), and
 * where there can be none.  Threads: any.  Signals: safe.  Context: early. errno stays. */
bool fl_host_begin_change(void);
void fl_host_end_change(bool begun);
/* `t` is the process's first thread. */
bool fl_host_is_first(pthread_t t);
/* The same around a call that installs a seccomp filter: what is free goes back, and from then on
 * nothing is called that glibc's malloc would not call. begin: false where that is so already.
 * strict: of SECCOMP_MODE_STRICT, where no memory is to be had any more: what was free is the next
 * allocator's then, which serves all. */
bool fl_host_begin_filter(bool strict);
void fl_host_end_filter(bool begun, bool installed, bool strict);
/* After a call that limits the process's maps: what is free goes back, and the region knows the
 * limit.  Threads: any.  Signals: safe. errno stays. */
void fl_host_note_limit(void);
/* All that is free goes back, with its addresses. False: that cannot be here, or now.
 * Threads: any, waits for a fork.  Signals: safe. errno stays. */
bool fl_host_make_room(size_t *out_given);
/* Maps are counted from now on: see again.c. Lock: region. */
void fl_again_begin(void);
void fl_again_fork_child(void);

/* This library among the objects that the program was started with; where it is none of them
 * (dlmopen(3)): the last one. Is `a` behind `b` in the loader's list? */
struct link_map *fl_own_object(void);
bool fl_is_behind(const struct link_map *a, const struct link_map *b);

/* A name that libc alone has. */
static const char fl_of_libc[] = "gnu_get_libc_version";

/* The next definition of `name` in the preload order, or NULL.  Threads: any.  Signals:
 * safe. */
void *fl_find_next_of(const char *name);

/* The next definition of `name` is of the object that owns malloc behind us. After boot. */
bool fl_is_next_owners(const char *name);

/* The file of the first object before this library that defines `name`; NULL: there is none. */
const char *fl_first_of(const char *name);

/* FAULTLESS_STATS_SIGNAL: that signal asks for a report, unless the program has a handler or
 * ignores it; 0: none. The worker writes it, to where FAULTLESS_STATS says, else to standard
 * error. */
void fl_report_on_signal(int signal);
/* A job of the worker's: that report; and FAULTLESS_STATS=FILE.prom, every 15 s. */
uint64_t fl_report_wanted(struct fl_region *r);
/* FAULTLESS_STATS says another thing now. */
void fl_report_changed(void);
/* What the report at exit needs early. `env`: NULL, as for AT_SECURE.  Context: boot. */
void fl_report_start(char *const env[]);

/* An option's file cannot be written: by name, with the reason, or the error's number (-rc). Who
 * reads it looks for the folder, or its rights. */
void fl_report_unwritten(const char *option, const char *path, int rc);
/* FAULTLESS_PROFILE: from the start, and at exit: profile.c.  Context: boot; exit. */
void fl_report_begin_profile(void);
void fl_report_profile(void);

/* FAULTLESS_CONFIRM: prints the options, with what automatic comes to here.  Context: boot, after
 * the region's start. */
void fl_confirm(void);

/* What the process was launched with, for fl_place_start. Context: boot, first step. */
void fl_place_note_launch(void);
/* Several nodes: the region is divided by them, and asks here where. With one, nothing. After
 * fl_region_start, before the first request. */
void fl_place_start(void);
/* Each CPU gets the word of its node, and another one whenever what decides on nodes has changed.
 * Threads: boot, then the worker. */
void fl_place_note_sites(void);
/* A job of the worker's: what an administrator may have changed. */
uint64_t fl_place_refresh(struct fl_region *r);
/* See struct fl_placing. look: the worker's, before it fills the zone. */
bool fl_place_has_room(unsigned zone, size_t bytes);
void fl_place_look(unsigned zone);

/* Tells readers outside the process where the counters lie: live.c.  Context: boot, when all layers
 * have started. */
void fl_live_start(void);
/* The same of a process whose malloc is another's: that alone.  Context: at load. */
void fl_live_start_shadowed(void);

/* One snapshot of everything. And what of it is in memory: as fl_region_residency. */
void fl_read_stats(struct fl_stats_values *out);
int fl_read_residency(struct fl_residency_values *out);

#endif
