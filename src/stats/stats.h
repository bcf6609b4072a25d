/* Counters and their printed forms. Knows no layer above; figures of the kernel's are read by
 * tools, not here.
 *
 * Per-thread counters are written by their thread alone (relaxed, plain stores) and summed when
 * they are read. */
#ifndef FL_STATS_STATS_H
#define FL_STATS_STATS_H

#include "stats/live.h"
#include "stats/profile.h"
#include "stats/timeline.h"
#include "sys/sys.h"

/* Written by the owning thread. Relaxed: statistics, order nothing. */
struct fl_thread_stats {
    _Atomic uint64_t cache_hits; /* requests served by the thread's slots or by a depot */
    _Atomic uint64_t hit_bytes;  /* of these, together */
};

/* What the region counts of the figures below, by the same names: fl_region_stats_read copies them.
 * X(field). Some are written by atomic operations without the lock; all are read so. */
#define FL_REGION_COUNTERS(X)                                                                      \
    X(stalls)                                                                                      \
    X(lazy)                                                                                        \
    X(lazy_bytes)                                                                                  \
    X(refused)                                                                                     \
    X(populate_bytes)                                                                              \
    X(populate_errors)                                                                             \
    X(purge_bytes)                                                                                 \
    X(move_bytes)                                                                                  \
    X(repair_bytes)                                                                                \
    X(releases)                                                                                    \
    X(compactions)                                                                                 \
    X(thin_bytes)

/* Lock: region. */
struct fl_region_stats {
    uint64_t takes;      /* requests served by the region */
    uint64_t take_bytes; /* of these, together */
    uint64_t kept;       /* extents that were taken along, for the threads' next requests */
    uint64_t gives;      /* extents that came back */
    uint64_t locks;      /* times that the region's lock was taken */
#define FL_REGION_COUNTER(field) uint64_t field;
    FL_REGION_COUNTERS(FL_REGION_COUNTER)
#undef FL_REGION_COUNTER
};

/* One snapshot, in the order it is printed. X(field, kind, text). kind: COUNTER (since the process
 * began) or GAUGE (now, or a peak). Units: bytes where the text says so, else counts. */
#define FL_STATS_FIELDS(X)                                                                         \
    X(active, GAUGE, "large requests are served (1) or are another allocator's (0)")               \
    X(requests, COUNTER, "large requests served, by plans too")                                    \
    X(cache_hits, COUNTER, "of these by a thread cache")                                           \
    X(stalls, COUNTER, "of these that had to populate memory")                                     \
    X(lazy, COUNTER, "of these handed out unpopulated")                                            \
    X(refused, COUNTER, "large requests left to the next allocator")                               \
    X(frees, COUNTER, "large frees")                                                               \
    X(live_extents, GAUGE, "extents live now")                                                     \
    X(in_use_bytes, GAUGE, "bytes in use now, thread caches included")                             \
    X(in_use_peak_bytes, GAUGE, "peak of that, bytes")                                             \
    X(populated_bytes, GAUGE, "bytes held now, in memory or waiting for their first touch")        \
    X(populated_peak_bytes, GAUGE, "peak of that, bytes")                                          \
    X(populate_bytes, COUNTER, "bytes populated so far")                                           \
    X(populate_errors, COUNTER, "populations the kernel refused")                                  \
    X(purge_bytes, COUNTER, "bytes given back to the kernel so far")                               \
    X(window_bytes, GAUGE, "bytes of address space claimed")                                       \
    X(move_bytes, COUNTER, "bytes of huge pages moved so far")                                     \
    X(stock_bytes, GAUGE, "bytes of the stock now")                                                \
    X(repair_bytes, COUNTER, "bytes made huge pages again after fork so far")                      \
    X(releases, COUNTER, "times that memory pressure took what was free")                          \
    X(compactions, COUNTER, "populations that took so long that base pages were used for a while") \
    X(rung, GAUGE, "how pages move: 0 userfaultfd, 1 mremap, 2 not at all")                        \
    X(plan_hits, COUNTER, "requests of planned steps served where the plan says")                  \
    X(plan_misses, COUNTER, "requests of planned steps that differed from the plan")               \
    X(plan_unplaced, COUNTER, "of these, requests that the step was not known to make")            \
    X(plan_missed_bytes, COUNTER, "bytes of the misses that the next steps have no place for")     \
    X(plan_steps, COUNTER, "steps served by a plan")                                               \
    X(plan_layouts, COUNTER, "plans made")                                                         \
    X(plan_drops, COUNTER, "plans given up")                                                       \
    X(plan_bytes, GAUGE, "bytes of plans' arenas now")                                             \
    X(cached_bytes, GAUGE, "of the bytes in use, those in thread caches")                          \
    X(plan_free_bytes, GAUGE, "of the bytes in use, those of plans' arenas that no block has")     \
    X(free_held_bytes, GAUGE, "bytes free and held now, beside those and the stock")               \
    X(plan_recorded, COUNTER, "steps recorded, to learn from")                                     \
    X(served_bytes, COUNTER, "bytes of the large requests served")                                 \
    X(lazy_bytes, COUNTER, "of these, bytes handed out unpopulated")                               \
    X(region_locks, COUNTER, "times that the region's lock was taken")                             \
    X(thin_bytes, COUNTER, "bytes of huge pages in use that were split, to give back what was zero")

