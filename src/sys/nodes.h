/* Where memory lies and is to lie. Included by sys.h. */
#ifndef FL_SYS_NODES_H
#define FL_SYS_NODES_H

#include "base/base.h"

/* Nodes by the kernel's numbers, and CPUs by theirs: bit i of word i / 64. No Linux has more nodes
 * (CONFIG_NODES_SHIFT is 10 at most), and get_mempolicy(2) refuses a mask that is shorter than the
 * kernel's own; x86 has at most so many CPUs. */
enum { FL_NODE_IDS = 1024, FL_CPU_IDS = 8192 };
struct fl_node_ids {
    uint64_t word[FL_NODE_IDS / 64];
};
struct fl_cpu_ids {
    uint64_t word[FL_CPU_IDS / 64];
};

/* Beside fl_sys; the same contract, and all but `here` and `cpus` answer -EPERM where
 * fl_sys_is_confined. -ENOSYS: a kernel without NUMA; -EPERM: a sandbox. `mode`: a number MPOL_...
 * of <linux/mempolicy.h>, with flags. */
struct fl_nodes_sys {
    /* The calling thread's own policy; numactl(8) and set_mempolicy(2) write it.
     * get_mempolicy(2). */
    int (*policy)(int *out_mode, struct fl_node_ids *out);
    /* The nodes that the cpuset leaves the calling thread. get_mempolicy(2), Linux 2.6.24. */
    int (*allowed)(struct fl_node_ids *out);
    /* The node of the CPU that this runs on. getcpu(2), which is no system call on x86. */
    int (*here)(unsigned *out_id);
    /* The CPUs that the calling thread may run on. sched_getaffinity(2). */
    int (*cpus)(struct fl_cpu_ids *out);
    /* Both for threads of our own: from now on the calling thread's pages come from there; it runs
     * there. */
    int (*set_policy)(int mode, const struct fl_node_ids *ids);
    int (*set_cpus)(const struct fl_cpu_ids *cpus);
    /* Pages that the kernel brings into `r` from now on, whichever thread touches them. mbind(2);
     * `r` is mapped whole, or -EFAULT. */
    int (*bind)(struct fl_range r, int mode, const struct fl_node_ids *ids);
    /* The node of each page, or -ENOENT where none is: move_pages(2), which moves nothing then. */
    int (*where)(size_t n, const uintptr_t addr[], int out_id[]);
};

extern struct fl_nodes_sys fl_nodes;
extern const struct fl_nodes_sys fl_nodes_linux;

#endif
