/* On which NUMA nodes the memory of a process lies, and on which its threads run. Holds no state
 * but the machine's CPUs.
 *
 * What it cannot say: who uses what. So there are two shares of remote memory. `remote` is certain:
 * it lies where none of the threads runs. `shared` is what would be remote if all of them used all
 * of the memory alike, by the time they have had. Source: proc(5), /proc/PID/numa_maps: pages by
 * node of each map, in kernelpagesize_kB; huge pages count as base pages. */
#ifndef FAULTLESS_FAULTSTAT_NODES_H
#define FAULTLESS_FAULTSTAT_NODES_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

enum { FL_NODES_MAX = 64 };

struct fl_node {
    unsigned id;        /* the kernel's number */
    uint64_t anonymous; /* bytes of maps without a file: heap, stacks, allocators' */
    uint64_t file;      /* bytes of maps of files and of shared memory */
    unsigned threads;   /* last seen there; but those named fl- */
    uint64_t ticks;     /* of CPU time that these have had so far, anywhere */
};

/* Ids ascend. Nodes past FL_NODES_MAX are not counted. */
struct fl_nodes {
    struct fl_node node[FL_NODES_MAX];
    size_t count;
};

/* Nodes online; 0: unknown.  Threads: any. */
unsigned fl_nodes_online(void);

/* Add what one line of numa_maps says. */
void fl_nodes_add_map(struct fl_nodes *nodes, const char *line);

/* Add a thread on node `id` that has had so much time. */
void fl_nodes_add_thread(struct fl_nodes *nodes, unsigned id, uint64_t ticks);

/* Read /proc/PID/numa_maps and where the threads are. Returns 0; -ENOENT or -ESRCH when it has
 * gone; -EACCES: another user's;
 * -ENOSYS: a kernel without NUMA.  Threads: one at a time.
 * Cost: the kernel walks the page tables, as for smaps_rollup. */
int fl_nodes_read(pid_t pid, struct fl_nodes *out);

/* Per cent of anonymous memory; NAN when there is none, or no thread. */
double fl_nodes_remote_pct(const struct fl_nodes *nodes);
double fl_nodes_shared_pct(const struct fl_nodes *nodes);

/* Print a line a node, and the shares. */
void fl_nodes_print(const struct fl_nodes *nodes, FILE *file);

/* An array with one object a node. Returns a new reference; NULL: no memory. */
json_t *fl_nodes_json(const struct fl_nodes *nodes);

#endif