struct fl_stats_values {
#define X(field, kind, text) uint64_t field;
    FL_STATS_FIELDS(X)
#undef X
};

/* What of it is in memory, by the kernel's account. Bytes. In the order of the public struct. */
struct fl_residency_values {
    uint64_t live_bytes, live_resident_bytes;   /* blocks that the program has */
    uint64_t free_bytes, free_resident_bytes;   /* free and held, thread caches included */
    uint64_t stock_bytes, stock_resident_bytes; /* held; likewise below */
    uint64_t table_bytes, table_resident_bytes; /* the library's own */
    uint64_t unknown_bytes; /* whose state is unknown: they count in none of the resident ones */
};

/* What we hold populated, by node, as far as we know; what the kernel says of it is faultstat's.
 * Bytes. */
enum { FL_STATS_NODES = 64 };
struct fl_stats_nodes {
    unsigned n; /* 0: one node, and nothing is said */
    struct fl_stats_node {
        unsigned id;            /* the kernel's number */
        uint64_t extents, free; /* out of the stock; the part of them that is free */
        uint64_t stock;
    } node[FL_STATS_NODES];
    uint64_t several; /* what several nodes share: in turn, or as it was touched */
};

/* What pools and mirrors have of one GPU, as the public struct fl_gpu_device_stats has it, which
 * docs and faultless/gpu.h explain. X(field, kind, text), as above. */
#define FL_STATS_GPU_FIELDS(X)                                                                     \
    X(held_bytes, GAUGE, "bytes held of the driver now")                                           \
    X(held_peak_bytes, GAUGE, "peak of that, bytes")                                               \
    X(limit_bytes, GAUGE, "bytes that may be held; 0: no limit")                                   \
    X(pools, GAUGE, "pools of device memory now")                                                  \
    X(occupied_bytes, GAUGE, "bytes of these pools that blocks have")                              \
    X(free_bytes, GAUGE, "bytes of these pools that no block has")                                 \
    X(requested_bytes, GAUGE, "bytes that were asked for, of those that blocks have")              \
    X(allocs, COUNTER, "requests")                                                                 \
    X(hits, COUNTER, "of these served from what a pool had")                                       \
    X(driver_allocs, COUNTER, "times that the driver gave memory")                                 \
    X(driver_ns, COUNTER, "nanoseconds in its calls, refused ones too")                            \
    X(implicit_syncs, COUNTER, "calls of the driver that waited for the whole device")             \
    X(pinned_pools, GAUGE, "pools of pinned memory now")                                           \
    X(pinned_bytes, GAUGE, "bytes pinned now")                                                     \
    X(mirrors, GAUGE, "mirrors now")                                                               \
    X(mirror_bytes, GAUGE, "bytes of the device that they have")                                   \
    X(copies, COUNTER, "copies of mirrors and staging buffers")                                    \
    X(copied_bytes, COUNTER, "bytes of these")                                                     \
    X(stalls, COUNTER, "times that one of them waited for a copy")

