/* What the guests' tests share: victims run under faultless or glibc, and where their pages must
 * lie. */
#ifndef FAULTLESS_TESTS_VM_PLACED_H
#define FAULTLESS_TESTS_VM_PLACED_H

#include "../preload/run.h"
#include "nodes.h"

/* Who serves the victim. */
enum allocator { GLIBC, FAULTLESS };

extern struct nodes vm; /* read by vm_start */

/* First in main. */
void vm_start(void);
/* A long enough run of the victim, which ends well and says nothing on stderr; `env` may be
 * NULL. */
const struct fl_run *vm_run(enum allocator who, const char *const argv[], const char *const env[]);
/* As the line LABEL of its output says, at least so many percent of the pages are on the node. */
void vm_assert_on(const struct fl_run *r, const char *label, int node, double percent);
/* The same for the line "WHAT NODE" of each node that has CPUs. */
void vm_assert_each_on_its_own(const struct fl_run *r, const char *what, double percent);
/* The nodes' shares of the pages are as their weights, each within so many percent of all pages. */
void vm_assert_spread(const struct fl_run *r, const char *label,
                      const int weights[static NODES_MOST], double within);
/* The number behind "WHAT NODE " on stdout. */
long vm_said(const struct fl_run *r, const char *what, int node);
/* The kernel balances, and looks at a thread's memory ten times as often as it would. The other is
 * a cmocka teardown. */
void vm_balance(void);
int vm_stop_balancing(void **state);

#endif
