/* The decision for one request: pure functions of what topology.c and policy.c read. */
#include "numa/internal.h"

#include <linux/mempolicy.h>

#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6
#endif

/* What is in both; what nothing is in does not count. */
static uint64_t narrowed(uint64_t may, uint64_t to)
{
    return (may & to) != 0 ? may & to : may;
}

/* Where memory may lie at all. */
static uint64_t permitted(const struct fl_numa_view *v)
{
    uint64_t may = narrowed(v->topology->memory, v->allowed);

    if (v->policy.mode == FL_POLICY_BIND) {
        may = narrowed(may, v->policy.nodes);
    }
    return v->choice.mode == FL_NUMA_BIND ? narrowed(may, v->choice.nodes) : may;
}

/* The nodes of `set` that are nearest to one of those with CPUs. */
static uint64_t next_to(const struct fl_topology *t, uint64_t cpus, uint64_t set)
{
    uint64_t found = 0;

    for (; cpus != 0; cpus &= cpus - 1) {
        found |= fl_numa_bit(fl_topology_nearest(t, fl_numa_lowest(cpus), set));
    }
    return found;
}

static void on_node(struct fl_placement *out, unsigned from)
{
    out->kind = FL_PLACE_NODE;
    out->from = (uint8_t)from;
}

static void on_touch(struct fl_placement *out, const struct fl_numa_request *q)
{
    out->kind = FL_PLACE_TOUCH;
    out->served = q->served;
}

/* In turns over `set`, of which there is one at least; over one node it is that node. */
static void spread(struct fl_placement *out, uint64_t set, size_t chunk)
{
    fl_assert(set != 0);
    out->prefer = set;
    if (fl_numa_is_single(set)) {
        on_node(out, fl_numa_lowest(set));
        return;
    }
    out->kind = FL_PLACE_SPREAD;
    out->from = (uint8_t)fl_numa_lowest(set);
    out->chunk = chunk;
}

/* It is not said which of the nodes of out->prefer. */
static void by_size(const struct fl_numa_view *v, const struct fl_numa_request *q, unsigned from,
                    struct fl_placement *out)
{
    uint64_t touchers = v->cpus | fl_numa_bit(from);
    uint64_t seen = q->piece_nodes & out->prefer;

    if (q->len < FL_NUMA_LARGE || fl_numa_is_single(next_to(v->topology, touchers, out->prefer))) {
        on_node(out, from);
    } else if (q->served || q->piece == 0 || seen == 0) {
        on_touch(out, q);
    } else {
        spread(out, seen, q->piece);
        out->from_start = out->kind == FL_PLACE_SPREAD;
        if (q->piece_first < FL_NODES && (seen >> q->piece_first & 1) != 0) {
            out->from = (uint8_t)q->piece_first;
        }
    }
}

static void by_policy(const struct fl_numa_view *v, const struct fl_numa_request *q, unsigned from,
                      struct fl_placement *out)
{
    uint64_t named = v->policy.nodes & out->nodes;

    switch (v->policy.mode) {
    case FL_POLICY_PREFERRED:
        if (v->policy.nodes != 0) {
            on_node(out, fl_numa_lowest(v->policy.nodes));
            return;
        }
        break;
    case FL_POLICY_INTERLEAVE:
    case FL_POLICY_WEIGHTED:
        if (named != 0) {
            spread(out, named, v->huge);
            out->weighted = v->policy.mode == FL_POLICY_WEIGHTED && out->kind == FL_PLACE_SPREAD;
            return;
        }
        break;
    case FL_POLICY_PREFERRED_MANY:
        out->prefer = narrowed(out->nodes, named);
        break;
    case FL_POLICY_DEFAULT:
    case FL_POLICY_LOCAL:
    case FL_POLICY_BIND:
        break;
    }
    by_size(v, q, from, out);
}

/* Nodes that take turns when FAULTLESS_NUMA=interleave. */
static uint64_t chosen_turns(const struct fl_numa_view *v, uint64_t may)
{
    return v->choice.nodes != 0 ? narrowed(may, v->choice.nodes)
                                : next_to(v->topology, v->topology->cpus, may);
}

void fl_numa_decide(const struct fl_numa_view *v, const struct fl_numa_request *q,
                    struct fl_placement *out)
{
    const struct fl_topology *t = v->topology;

