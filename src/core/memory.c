/* How much memory may still be taken, and held: the machine, the memory cgroups above this process, its limits.
 *
 * Sources: proc(5) meminfo; cgroups(7); kernel docs cgroup-v2 memory.max, cgroup-v1 memory.limit_in_bytes. */
#include "core/core.h"

#include <string.h>
#include <sys/resource.h>

enum { BUFFER = 4096, PATH = 512 };

static bool read_number(const char *folder, const char *file, uint64_t *out)
{
    char path[PATH], text[64];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, folder);
    fl_text_str(&t, file);
    return fl_sys.read_file(path, text, sizeof text) == 0 && fl_parse_after(text, "", out);
}

struct flavour {
    const char *mount, *limit, *usage, *reclaimable;
};
static const struct flavour v2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                  "\ninactive_file "};
static const struct flavour v1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                  "/memory.usage_in_bytes", "\ntotal_inactive_file "};

/* One bound on memory: the machine, or one cgroup. The least of all counts. */
static void bound(struct fl_memory *m, uint64_t total, uint64_t room)
{
    uint64_t eager = room > total / 2 ? room - total / 2 : 0;

    m->headroom = room < m->headroom ? room : m->headroom;
    m->eager = eager < m->eager ? eager : m->eager;
}

/* One cgroup: its limit, less what is used and cannot be reclaimed at once. "max" does not parse: no limit. */
static void bound_by_cgroup(struct fl_memory *m, const struct flavour *f, const char *folder)
{
    uint64_t limit, usage, cache = 0;
    char text[BUFFER], path[PATH];

    if (!read_number(folder, f->limit, &limit) || !read_number(folder, f->usage, &usage) ||
        limit >= 1ull << 60) {
        return;
    }
    struct fl_text t = fl_text_on(path, sizeof path);
    fl_text_str(&t, folder);
    fl_text_str(&t, "/memory.stat");
    if (fl_sys.read_file(path, text, sizeof text) == 0) {
        (void)fl_parse_after(text, f->reclaimable, &cache);
    }
    usage -= cache < usage ? cache : usage;
    bound(m, limit, limit > usage ? limit - usage : 0);
    m->bounded = true;
}

/* The process's own cgroup, and all above it up to the mount. `line` begins with its path. */
static void bound_upwards(struct fl_memory *m, const struct flavour *f, const char *line)
{
    char folder[PATH];
    struct fl_text t = fl_text_on(folder, sizeof folder);
    size_t mount_len = strlen(f->mount);

    fl_text_str(&t, f->mount);
    for (; *line != '\n' && *line != '\0'; line++) {
        fl_text_str(&t, (char[2]){*line, '\0'});
    }
    for (;;) {
        bound_by_cgroup(m, f, folder);
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < mount_len) {
            return;
        }
        *slash = '\0';
    }
}

static void bound_by_cgroups(struct fl_memory *m)
{
    char text[BUFFER];

    if (fl_sys.read_file("/proc/self/cgroup", text, sizeof text) != 0) {
        return;
    }
    const char *own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (own != NULL) {
        bound_upwards(m, &v2, strstr(own, "::") + 2);
    }
    const char *memory = strstr(text, ":memory:");
    if (memory != NULL) {
        bound_upwards(m, &v1, memory + strlen(":memory:"));
    }
}

/* What counts maps and not pages: an eighth of it may be free memory of ours. */
static void bound_kept(struct fl_memory *m, uint64_t limit)
{
    if (limit != UINT64_MAX) {
        m->keep = limit / 8 < m->keep ? limit / 8 : m->keep;
        m->bounded = true;
    }
}

void fl_memory_look(struct fl_memory *m)
{
    char text[BUFFER], mode[8];
    uint64_t available_kib, total_kib, commit_kib;

    *m = (struct fl_memory){UINT64_MAX, UINT64_MAX, UINT64_MAX, false};
    bound_by_cgroups(m);
    bound_kept(m, fl_sys.limit(RLIMIT_AS));
    bound_kept(m, fl_sys.limit(RLIMIT_DATA));
    if (fl_sys.read_file("/proc/meminfo", text, sizeof text) != 0) {
        return;
    }
    if (fl_parse_after(text, "MemAvailable:", &available_kib) &&
        fl_parse_after(text, "MemTotal:", &total_kib)) {
        bound(m, total_kib * 1024, available_kib * 1024);
    }
    if (fl_sys.read_file("/proc/sys/vm/overcommit_memory", mode, sizeof mode) == 0 &&
        mode[0] == '2' && fl_parse_after(text, "CommitLimit:", &commit_kib)) {
        bound_kept(m, commit_kib * 1024);
    }
}
