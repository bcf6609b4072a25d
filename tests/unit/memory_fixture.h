/* Looks at the memory that may be taken, of the fake kernel. */
#ifndef FL_TESTS_UNIT_MEMORY_FIXTURE_H
#define FL_TESTS_UNIT_MEMORY_FIXTURE_H

#include "core/core.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#define GIB(n) ((uint64_t)(n) << 30)

/* A control group, of version 2 and of version 1: its path, ending in a slash, limit and use. */
#define GROUP_V2(path, limit, used)                                                                \
    (fake_file("/sys/fs/cgroup/" path "memory.max", limit),                                        \
     fake_file("/sys/fs/cgroup/" path "memory.current", used))
#define GROUP_V1(path, limit, used)                                                                \
    (fake_file("/sys/fs/cgroup/memory/" path "memory.limit_in_bytes", limit),                      \
     fake_file("/sys/fs/cgroup/memory/" path "memory.usage_in_bytes", used))

static struct fl_memory_scratch scratch;

static void each(void)
{
    fake_install();
    scratch = (struct fl_memory_scratch){.ranks = 0};
}

/* By what was found, where that may be. */
static struct fl_memory look_again(void)
{
    struct fl_memory m;

    fl_memory_look(&m, &scratch);
    return m;
}

static struct fl_memory look(void)
{
    scratch.looks = 0;
    return look_again();
}

#endif