    *out = (struct fl_placement){.kind = FL_PLACE_ANYWHERE};
    if (v->choice.mode == FL_NUMA_OFF || fl_numa_is_single(t->memory)) {
        return;
    }
    unsigned from = q->node < t->count ? q->node : fl_numa_lowest(v->cpus);
    out->nodes = out->prefer = permitted(v);
    out->strict = out->nodes != t->memory;
    fl_assert(out->nodes != 0 && (out->nodes & ~t->memory) == 0);
    switch (v->choice.mode) {
    case FL_NUMA_LOCAL:
        on_node(out, from);
        break;
    case FL_NUMA_FIRST_TOUCH:
        if (q->len < v->huge || fl_numa_is_single(out->nodes)) {
            on_node(out, from);
        } else {
            on_touch(out, q);
        }
        break;
    case FL_NUMA_INTERLEAVE:
        spread(out, chosen_turns(v, out->nodes), v->huge);
        break;
    case FL_NUMA_AUTO:
    case FL_NUMA_BIND:
    case FL_NUMA_BALANCE:
    case FL_NUMA_OFF:
        by_policy(v, q, from, out);
        break;
    }
    fl_assert(out->prefer != 0 && (out->prefer & ~out->nodes) == 0);
}

/* Whose turn the chunk is: the nodes of `prefer` upward from `from`, after the last the first. */
static unsigned turn(const struct fl_topology *t, const struct fl_placement *p, uintptr_t at)
{
    uint64_t before = fl_numa_bit(p->from) - 1;
    uint64_t part[2] = {p->prefer & ~before, p->prefer & before};
    unsigned round = 0;

    fl_assert(p->chunk != 0 && p->prefer != 0);
    for (uint64_t set = p->prefer; set != 0; set &= set - 1) {
        round += p->weighted ? t->weight[fl_numa_lowest(set)] : 1;
    }
    unsigned left = (unsigned)(at / p->chunk % fl_max(round, 1));
    for (int i = 0; i < 2; i++) {
        for (uint64_t set = part[i]; set != 0; set &= set - 1) {
            unsigned own = p->weighted ? t->weight[fl_numa_lowest(set)] : 1;
            if (left < own) {
                return fl_numa_lowest(set);
            }
            left -= own;
        }
    }
    return p->from;
}

unsigned fl_placement_node(const struct fl_topology *t, const struct fl_placement *p, uintptr_t at,
                           unsigned toucher, uint64_t full)
{
    unsigned from = p->from;
    uint64_t left = (p->prefer & ~full) != 0 ? p->prefer & ~full : p->nodes & ~full;

    fl_assert(p->from < FL_NODES && (p->prefer & ~p->nodes) == 0);
    if (p->kind == FL_PLACE_SPREAD) {
        from = turn(t, p, at);
    } else if (p->kind == FL_PLACE_TOUCH && toucher < t->count) {
        from = toucher;
    }
    return left != 0 ? fl_topology_nearest(t, from, left) : FL_NODES;
}

/* What the window's maps say where FAULTLESS_NUMA is not set. */
static int launch_mode(const struct fl_policy *p, uint64_t may, uint64_t *set)
{
    static const int modes[] = {
        [FL_POLICY_DEFAULT] = MPOL_LOCAL,
        [FL_POLICY_LOCAL] = MPOL_LOCAL,
        [FL_POLICY_PREFERRED] = MPOL_PREFERRED,
        [FL_POLICY_PREFERRED_MANY] = MPOL_PREFERRED_MANY,
        [FL_POLICY_BIND] = MPOL_BIND,
        [FL_POLICY_INTERLEAVE] = MPOL_INTERLEAVE,
        [FL_POLICY_WEIGHTED] = MPOL_WEIGHTED_INTERLEAVE,
    };

    *set = p->nodes & may;
    return *set != 0 ? modes[p->mode] : MPOL_LOCAL;
}

bool fl_numa_window(const struct fl_numa_view *v, int *out_mode, struct fl_node_ids *out)
{
    const struct fl_topology *t = v->topology;
    uint64_t may = permitted(v), set = may;
    /* Bound by the launch or by FAULTLESS_NUMA: the kernel must not go elsewhere. */
    bool bound = v->policy.mode == FL_POLICY_BIND || v->choice.mode == FL_NUMA_BIND;

    *out_mode = MPOL_DEFAULT;
    if (v->choice.mode == FL_NUMA_OFF || v->choice.mode == FL_NUMA_BALANCE ||
        fl_numa_is_single(t->memory)) {
        return false;
    }
    if (v->choice.mode == FL_NUMA_INTERLEAVE) {
        *out_mode = MPOL_INTERLEAVE;
        set = chosen_turns(v, may);
    } else if (v->choice.mode == FL_NUMA_AUTO) {
        *out_mode = launch_mode(&v->policy, may, &set);
    } else {
        *out_mode = bound ? MPOL_BIND : MPOL_LOCAL;
    }
    fl_topology_ids(t, *out_mode != MPOL_LOCAL ? set : 0, out);
    return true;
}
