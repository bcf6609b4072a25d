/* Limits that the control groups above this process set: the least of the group's own and of those
 * above it.
 *
 * State: one set of buffers, for stacks may be small; one thread at a time has it. Sources:
 * cgroups(7), the kernel's admin-guide/cgroup-v2. */
#ifndef FL_SYS_GROUPS_H
#define FL_SYS_GROUPS_H

#include "sys/sys.h"

struct fl_group_folder;

/* One of the two versions, and where its controller is. */
struct fl_group_kind {
    const char *mount, *mark[4]; /* what is before the group's path in its line */
    /* What one folder says; UINT64_MAX: it sets no limit. */
    uint64_t (*read)(struct fl_group_folder *f);
};

/* The number at the start of that file of the folder. False: there is none, or no such file.
 *   *out_rest   what is behind it, until the next call; may be NULL. */
bool fl_group_number(struct fl_group_folder *f, const char *file, uint64_t *out,
                     const char **out_rest);

/* The least that any folder says; 0 when another thread is at it. Threads: any; no lock of ours
 * held.  Signals: safe.  Cost: some small files, 30 us and more. */
uint64_t fl_groups_least(const struct fl_group_kind *kinds, size_t n);

void fl_groups_fork_child(void);

#endif
