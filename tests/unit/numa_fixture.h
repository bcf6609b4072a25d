/* Machines that are drawn, not had: sysfs below "/drawn", and a thread with a node, a policy, a
 * cpuset and CPUs. */
#ifndef FL_TESTS_UNIT_NUMA_FIXTURE_H
#define FL_TESTS_UNIT_NUMA_FIXTURE_H

#include "numa/numa.h"

struct drawn_node {
    int id;
    const char *cpus, *distance; /* NULL: the file is not there */
    unsigned mib, free_mib, file_mib, weight;
};

struct drawn_machine {
    const char *name, *online, *memory, *cpus; /* lists; NULL: the file is not there */
    struct drawn_node node[8];
};

/* one: 4 CPUs.                  two: a node a socket.          four: two sockets of two nodes.
 * snc: two sockets of four.     cxl: two sockets, 0 and 1, with memory on a card each, 2 and 3.
 * gaps: ids 0, 2 and 5.         bare: node 1 has CPUs alone.   half: so has node 1 of two. */
extern const struct drawn_machine drawn_one, drawn_two, drawn_four, drawn_snc, drawn_cxl,
    drawn_gaps, drawn_bare, drawn_half;
extern const struct drawn_machine *const drawn_all[8];

struct drawn_thread {
    int rc; /* what all calls answer, if it is not 0 */
    unsigned here;
    int mode;
    struct fl_node_ids nodes, allowed; /* of the policy; of the cpuset */
    struct fl_cpu_ids cpus;
    const char *status; /* /proc/thread-self/status; NULL: not there */
    unsigned npolicy;   /* calls of `policy` */
};

extern struct drawn_thread drawn_thread;
extern unsigned drawn_reads; /* files asked for since draw */

/* Puts both tables in place; the thread may run and allocate everywhere, has no policy and is on
 * the first node. */
void draw(const struct drawn_machine *m);
/* The same, read. */
void draw_and_read(const struct drawn_machine *m, struct fl_topology *t);

/* Bits of a list of the kernel's numbers; NULL: none. */
struct fl_node_ids ids_of(const char *list);
/* Nodes of such a list. */
uint64_t set_of(const struct fl_topology *t, const char *list);

#endif
