/* SPDX-License-Identifier: Apache-2.0 */
/* faultless: what a program may ask of the allocator that it runs under.
 *
 * Link with libfaultless.so, or look the functions up with dlsym(RTLD_DEFAULT, ...) to stay
 * independent of it. Status is 0 or -errno. */
#ifndef FAULTLESS_FAULTLESS_H
#define FAULTLESS_FAULTLESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef FL_API
#define FL_API __attribute__((visibility("default")))
#endif

/* The library's version, such as "0.1.0". Constant.  Threads: any.  Signals: safe. */
FL_API const char *fl_version(void);

/* One snapshot. Sizes are bytes, the rest are counts since the process began (a fork's child goes
 * on counting from its parent's figures). Our own counters: for facts of the kernel's, such as page
 * faults, see getrusage(2) and faultstat(1). */
struct fl_stats {
    uint64_t size;     /* set by the caller to sizeof(struct fl_stats) */
    uint64_t active;   /* 1: large requests are served from the window; 0: all is passed through, or
                        * none came and another allocator has the program's malloc */
    uint64_t requests; /* large requests served, by plans too */
    uint64_t cache_hits;   /* of these by a thread's cache */
    uint64_t stalls;       /* of these that had to populate memory */
    uint64_t lazy;         /* of these handed out unpopulated */
    uint64_t refused;      /* large requests left to the next allocator */
    uint64_t frees;        /* large frees */
    uint64_t live_extents; /* now */
    uint64_t in_use_bytes; /* now; what thread caches hold is in it */
    uint64_t in_use_peak_bytes;
    uint64_t populated_bytes; /* now: in use, or free and kept; also what waits for its touch */
    uint64_t populated_peak_bytes;
    uint64_t populate_bytes;    /* so far */
    uint64_t populate_errors;   /* populations that the kernel refused */
    uint64_t purge_bytes;       /* given back to the kernel so far */
    uint64_t window_bytes;      /* address space reserved */
    uint64_t move_bytes;        /* huge pages moved so far */
    uint64_t stock_bytes;       /* kept ready now */
    uint64_t repair_bytes;      /* made huge pages again after fork so far */
    uint64_t releases;          /* times that memory pressure took what was free */
    uint64_t compactions;       /* populations so slow that base pages were used for a while */
    uint64_t rung;              /* how pages move: 0 userfaultfd, 1 mremap, 2 not at all */
    uint64_t plan_hits;         /* requests of planned steps served where the plan says */
    uint64_t plan_misses;       /* requests of planned steps that differed from the plan */
    uint64_t plan_unplaced;     /* of these, requests that the step was not known to make */
    uint64_t plan_missed_bytes; /* of the misses */
    uint64_t plan_steps;        /* steps served by a plan */
    uint64_t plan_layouts;      /* plans made */
    uint64_t plan_drops;        /* plans given up */
    uint64_t plan_bytes;   /* of plans' arenas, now; what is held of them is part of in_use_bytes */
    uint64_t cached_bytes; /* in thread caches, now; part of in_use_bytes */
    uint64_t plan_free_bytes; /* held in plans' arenas for no block, now; part of in_use_bytes */
    uint64_t free_held_bytes; /* else free and kept, now, but for the stock */
    uint64_t plan_recorded;   /* steps recorded, to learn from */
    uint64_t served_bytes;    /* of the large requests served */
    uint64_t lazy_bytes;      /* of these, handed out unpopulated */
    uint64_t region_locks;    /* times that the region's lock was taken, by any thread */
    uint64_t thin_bytes;      /* of huge pages in use, split to give back what was zero */
};

/* Fills `*out`, as many fields as out->size covers. 0; -EINVAL when `out` is NULL or out->size is
 * too small for `active`. Threads: any; takes the region lock.  Signals: not safe.  Fork: child may
 * call. */
FL_API int fl_stats_read(struct fl_stats *out);

/* How much of it is in memory, by the kernel's account: what fl_stats counts as held may wait for
 * its first touch, or have been taken by the kernel since. Each pair: bytes of addresses that are
 * held for that; and bytes of these that are in memory. Huge pages count as the base pages in them.
 * What is swapped out is not in memory. The resident ones together are what /proc/self/smaps has as
 * Rss of maps with names that begin with "faultless:", but for pinned memory (gpu.h) and heaps
 * (heap.h). */
struct fl_residency {
    uint64_t size;       /* set by the caller to sizeof(struct fl_residency) */
    uint64_t live_bytes; /* of blocks that the program has, in whole pages */
    uint64_t live_resident_bytes;
    uint64_t free_bytes; /* free and kept: in thread caches and in plans' arenas too */
    uint64_t free_resident_bytes;
    uint64_t stock_bytes; /* kept ready ahead of demand */
    uint64_t stock_resident_bytes;
    uint64_t table_bytes; /* the library's own tables: descriptors, pagemap, plans */
    uint64_t table_resident_bytes;
    uint64_t unknown_bytes; /* the kernel does not tell of these: in no resident figure */
};

