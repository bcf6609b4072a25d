/* What the launch said: the kernel's policy of a thread, its cpuset, its CPUs; and what
 * FAULTLESS_NUMA says. */
#include "numa/internal.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>

/* What Debian 12's header lacks. */
#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6 /* Linux 6.9 */
#endif
#ifndef MPOL_F_STATIC_NODES
#define MPOL_F_STATIC_NODES (1 << 15)
#endif
#ifndef MPOL_F_RELATIVE_NODES
#define MPOL_F_RELATIVE_NODES (1 << 14)
#endif

static bool has(const struct fl_node_ids *ids, unsigned id)
{
    return (ids->word[id / 64] >> (id % 64) & 1) != 0;
}

/* Number i is the i-th of the nodes allowed, and past the last it begins anew. */
static uint64_t relative_to(const struct fl_node_ids *ids, uint64_t allowed)
{
    unsigned n = (unsigned)__builtin_popcountll(allowed);
    uint64_t set = 0;

    fl_assert(n != 0);
    for (unsigned id = 0; id < FL_NODE_IDS; id++) {
        uint64_t rest = allowed;
        if (!has(ids, id)) {
            continue;
        }
        for (unsigned i = id % n; i > 0; i--) {
            rest &= rest - 1;
        }
        set |= rest & -rest;
    }
    return set;
}

int fl_policy_read(const struct fl_topology *t, uint64_t allowed, struct fl_policy *out)
{
    enum { FLAGS = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING };
    static const enum fl_policy_mode modes[] = {
        [MPOL_DEFAULT] = FL_POLICY_DEFAULT,
        [MPOL_PREFERRED] = FL_POLICY_PREFERRED,
        [MPOL_BIND] = FL_POLICY_BIND,
        [MPOL_INTERLEAVE] = FL_POLICY_INTERLEAVE,
        [MPOL_LOCAL] = FL_POLICY_LOCAL,
        [MPOL_PREFERRED_MANY] = FL_POLICY_PREFERRED_MANY,
        [MPOL_WEIGHTED_INTERLEAVE] = FL_POLICY_WEIGHTED,
    };
    struct fl_node_ids ids;
    int mode;
    int rc = fl_nodes.policy(&mode, &ids);

    *out = (struct fl_policy){FL_POLICY_DEFAULT, 0};
    if (rc != 0) {
        return rc;
    }
    unsigned plain = (unsigned)mode & ~(unsigned)FLAGS;
    if (plain >= sizeof modes / sizeof modes[0]) {
        return -EINVAL;
    }
    out->mode = modes[plain];
    if (out->mode == FL_POLICY_DEFAULT || out->mode == FL_POLICY_LOCAL) {
        return 0;
    }
    out->nodes =
        (mode & MPOL_F_RELATIVE_NODES) != 0 ? relative_to(&ids, allowed) : fl_topology_set(t, &ids);
    if (out->mode == FL_POLICY_PREFERRED && out->nodes == 0) { /* what "local" was before 5.14 */
        out->mode = FL_POLICY_LOCAL;
    }
    return 0;
}

uint64_t fl_cpuset_read(const struct fl_topology *t, struct fl_numa_scratch *s)
{
    static const char key[] = "\nMems_allowed_list:\t";
    struct fl_node_ids ids;
    int rc = fl_nodes.allowed(&ids);

    if (rc != 0 && fl_sys.read_file("/proc/thread-self/status", s->text, sizeof s->text) == 0) {
        const char *list = strstr(s->text, key);
        (void)fl_numa_list(list != NULL ? list + sizeof key - 1 : "", ids.word, FL_NODE_IDS);
        rc = 0;
    }
    uint64_t set = rc == 0 ? fl_topology_set(t, &ids) & t->memory : 0;
    fl_assert((set & ~t->memory) == 0);
    return set != 0 ? set : t->memory;
}

uint64_t fl_affinity_read(const struct fl_topology *t, const char *root, struct fl_numa_scratch *s)
{
    uint64_t set = 0;

    if (fl_nodes.cpus(&s->own) != 0) {
        return t->cpus;
    }
    for (unsigned i = 0; i < t->count; i++) {
        bool may = false;
        if ((t->cpus >> i & 1) == 0 || !fl_topology_cpus(t, i, root, s, &s->node)) {
            continue;
        }
        for (size_t w = 0; w < FL_CPU_IDS / 64; w++) {
            may |= (s->own.word[w] & s->node.word[w]) != 0;
        }
        set |= (uint64_t)may << i;
    }
    return set != 0 ? set : t->cpus;
}

bool fl_numa_choice_read(const struct fl_topology *t, const struct fl_options *o,
                         struct fl_numa_choice *out)
{
    const char *list = o->text[FL_OPTION_numa];
    struct fl_node_ids ids;

    *out = (struct fl_numa_choice){(enum fl_numa)o->value[FL_OPTION_numa], 0};
    if ((o->value[FL_OPTION_disable] & FL_DISABLE_NUMA) != 0) {
        out->mode = FL_NUMA_OFF;
    }
    if (list == NULL || (out->mode != FL_NUMA_BIND && out->mode != FL_NUMA_INTERLEAVE)) {
        return true;
    }
    if (strcmp(list, "all") == 0) {
        out->nodes = t->memory;
        return true;
    }
    (void)fl_numa_list(list, ids.word, FL_NODE_IDS);
    out->nodes = fl_topology_set(t, &ids) & t->memory;
    if (out->nodes == 0) {
        out->mode = FL_NUMA_AUTO;
    }
    return out->nodes != 0;
}
