/* Which node memory is to come from: the machine's nodes, what the launch said of them, and the
 * decision for one request.
 *
 * It touches no memory and moves none: who fills blocks and stocks asks here where, and does it
 * (region/, uffd/). A node is counted 0, 1, ... in the order of the kernel's numbers, gaps left
 * out; the kernel's number is its id. A set of nodes is a uint64_t, bit i for node i. So a machine
 * has 64 nodes for us; what it has beyond is the kernel's, not ours. State: none of its own; the
 * owner has one struct fl_numa_process. On a machine with memory on one node it says so once
 * (`active` false) and is not to be asked again. Sources: kernel docs
 * admin-guide/mm/numa_memory_policy, ABI/stable/sysfs-devices-node, ABI
 * sysfs-kernel-mm-mempolicy-weighted- interleave; numactl(8); mm/mempolicy.c.
 * docs/internals/numa.md has the decisions as a table. */
#ifndef FL_NUMA_NUMA_H
#define FL_NUMA_NUMA_H

#include "core/core.h"
#include "numa/placing.h"

enum { FL_NODES = 64 };

/* From this size on it counts who touches a block, not who asks for it. It is the size from which
 * glibc maps each block anew (DEFAULT_MMAP_THRESHOLD_MAX), so that the kernel places its pages
 * where they are touched: what programs are written for that initialise in parallel. Below, glibc
 * hands memory out again wherever it lies; and a block has less than 16 huge pages, of which a
 * served first touch costs more than a wrong node does. */
#define FL_NUMA_LARGE ((size_t)32 << 20)

/* T1: 1 <= count, ids ascend.  T2: `memory` and `cpus` are sets of nodes below count, neither is
 * empty.
 * T3: order[i] begins with each node of `memory`, once, by distance from i; of nodes at one
 * distance the next upward from i comes first, and after the last the first: so nodes that are full
 * do not all fall on the same one. Constant after fl_topology_read. A node that is plugged in later
 * is left to the kernel. */
struct fl_topology {
    unsigned count;
    unsigned left_out;     /* nodes online past FL_NODES */
    uint16_t id[FL_NODES]; /* the kernel's number */
    uint64_t memory; /* nodes that have memory: with CXL, or GPU memory, some that have no CPU */
    uint64_t cpus;   /* nodes that have CPUs: some may have no memory */
    uint8_t distance[FL_NODES][FL_NODES]; /* as ACPI's SLIT: 10 is the node itself; [from][to] */
    uint8_t order[FL_NODES][FL_NODES];
    uint8_t weight[FL_NODES]; /* of weighted interleaving, 1 to 255: chunks in a row */
};

/* Room to read files in: stacks may be small. Lock: the owner's. */
struct fl_numa_scratch {
    char text[8192], path[256];
    struct fl_cpu_ids own, node; /* CPUs */
};

/* Reads the nodes below `root` ("/sys"; a test's own folder). Never fails: what cannot be read, or
 * makes no sense, is one node 0; memory and CPUs on each node; distance 20; weight 1. Threads: boot
 * only.  Context: early.  Cost: one file with one node; else five and two a node, some 0.1 ms. */
void fl_topology_read(struct fl_topology *t, const char *root, struct fl_numa_scratch *s);

/* The weights alone, which root may change at run time. Linux 6.9; 1 without. */
void fl_topology_read_weights(struct fl_topology *t, const char *root, struct fl_numa_scratch *s);

/* The CPUs of a node, all that it has. False, and none, where they cannot be read.  Cost: 15 us. */
bool fl_topology_cpus(const struct fl_topology *t, unsigned node, const char *root,
                      struct fl_numa_scratch *s, struct fl_cpu_ids *out);

/* The node with that id; FL_NODES: there is none, or it is left out. */
unsigned fl_topology_find(const struct fl_topology *t, unsigned id);

/* From the kernel's numbers to nodes, which leaves out what is not known, and back. */
uint64_t fl_topology_set(const struct fl_topology *t, const struct fl_node_ids *ids);
void fl_topology_ids(const struct fl_topology *t, uint64_t set, struct fl_node_ids *out);

/* The node of `set` (with memory) that is nearest to node `from`; FL_NODES when none is in it. */
unsigned fl_topology_nearest(const struct fl_topology *t, unsigned from, uint64_t set);

