/* One process's view: read at the start, kept fresh by the worker, asked by each thread that
 * populates. */
#include "numa/internal.h"

#include <errno.h>
#include <stdatomic.h>

static const char *const mode_words[] = {
    [FL_NUMA_AUTO] = "auto",
    [FL_NUMA_OFF] = "off",
    [FL_NUMA_FIRST_TOUCH] = "first-touch",
    [FL_NUMA_LOCAL] = "local",
    [FL_NUMA_INTERLEAVE] = "interleave",
    [FL_NUMA_BIND] = "bind",
    [FL_NUMA_BALANCE] = "balance",
};
static const char *const policy_words[] = {
    [FL_POLICY_DEFAULT] = "default",
    [FL_POLICY_LOCAL] = "local",
    [FL_POLICY_PREFERRED] = "preferred",
    [FL_POLICY_PREFERRED_MANY] = "preferred-many",
    [FL_POLICY_BIND] = "bind",
    [FL_POLICY_INTERLEAVE] = "interleave",
    [FL_POLICY_WEIGHTED] = "weighted-interleave",
};

static void complain(const struct fl_options *o)
{
    char line[400];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (o->value[FL_OPTION_log] < FL_LOG_WARN) {
        return;
    }
    fl_text_str(&t, "FAULTLESS_NUMA=");
    fl_text_str(&t, mode_words[o->value[FL_OPTION_numa]]);
    fl_text_str(&t, ":");
    fl_text_str(&t, o->text[FL_OPTION_numa]);
    fl_text_str(&t, " names no node that has memory; using auto");
    fl_say(line);
}

void fl_numa_start(struct fl_numa_process *n, const struct fl_options *o, const char *root)
{
    struct fl_topology *t = &n->topology;

    n->root = root;
    fl_topology_read(t, root, &n->scratch);
    if (!fl_numa_choice_read(t, o, &n->choice)) {
        complain(o);
    }
    fl_assert(t->count >= 1 && t->count <= FL_NODES && t->memory != 0 && t->cpus != 0);
    n->launch = (struct fl_policy){FL_POLICY_DEFAULT, 0};
    n->cpus = t->cpus;
    atomic_store_explicit(&n->allowed, t->memory, memory_order_relaxed);
    n->mute = false;
    n->active = n->choice.mode != FL_NUMA_OFF && !fl_numa_is_single(t->memory);
    if (!n->active) {
        return;
    }
    n->cpus = fl_affinity_read(t, root, &n->scratch);
    uint64_t allowed = fl_cpuset_read(t, &n->scratch);
    fl_assert(allowed != 0 && (allowed & ~t->memory) == 0);
    atomic_store_explicit(&n->allowed, allowed, memory_order_relaxed);
    int rc = fl_policy_read(t, allowed, &n->launch);
    n->mute = rc != 0 && rc != -EINVAL;
}

bool fl_numa_refresh(struct fl_numa_process *n)
{
    uint64_t before = atomic_load_explicit(&n->allowed, memory_order_relaxed);
    uint64_t now = n->active ? fl_cpuset_read(&n->topology, &n->scratch) : before;

    fl_assert(now != 0);
    atomic_store_explicit(&n->allowed, now, memory_order_relaxed);
    return now != before;
}

void fl_numa_view(const struct fl_numa_process *n, struct fl_numa_view *out)
{
    *out = (struct fl_numa_view){
        .topology = &n->topology,
        .choice = n->choice,
        .policy = n->launch,
        .allowed = atomic_load_explicit(&n->allowed, memory_order_relaxed),
        .cpus = n->cpus,
        .huge = fl_page.huge,
    };
}

void fl_numa_place(struct fl_numa_process *n, struct fl_numa_request *q, struct fl_placement *out)
{
    struct fl_numa_view v;
    struct fl_policy own;
    unsigned id;

    fl_numa_view(n, &v);
    q->node = FL_NODES;
    if (n->active) {
        q->node = fl_nodes.here(&id) == 0 ? fl_topology_find(&n->topology, id) : FL_NODES;
        /* -EINVAL: a policy from the future, as good as none. Else a filter has come. */
        int rc = n->mute ? -EPERM : fl_policy_read(&n->topology, v.allowed, &own);
        if (rc == 0 || rc == -EINVAL) {
            v.policy = own;
        }
    }
    fl_numa_decide(&v, q, out);
}

/* "0-2,5", by the kernel's numbers. */
static void text_set(const struct fl_topology *t, uint64_t set, struct fl_text *out)
{
    const char *comma = "";

    for (unsigned i = 0; i < t->count; i++) {
        unsigned last = i;
        if ((set >> i & 1) == 0) {
            continue;
        }
        while (last + 1 < t->count && (set >> (last + 1) & 1) != 0 &&
               t->id[last + 1] == t->id[last] + 1) {
            last++;
        }
        fl_text_str(out, comma);
        fl_text_u64(out, t->id[i]);
        if (last != i) {
            fl_text_str(out, "-");
            fl_text_u64(out, t->id[last]);
        }
        comma = ",";
        i = last;
    }
}

static void text_part(const struct fl_topology *t, const char *word, uint64_t set,
                      struct fl_text *out)
{
    fl_text_str(out, word);
    if (set != 0) {
        fl_text_str(out, " ");
        text_set(t, set, out);
    }
}

void fl_numa_describe(const struct fl_numa_process *n, struct fl_text *out)
{
    const struct fl_topology *t = &n->topology;
    uint64_t known = UINT64_MAX >> (FL_NODES - t->count);
    uint64_t allowed = atomic_load_explicit(&n->allowed, memory_order_relaxed);

    text_part(t, "nodes", known, out);
    if (t->memory != known) {
        text_part(t, " (memory on", t->memory, out);
        fl_text_str(out, ")");
    }
    if (allowed != t->memory) {
        text_part(t, ", cpuset", allowed, out);
    }
    if (n->active) {
        fl_text_str(out, ", launch ");
        text_part(t, policy_words[n->launch.mode], n->launch.nodes, out);
        text_part(t, ", CPUs of", n->cpus, out);
    }
    fl_text_str(out, ", placing ");
    text_part(t, n->active ? mode_words[n->choice.mode] : "nothing",
              n->active ? n->choice.nodes : 0, out);
}