/* Asks the kernel now, and fills `*out`, as many fields as out->size covers. 0; -EINVAL when `out`
 * is NULL or out->size is too small for `live_bytes`; -EBUSY, with `*out` as it was, in a signal
 * handler that interrupted the library's work, and in a child that has threads' unfinished work of
 * its parent's. A process that is not served has zeros.
 * No snapshot: what other threads do meanwhile may count twice, or not at all.
 * Threads: any; requests and frees of others go on. Signals: not safe. Fork: child may call. errno
 * may change.
 * Cost: 40 us; 50 us a GiB in huge pages, 3 to 20 ms in base pages; and 7 us for each change from
 * live to free memory, by address. Not for each request.
 * Source: PAGEMAP_SCAN, Linux 6.7; else /proc/self/pagemap; else mincore(2), 0.2 ms a GiB of
 * addresses. These two count the page of zeros that reads of untouched memory find. Under a seccomp
 * filter of the program's own nothing is asked, and all is unknown. */
FL_API int fl_residency_read(struct fl_residency *out);

/* Gives free memory back to the kernel until at most `keep` bytes of it stay: what is free, in
 * thread caches, in plans' arenas, or kept ready, oldest first. Blocks stay, and so does what is
 * free of a huge page that they use where it is less than a thirty-second of that. Heaps (heap.h),
 * GPU pools (gpu.h) and small blocks, which are glibc's (malloc_trim(3)), are no part of it. The
 * bytes that went back, which may be 0; -EBUSY in a signal handler that interrupted the library's
 * work. A process that is not served has 0.
 * Threads: any; requests and frees of others go on.  Signals: not safe.  Fork: child may call.
 * Cost: some 3 ms a GiB in huge pages. */
FL_API int64_t fl_release(size_t keep);

/* Changes an option while the process runs, as if FAULTLESS_<NAME>=VALUE had been in the
 * environment: decay_ms, limit, eager_max, steps, trim and stats. `name` has FAULTLESS_ in front or
 * not, and is in any case. `value` NULL: the default. It holds for this process, and for children
 * that it forks from then on, not for programs that it starts.
 *   decay_ms   for what is free already, too
 *   limit      free memory beyond it goes back at once; blocks stay
 *   eager_max  for requests from then on
 *   steps      off: those that have begun end as they would have, none begins, and what their plans
 *              hold, but for mirrors (gpu.h), goes back by its age. Hardened, or with plan in
 *              FAULTLESS_DISABLE, none begins
 *   stats      what is said last counts, at exit; %h and %r want the environment, as getenv(3) does
 *              The names of a process may have 4 KiB in all: one that is new then is -EINVAL
 * 0; -ENOENT: there is no such option; -EPERM: it is read at the start alone; -EINVAL or -ERANGE:
 * as the environment's is refused, or `name` is NULL; -ENOSYS: the process is not served; -EBUSY:
 * another thread is at it, or as above. Nothing is printed, and nothing changed but with 0.
 * Threads: any, one at a time.  Signals: not safe.  Fork: child may call. */
FL_API int fl_option_set(const char *name, const char *value);

/* Steps. A program that repeats itself (a training loop, a server's request) says where one
 * iteration begins and ends. After a few of them that were alike, the large blocks of the next one
 * are served from one arena: each at the address that it had before, populated. A step that turns
 * out different costs memory and never correctness. What is not freed by the end of its step stays
 * where it is. A program that says nothing has no steps: its blocks are populated all the same.
 *
 * A context is one kind of loop. A thread may be in several, one within the other: its requests
 * belong to the innermost. A context has one thread at a time (of a server's, say); one that
 * comes when another has left takes over what that one has learned, and one that comes before
 * goes on without a step, beside which no other is planned. What a thread asks for that is in no
 * context is no step of its own, whichever thread it works for. NULL is the calling thread's own
 * context, so that two calls are enough. Steps that overlap those of other threads, or take
 * turns with theirs in other contexts, are served as if they were none, unless a mirror (gpu.h)
 * goes with them: each thread then has memory of its own. */
struct fl_step_context;

/* A new context in `*out`. 0; -ENOSYS when steps are off (FAULTLESS_STEPS=off, fl_option_set) or
 * the process is not served at all; -ENOMEM: no more contexts (1,024) or no memory; -EINVAL: `out`
 * is NULL.  Threads: any.  Signals: not safe. */
FL_API int fl_step_new(struct fl_step_context **out);
/* Its plans are forgotten; blocks stay. 0; -EBUSY when a thread is in it; -EINVAL for NULL;
 * -ENOSYS.  Threads: any.  Signals: not safe. */
FL_API int fl_step_free(struct fl_step_context *ctx);
/* A step begins, and ends. 0; begin: -EBUSY when another thread is in the context, -EINVAL when
 * this one is already, -ENOMEM, -ENOSYS; end: -EINVAL when the thread's innermost context is
 * another one, -ENOSYS. Threads: any.  Signals: not safe.  Fork: a child goes on with the step
 * that its thread was in; what other threads were in just then it learns anew. In a child that
 * is not served all say -ENOSYS. */
FL_API int fl_step_begin(struct fl_step_context *ctx);
FL_API int fl_step_end(struct fl_step_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
