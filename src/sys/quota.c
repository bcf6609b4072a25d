/* How much of the CPUs' time the control groups above this process let it have: a container's CPU
 * limit. Helpers beyond that use up in a few milliseconds what is meant for a tenth of a second;
 * then the kernel stops all threads of the group until that is over.
 *
 * Read when it is wanted, and not kept: it is asked for before 128 MiB and more are populated.
 * Sources: the kernel's admin-guide/cgroup-v2 (cpu.max) and scheduler/sched-bwc. */
#include "sys/crew.h"
#include "sys/groups.h"

#include <limits.h>

static uint64_t whole(uint64_t quota, uint64_t period)
{
    return period != 0 ? fl_max(quota / period, 1) : UINT64_MAX;
}

/* "QUOTA PERIOD", or "max PERIOD". */
static uint64_t read_v2(struct fl_group_folder *f)
{
    const char *rest;
    uint64_t quota, period;

    return fl_group_number(f, "/cpu.max", &quota, &rest) && fl_parse_after(rest, "", &period)
               ? whole(quota, period)
               : UINT64_MAX;
}

/* A file each; a quota of -1 is none. */
static uint64_t read_v1(struct fl_group_folder *f)
{
    uint64_t quota, period;

    return fl_group_number(f, "/cpu.cfs_quota_us", &quota, NULL) &&
                   fl_group_number(f, "/cpu.cfs_period_us", &period, NULL)
               ? whole(quota, period)
               : UINT64_MAX;
}

unsigned fl_crew_quota(void)
{
    static const struct fl_group_kind kinds[] = {
        {"/sys/fs/cgroup", {"\n0::"}, read_v2},
        {"/sys/fs/cgroup/cpu", {":cpu:", ":cpu,cpuacct:", ":cpuacct,cpu:"}, read_v1},
    };
    uint64_t n = fl_groups_least(kinds, sizeof kinds / sizeof kinds[0]);

    return (unsigned)fl_min(fl_max(n, 1), UINT_MAX);
}