enum { FL_STATS_GPUS = 16 };
struct fl_stats_gpus {
    unsigned n; /* 0: none was used, and nothing is said */
    struct fl_stats_gpu {
        unsigned id; /* the driver's number */
#define X(field, kind, text) uint64_t field;
        FL_STATS_GPU_FIELDS(X)
#undef X
    } gpu[FL_STATS_GPUS];
};

/* One writer, any number of readers. */
static inline void fl_stats_add(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static inline void fl_stats_bump(_Atomic uint64_t *counter)
{
    fl_stats_add(counter, 1);
}

/* Chrome's trace event format, the form of an object: head, events and tail, which chrome://tracing
 * and Perfetto open. Numbers are whole but for times, which are in microseconds with three
 * decimals. Names are quoted as JSON wants them.
 *
 * Source: "Trace Event Format", the Chromium project. */
struct fl_chrome_arg {
    const char *name, *text; /* text: NULL for a number */
    int64_t value;
};
struct fl_chrome_event {
    char phase; /* M (metadata), C (counters), X (a span), i (an instant) */
    const char *name;
    int pid, tid;
    uint64_t at_ns, lasts_ns; /* lasts: of X */
    const struct fl_chrome_arg *arg;
    size_t args;
};
void fl_chrome_head(struct fl_text *t);
/* `first`: no event is before it.  Cost: at most FL_CHROME_EVENT bytes plus those of its names and
 * texts, each at most doubled. */
enum { FL_CHROME_EVENT = 256 };
void fl_chrome_event(struct fl_text *t, const struct fl_chrome_event *e, bool first);
void fl_chrome_tail(struct fl_text *t);

/* A JSON string: quotes and backslashes escaped, control characters left out. */
void fl_stats_quote(struct fl_text *t, const char *s);
/* "faultless[PID] PROGRAM: ". pid 0, program NULL: without. */
void fl_stats_format_prefix(int pid, const char *program, struct fl_text *t);

/* One line of a process, for people. */
struct fl_summary {
    const struct fl_stats_values *values;
    int pid;
    const char *program;
    uint64_t threshold;      /* bytes */
    const char *shadowed_by; /* the file whose malloc the program has; NULL: ours, or not known */
    bool thp_refused;        /* the process has huge pages switched off */
    uint64_t resident_peak;  /* bytes, of the whole process; 0: not known */
    /* What it cost to touch so much memory that was mapped anew, here and now. 0: not measured. */
    uint64_t sample_bytes, sample_faults, sample_ns;
};
/* What is said to be less is so beside an allocator that maps each request anew: all bytes served,
 * less those that were brought into memory, at the costs of the sample. */
void fl_stats_format_summary(const struct fl_summary *s, struct fl_text *t);
/* Text for node_exporter's textfile collector; labels: pid, program, and gpu for those of GPUs that
 * were used. */
enum { FL_PROMETHEUS_BYTES = 49152 };
void fl_stats_format_prometheus(const struct fl_stats_values *v, const struct fl_stats_gpus *g,
                                int pid, const char *program, struct fl_text *t);

/* A table, one field a line; then, with several nodes, one line a node. And what of it is in
 * memory. `pid`: 0, it is not said. */
void fl_stats_format_table(const struct fl_stats_values *v, int pid, struct fl_text *t);
void fl_stats_format_nodes(const struct fl_stats_nodes *n, int pid, struct fl_text *t);
/* A line a GPU of fl_stats_format_summary's kind. */
void fl_stats_format_gpu_summary(const struct fl_stats_gpus *g, int pid, struct fl_text *t);
void fl_stats_format_gpus(const struct fl_stats_gpus *g, int pid, struct fl_text *t);
void fl_stats_format_residency(const struct fl_residency_values *v, struct fl_text *t);
/* One line of JSON with pid and program first, newline behind. `n`: NULL, or with several nodes
 * they are behind that; `g`: NULL, or the GPUs that were used are last. */
void fl_stats_format_json(const struct fl_stats_values *v, const struct fl_stats_nodes *n,
                          const struct fl_stats_gpus *g, int pid, const char *program,
                          struct fl_text *t);

#endif