/* Bytes that the nodes of `set` can still give without an OOM kill: free, and page cache that can
 * go, less what the kernel keeps (an eighth of small nodes; 64 MiB and a 512th of the others). What
 * is reclaimed is counted in full, so it is an upper bound under load. UINT64_MAX where it cannot
 * be read.  Threads: `s` is the caller's alone.  Cost: 20 us a node. */
uint64_t fl_topology_room(const struct fl_topology *t, uint64_t set, const char *root,
                          struct fl_numa_scratch *s);

/* A thread's memory policy as the kernel has it: numactl(8), set_mempolicy(2). */
enum fl_policy_mode {
    FL_POLICY_DEFAULT,        /* nothing was said; or it cannot be read */
    FL_POLICY_LOCAL,          /* --localalloc, or --preferred of no node */
    FL_POLICY_PREFERRED,      /* --preferred: one node, the others by distance from it */
    FL_POLICY_PREFERRED_MANY, /* --preferred-many: the nearest of these, then the others */
    FL_POLICY_BIND,           /* --membind: these, or none */
    FL_POLICY_INTERLEAVE,
    FL_POLICY_WEIGHTED, /* interleaved by weights */
};

struct fl_policy {
    enum fl_policy_mode mode;
    uint64_t
        /* what the policy names, whether or not the cpuset allows it; of DEFAULT and LOCAL none */
        nodes;
};

/* The calling thread's policy, MPOL_F_STATIC_NODES and MPOL_F_RELATIVE_NODES worked out.
 *   allowed   nodes with memory that the cpuset leaves: relative numbers count among them.
 * Returns 0; -ENOSYS or -EPERM where it cannot be read (*out is DEFAULT then); -EINVAL: a mode not
 * known here, DEFAULT too. Threads: any.  Signals: safe.  Cost: 0.2 us. */
int fl_policy_read(const struct fl_topology *t, uint64_t allowed, struct fl_policy *out);

/* Nodes with memory that the calling thread's cpuset leaves; where it cannot be read, all that have
 * memory: get_mempolicy(2), else /proc/thread-self/status, which sandboxes leave. Never
 * empty.  Cost: 0.2 us; 30 from procfs. */
uint64_t fl_cpuset_read(const struct fl_topology *t, struct fl_numa_scratch *s);

/* CPUs that the calling thread may run on; 0: unknown. A system call. */
unsigned fl_cpus_allowed(void);
/* Nodes on whose CPUs the calling thread may run: --cpunodebind, --physcpubind, taskset, cpusets;
 * t->cpus where it cannot be read. Never empty.  Cost: 15 us a node. */
uint64_t fl_affinity_read(const struct fl_topology *t, const char *root, struct fl_numa_scratch *s);

/* FAULTLESS_NUMA with its nodes. */
struct fl_numa_choice {
    enum fl_numa mode;
    /* Of BIND and INTERLEAVE; 0 with INTERLEAVE: not said, all nodes with memory that are next to
     * CPUs. */
    uint64_t nodes;
};

/* From the options. False when a list of nodes names none that has memory; then *out is AUTO, and a
 * line is due. */
bool fl_numa_choice_read(const struct fl_topology *t, const struct fl_options *o,
                         struct fl_numa_choice *out);

/* All that a decision looks at but the request. */
struct fl_numa_view {
    const struct fl_topology *topology;
    struct fl_numa_choice choice;
    struct fl_policy policy; /* of the thread that asks */
    uint64_t allowed;        /* by the cpuset */
    uint64_t
        /* nodes on whose CPUs the launch lets the process run; never mind one thread's own affinity
         * */
        cpus;
    size_t huge; /* bytes of a huge page */
};

struct fl_numa_request {
    size_t len;    /* bytes */
    unsigned node; /* of the CPU that the asking thread runs on; FL_NODES: not known */
    bool served;   /* first touches of this block can be served (MISSING faults) */
    /* How such blocks were touched in earlier steps: in contiguous pieces of so many bytes (0: not
     * known) by threads on these nodes in turn, the first piece by one on `piece_first`. */
    size_t piece;
    uint64_t piece_nodes;
    unsigned piece_first;
};

enum fl_placement_kind {
    FL_PLACE_ANYWHERE, /* nothing is to be done: one node, or FAULTLESS_NUMA=off */
    FL_PLACE_NODE,     /* populated on one node */
    FL_PLACE_SPREAD,   /* populated chunk by chunk on nodes in turn */
    FL_PLACE_TOUCH,    /* each page where it is touched */
};

