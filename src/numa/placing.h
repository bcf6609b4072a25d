/* Zones: where the memory behind addresses comes from. Included by numa.h.
 *
 * Addresses are divided by where the memory behind them comes from, so that no extent has to
 * know where each page of it lies, and what is free of one node is found without a look at
 * others. A zone is a number; on a machine with one node there is one, 0, and nothing is asked
 * of the kernel. Else, with N nodes: i is node i's; N + i what programs touched, all of it on node
 * i; 2 N what they touch, or touched on several; then pages in turns over nodes (FL_SPREADS such
 * sets); the last: addresses that are no zone's yet. */
#ifndef FL_NUMA_PLACING_H
#define FL_NUMA_PLACING_H

#include "core/core.h"

enum { FL_ZONE_NODES = 64, FL_SPREADS = 4, FL_ZONES = 2 * FL_ZONE_NODES + 2 + FL_SPREADS };

/* What a request may get, best first. */
struct fl_zonelist {
    uint8_t n;
    uint8_t zone[FL_ZONE_NODES]; /* the next where there is no room in the one before */
    bool on_touch;               /* unpopulated, unless `touched` has it */
    bool strict;                 /* nothing else: refused where none of them has room */
    uint8_t touched;             /* with on_touch: populated memory of this zone does */
};

/* Plugged in by runtime/ where there are several nodes, before the first request. */
struct fl_placing {
    unsigned nodes;     /* at most FL_ZONE_NODES; 0: one node, and none of these is called */
    size_t alike_below; /* bytes: shorter requests of a thread at one site have one zone */
    /* For the calling thread. No lock held; signal-safe. */
    void (*zonelist)(size_t len, struct fl_zonelist *out);
    /* The zone of the kernel's node of that number; `nodes` or more: it is none that is known. */
    unsigned (*zone_of)(int node);
    /* And back: the kernel's number of a node. */
    int (*number_of)(unsigned node);
    /* `range` was mapped for that zone: what the kernel brings in there, and that it lets it
     * lie. Any lock may be held. */
    void (*mapped)(struct fl_range range, unsigned zone);
    /* `range` was mapped for descriptors of ours. Any lock may be held. */
    void (*mapped_own)(struct fl_range range);
    /* May so many bytes come into memory in that zone? Lock: region. */
    bool (*has_room)(unsigned zone, size_t bytes);
    /* Ahead of that question by the worker, which asks the kernel nothing with the lock held. By
     * other threads it does nothing. The region's lock is not held. */
    void (*look)(unsigned zone);
    /* The node that all of `range` lies on; `nodes`: on several. */
    unsigned (*found)(struct fl_range range);
    bool follows; /* a plan's arena follows its thread: another one is taken */
    /* The node of a thread of the program's; `nodes`: not known. The worker. */
    unsigned (*runs_on)(int tid);
    /* The worker fills that zone from here on; and no more. */
    void (*fill_begin)(unsigned zone);
    void (*fill_end)(void);
};

/* The class of what programs touch, and of what they touched on several nodes. */
static inline unsigned fl_placing_touch(const struct fl_placing *p)
{
    return 2 * p->nodes;
}

/* Does all its memory come from one node? Then it may move within the class. */
static inline bool fl_placing_moves(const struct fl_placing *p, unsigned zone)
{
    return zone < fl_max(p->nodes, 1);
}

/* Whose addresses they are once nothing is behind them. */
static inline unsigned fl_placing_when_empty(const struct fl_placing *p, unsigned zone)
{
    return zone >= p->nodes && zone < fl_placing_touch(p) ? fl_placing_touch(p) : zone;
}

#endif
