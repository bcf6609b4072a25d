/* Shared by the files of numa/ alone. */
#ifndef FL_NUMA_INTERNAL_H
#define FL_NUMA_INTERNAL_H

#include "numa/numa.h"

static inline uint64_t fl_numa_bit(unsigned node)
{
    fl_assert(node < FL_NODES);
    return (uint64_t)1 << node;
}

/* Of a set that is not empty. */
static inline unsigned fl_numa_lowest(uint64_t set)
{
    fl_assert(set != 0);
    return (unsigned)__builtin_ctzll(set);
}

static inline bool fl_numa_is_single(uint64_t set)
{
    return (set & (set - 1)) == 0;
}

/* The bits of a list such as "0-3,8", those below `bits`. False where it is no list; then those
 * before the mistake. */
bool fl_numa_list(const char *list, uint64_t word[], uint64_t bits);

#endif
