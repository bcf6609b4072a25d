/* What the two kinds of helpers of crew.c share: a range that is handed out in pieces, to the
 * thread that comes next.
 *
 * Pieces end at huge pages, so no two hands want the same one, and get smaller towards the end, so
 * that all end together. State: struct fl_share, one a call. */
#ifndef FL_SYS_CREW_H
#define FL_SYS_CREW_H

#include "sys/sys.h"

enum { FL_CREW_MOST = 64 }; /* helpers of one call */

struct fl_share {
    struct fl_range all;
    unsigned hands;        /* the caller and its helpers, at least 1; constant */
    _Atomic size_t handed; /* bytes from all.base on that a helper has, or had */
    _Atomic int rc;        /* the first refusal, -errno; then nothing is handed out any more */
};

/* Where helpers may run, and room to find it out: the caller's stack may be small. */
struct fl_crew_cpus {
    struct fl_cpu_ids idle; /* the CPUs that may be used */
    struct fl_cpu_ids allowed;
    char list[512];
};

/* The CPUs on which helpers are to populate a block; none idle: the caller works alone.
 *   page   one of the block's that is in memory: its node is the block's.
 * Returns how many of them are idle and may be used, the caller's own not counted. Threads: any;
 * no lock of ours held.  Cost: some small files, 30 us and more. */
unsigned fl_crew_cpus(uintptr_t page, struct fl_crew_cpus *c);
/* Whole CPUs whose time the control groups leave the process, at least 1; UINT_MAX: all. Threads:
 * any; no lock of ours held.  Cost: as above, and a file for each group above the process. */
unsigned fl_crew_quota(void);

void fl_share_init(struct fl_share *s, struct fl_range all, unsigned helpers);
/* The next piece; len 0 when there is none. Threads: any. */
struct fl_range fl_share_take(struct fl_share *s);
/* Brings one piece into memory. Threads: any. */
void fl_share_fill(struct fl_share *s, struct fl_range piece);
void fl_share_fail(struct fl_share *s, int rc);

/* Works all of `s` off, with io_uring's workers beside the caller. True when there was a ring; what
 * it came to is s->rc. False: there is none to be had, and nothing has been handed out. Context:
 * only a thread of the library's own, FL_THREAD_APART. */
bool fl_ring_work(struct fl_share *s, const struct fl_cpu_ids *cpus);

#endif
