/* The nodes of the machine, as the kernel has them, and where pages lie, as move_pages(2) says. For
 * victims too: nothing here allocates. A failure of what must work ends the process. */
#ifndef FAULTLESS_TESTS_VM_NODES_H
#define FAULTLESS_TESTS_VM_NODES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

enum { NODES_MOST = 8, NODES_TEXT = 256 };

struct nodes {
    int n; /* online nodes are 0 .. n - 1: kernels number what they find without gaps */
    bool has_memory[NODES_MOST];
    bool has_cpu[NODES_MOST];
    cpu_set_t cpus[NODES_MOST];
    int last_cpu[NODES_MOST]; /* -1: has none */
    int distance[NODES_MOST][NODES_MOST];
};

/* Modes of set_mempolicy(2), by the kernel's numbers. */
enum { POLICY_DEFAULT, POLICY_PREFERRED, POLICY_BIND, POLICY_INTERLEAVE, POLICY_WEIGHTED = 6 };

struct census {
    long on[NODES_MOST]; /* base pages */
    long nowhere;        /* those not touched yet, and the kernel's page of zeroes */
};

void nodes_read(struct nodes *nodes);
/* First and last node with CPUs; last with memory. */
int nodes_first_cpu(const struct nodes *nodes);
int nodes_last_cpu(const struct nodes *nodes);
int nodes_last_memory(const struct nodes *nodes);
/* The calling thread runs on the node's CPUs from now on. */
void nodes_run_on(const struct nodes *nodes, int node);
/* The calling thread's policy. False: the kernel has no such mode. */
bool nodes_policy(int mode, unsigned long mask);
/* The same for a range. */
bool nodes_policy_of(void *base, size_t len, int mode, unsigned long mask);
/* Adds the base pages of the range. */
void nodes_count(struct census *c, const void *base, size_t len);
/* "LABEL: node0 N node1 N ... nowhere N" on stdout. */
void nodes_print(const struct nodes *nodes, const char *label, const struct census *c);
/* Memory of the node that nothing uses, in MiB. */
long nodes_free_mib(int node);
/* The number behind `key` in the file; -1 when there is none. */
long nodes_number(const char *path, const char *key);

#endif