/* P1: nodes and prefer are not empty, but for ANYWHERE; prefer is part of nodes, nodes part of the
 * topology's memory. */
struct fl_placement {
    enum fl_placement_kind kind;
    bool
        /* nothing but `nodes` may hold it, all others being forbidden: where they are full, ENOMEM
         * */
        strict;
    bool
        /* TOUCH: by us; else the block goes out unpopulated, and the kernel's faults place */
        served;
    bool from_start; /* SPREAD: chunks count from the block's start; else from address 0 */
    bool weighted;   /* SPREAD: a node has as many chunks in a row as its weight */
    uint8_t
        /* NODE: distances count from it, be it in `nodes` or not; SPREAD: node of the first chunk
         * */
        from;
    size_t chunk;    /* SPREAD: bytes */
    uint64_t prefer; /* these first; SPREAD: the nodes that take turns */
    uint64_t nodes;  /* where these are full: these */
};

/* The decision. A pure function. What the launch forbids stays forbidden: the cpuset and --membind
 * bound every choice of FAULTLESS_NUMA; among what they leave, it goes before the launch's policy.
 * A set of which nothing is left does not count. Threads, signals: any.  Cost: below 0.1 us. */
void fl_numa_decide(const struct fl_numa_view *v, const struct fl_numa_request *q,
                    struct fl_placement *out);

/* The best node that is left for the page at `at`; FL_NODES when `full` has them all: refuse
 * (ENOMEM) when `strict`, else take what the kernel gives.
 *   at        bytes: the page's address, or with from_start its distance from the block's start.
 *   toucher   TOUCH: the node of the thread that touches it.
 *   full      nodes that were found to have no room. */
unsigned fl_placement_node(const struct fl_topology *t, const struct fl_placement *p, uintptr_t at,
                           unsigned toucher, uint64_t full);

/* The policy that the window's maps shall carry (mbind), so that what the kernel itself brings in
 * obeys the launch, and automatic balancing, which takes hinting faults where no policy is set,
 * lets them be: FAULTLESS_NUMA's, or the launch's, or local. False: none (one node, off, balance).
 *   out_mode, out   for fl_nodes.bind. */
bool fl_numa_window(const struct fl_numa_view *v, int *out_mode, struct fl_node_ids *out);

/* All of it for one process. */
struct fl_numa_process {
    struct fl_topology topology;  /* constant after start */
    struct fl_numa_choice choice; /* likewise */
    struct fl_policy launch;      /* likewise: the policy of the thread that booted, so numactl's */
    uint64_t cpus;                /* likewise: nodes on whose CPUs that thread might run */
    const char *root;             /* likewise: "/sys" */
    /* What the cpuset leaves. Relaxed: fl_numa_refresh writes, decisions read. */
    _Atomic uint64_t allowed;
    /* Constant after start: policies cannot be read (a sandbox), so there is none for us. */
    bool mute;
    bool active;                    /* constant after start: there is something to decide */
    struct fl_numa_scratch scratch; /* of start and refresh */
};

/* Reads the machine, the launch and the option, once. With one node it reads one file and no more.
 * Says one line when FAULTLESS_NUMA names nodes of which none has memory (not with
 * FAULTLESS_LOG=none).
 *   root   "/sys"; kept.
 * Threads: boot only, the thread that was launched.  Context: early.  Fork: a child has the
 * same. */
void fl_numa_start(struct fl_numa_process *n, const struct fl_options *o, const char *root);

/* Reads anew what an administrator may have changed: the cpuset's nodes. True when they are others
 * than before. Threads: one at a time (the worker's tick).  Context: no lock needed.  Cost: 0.2 us;
 * 30 in a sandbox. */
bool fl_numa_refresh(struct fl_numa_process *n);

/* fl_numa_decide for the calling thread, with its node and its policy of this moment. `q->node` is
 * filled in. Threads: any.  Signals: safe.  Cost: 0.4 us, a system call: for requests that
 * populate, not for those a cache serves. */
void fl_numa_place(struct fl_numa_process *n, struct fl_numa_request *q, struct fl_placement *out);

/* What a decision would look at, by the launch's policy: for fl_numa_window, and for threads of
 * ours. */
void fl_numa_view(const struct fl_numa_process *n, struct fl_numa_view *out);

/* "nodes 0-3 (memory on 0-2), launch bind 0-1, CPUs of 0, placing auto": for the log. */
void fl_numa_describe(const struct fl_numa_process *n, struct fl_text *t);

#endif
