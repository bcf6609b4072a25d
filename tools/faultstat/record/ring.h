/* The perf events of a command and its descendants, and the rings they write to, a ring a CPU.
 * Opened on the calling process, disabled, inherited and enabled by exec: what the process starts
 * afterwards is recorded from its first instruction, the process itself never.
 * Leaves the records to event.h. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_RING_H
#define FAULTLESS_FAULTSTAT_RECORD_RING_H

#include "faultstat/record/event.h"

/* Processor time between two ticks of the clock: no multiple of the kernel's own tick. A tick takes
 * 1 us, in a virtual machine inside another 13: at most 1 % of the time. */
enum { FL_CLOCK_NS = 1511003 };

struct fl_rings_spec {
    uint64_t every;     /* take each Nth fault of a thread on a CPU */
    uint32_t stack_len; /* bytes of stack a sample, a multiple of 8 */
    bool copies; /* tell copies after a fork apart, by a tracepoint in the path of each fault */
};

struct fl_ring {
    int fd[FL_ROLE_COUNT]; /* -1: none */
    struct perf_event_mmap_page *page;
};

struct fl_rings {
    struct fl_ring *ring; /* one a CPU */
    size_t count;
    size_t len; /* bytes of a ring's data */
    uint64_t *id;
    struct fl_event_layout layout;
    bool user_only;       /* faults inside system calls are not seen */
    bool has_page_size;   /* samples say the size of the page */
    bool sees_protection; /* the tracepoint that tells copies apart is open */
    bool sees_zero_page;  /* samples tell a read of fresh memory from a write */
    bool has_clock;       /* ticks in user mode are recorded */
};

/* Open the events and map the rings.
 * Returns 0; -EACCES or -EPERM where the kernel's setting or a filter forbids it, -ENOENT or
 * -ENOSYS where there are no perf events: nothing is open then.
 * Source: perf_event_open(2); kernel/events/core.c perf_mmap (the limits on a ring). */
int fl_rings_open(struct fl_rings *rings, const struct fl_rings_spec *spec);

/* Give `take` each record that the rings hold, and free its room. A record passed is good until
 * `take` returns.  Threads: one. */
void fl_rings_drain(struct fl_rings *rings, void (*take)(void *arg, const void *record, size_t len),
                    void *arg);

/* Record the calling process itself from now on. */
void fl_rings_enable(struct fl_rings *rings);

/* How many faults there were, sampled or not. */
void fl_rings_count(const struct fl_rings *rings, uint64_t *minor, uint64_t *major);

/* Unmap and close. Harmless after a failed open. */
void fl_rings_close(struct fl_rings *rings);

#endif
