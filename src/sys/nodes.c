/* Memory policies, CPUs and the nodes of pages, by raw system calls.
 *
 * libnuma has no part in the library: its constructor allocates, before us where it is loaded
 * first, and exits where it does not like /proc; every call of it may allocate. Sources:
 * get_mempolicy(2), mbind(2), move_pages(2); kernel docs admin-guide/mm/numa_memory_policy;
 * mm/mempolicy.c get_nodes, which takes one from the length of a mask. */
#include "sys/internal.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(sizeof(long) == sizeof(uint64_t), "the kernel's masks are arrays of long");

static const unsigned long mask_bits = FL_NODE_IDS + 1;

static int linux_policy(int *out_mode, struct fl_node_ids *out)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_get_mempolicy, out_mode, out->word, mask_bits, NULL, 0);
}

static int linux_allowed(struct fl_node_ids *out)
{
    int mode; /* not written: the man page has it NULL, some sandboxes do not */

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_get_mempolicy, &mode, out->word, mask_bits, NULL, MPOL_F_MEMS_ALLOWED);
}

static int linux_here(unsigned *out_id)
{
    return fl_linux_getcpu(out_id);
}

static int linux_cpus(struct fl_cpu_ids *out)
{
    memset(out, 0, sizeof *out); /* the kernel writes as much as it has */
    long n = fl_call(SYS_sched_getaffinity, 0, sizeof out->word, out->word);
    return n > 0 ? 0 : (int)n;
}

/* A mask without nodes is told as none: with MPOL_DEFAULT and MPOL_LOCAL the kernel wants it so. */
static const uint64_t *mask_of(const struct fl_node_ids *ids)
{
    for (size_t i = 0; ids != NULL && i < sizeof ids->word / sizeof ids->word[0]; i++) {
        if (ids->word[i] != 0) {
            return ids->word;
        }
    }
    return NULL;
}

static int linux_set_policy(int mode, const struct fl_node_ids *ids)
{
    const uint64_t *mask = mask_of(ids);

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_set_mempolicy, mode, mask, mask != NULL ? mask_bits : 0);
}

static int linux_set_cpus(const struct fl_cpu_ids *cpus)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_sched_setaffinity, 0, sizeof cpus->word, cpus->word);
}

static int linux_bind(struct fl_range r, int mode, const struct fl_node_ids *ids)
{
    const uint64_t *mask = mask_of(ids);

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_mbind, r.base, r.len, mode, mask, mask != NULL ? mask_bits : 0, 0);
}

static int linux_where(size_t n, const uintptr_t addr[], int out_id[])
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_move_pages, 0, n, addr, NULL, out_id, 0);
}

#define LINUX_NODES                                                                                \
    {                                                                                              \
        .policy = linux_policy, .allowed = linux_allowed, .here = linux_here, .cpus = linux_cpus,  \
        .set_policy = linux_set_policy, .set_cpus = linux_set_cpus, .bind = linux_bind,            \
        .where = linux_where                                                                       \
    }

const struct fl_nodes_sys fl_nodes_linux = LINUX_NODES;
struct fl_nodes_sys fl_nodes = LINUX_NODES;
