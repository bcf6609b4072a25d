/* How much of the CPUs' time the control groups above this process let it have: a container's CPU
 * limit. Helpers beyond that use up in a few milliseconds what is meant for a tenth of a second;
 * then the kernel stops all threads of the group until that is over.
 *
 * Read when it is wanted, and not kept: it is asked for before 128 MiB and more are populated.
 * Sources: the kernel's admin-guide/cgroup-v2 (cpu.max) and scheduler/sched-bwc, cgroups(7). */
#include "sys/crew.h"

#include <limits.h>
#include <string.h>

enum { PATH_BYTES = 384, GROUPS_BYTES = 1536 }; /* stacks may be small */

struct folder {
    char path[PATH_BYTES];
    size_t len; /* of its own part; a file's name may follow */
};

/* The number at the start of that file. False: there is none, or no such file. */
static bool read_number(struct folder *f, const char *file, char *text, size_t size, uint64_t *out)
{
    struct fl_text t = fl_text_on(f->path + f->len, sizeof f->path - f->len);

    fl_text_str(&t, file);
    return fl_sys.read_file(f->path, text, size) == 0 && fl_parse_after(text, "", out);
}

/* "QUOTA PERIOD", or "max PERIOD". */
static bool read_v2(struct folder *f, uint64_t *quota, uint64_t *period)
{
    char text[64];
    bool has = read_number(f, "/cpu.max", text, sizeof text, quota);
    const char *space = has ? strchr(text, ' ') : NULL;

    return space != NULL && fl_parse_after(space, "", period);
}

/* A file each; a quota of -1 is none. */
static bool read_v1(struct folder *f, uint64_t *quota, uint64_t *period)
{
    char text[64];

    return read_number(f, "/cpu.cfs_quota_us", text, sizeof text, quota) &&
           read_number(f, "/cpu.cfs_period_us", text, sizeof text, period);
}

static const struct flavour {
    const char *mount, *mark[4]; /* what is before the group's path in its line */
    bool (*read)(struct folder *f, uint64_t *quota, uint64_t *period);
} flavours[] = {
    {"/sys/fs/cgroup", {"\n0::"}, read_v2},
    {"/sys/fs/cgroup/cpu", {":cpu:", ":cpu,cpuacct:", ":cpuacct,cpu:"}, read_v1},
};

/* In a container the path may be the host's: then its upper folders are not there, and the mount is
 * the group. */
static bool find(const struct flavour *v, const char *groups, struct folder *out)
{
    const char *path = NULL;
    size_t have = strlen(v->mount);

    for (size_t i = 0; path == NULL && v->mark[i] != NULL; i++) {
        path = strstr(groups, v->mark[i]);
        path = path != NULL ? path + strlen(v->mark[i]) : NULL;
    }
    size_t len = path != NULL ? strcspn(path, "\n") : 0;
    if (path == NULL || have + len + sizeof "/cpu.cfs_period_us" > sizeof out->path) {
        return false;
    }
    memcpy(out->path, v->mount, have);
    memcpy(out->path + have, path, len);
    out->len = have + len - (out->path[have + len - 1] == '/');
    return true;
}

/* The least of the group's and of those above it. */
static unsigned least(const struct flavour *v, struct folder *f)
{
    uint64_t quota, period, n = UINT_MAX;

    while (f->len >= strlen(v->mount)) {
        if (v->read(f, &quota, &period) && period != 0) {
            n = fl_min(n, fl_max(quota / period, 1));
        }
        while (f->path[--f->len] != '/') {
        }
    }
    return (unsigned)n;
}

unsigned fl_crew_quota(void)
{
    char groups[GROUPS_BYTES] = "\n"; /* so that each line has one before it */
    struct folder f;
    unsigned n = UINT_MAX;

    if (fl_sys.read_file("/proc/self/cgroup", groups + 1, sizeof groups - 1) == 0) {
        for (size_t i = 0; i < sizeof flavours / sizeof flavours[0]; i++) {
            n = find(&flavours[i], groups, &f) ? (unsigned)fl_min(n, least(&flavours[i], &f)) : n;
        }
    }
    return n;
}
