/* How much memory may still be taken, and held: the machine, the memory cgroups above this process, its limits.
 *
 * Sources: proc(5) meminfo; cgroups(7); kernel docs cgroup-v2 memory.max, cgroup-v1 memory.limit_in_bytes. */
#include "core/core.h"

#include <string.h>
#include <sys/resource.h>

/* Reads `file` of the folder in s->folder into s->text. */
static int read_below(struct fl_memory_scratch *s, const char *file)
{
    struct fl_text t = fl_text_on(s->path, sizeof s->path);

    fl_text_str(&t, s->folder);
    fl_text_str(&t, file);
    return fl_sys.read_file(s->path, s->text, sizeof s->text);
}

static bool read_number(struct fl_memory_scratch *s, const char *file, uint64_t *out)
{
    return read_below(s, file) == 0 && fl_parse_after(s->text, "", out);
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

/* The cgroup of s->folder: its limit, less what is used and cannot be reclaimed at once. "max" does not parse. */
static void bound_by_cgroup(struct fl_memory *m, struct fl_memory_scratch *s,
                            const struct flavour *f)
{
    uint64_t limit, usage, cache = 0;

    if (!read_number(s, f->limit, &limit) || !read_number(s, f->usage, &usage) ||
        limit >= 1ull << 60) {
        return;
    }
    if (read_below(s, "/memory.stat") == 0) {
        (void)fl_parse_after(s->text, f->reclaimable, &cache);
    }
    uint64_t unused = limit > usage ? limit - usage : 0;
    m->unused = unused < m->unused ? unused : m->unused;
    usage -= cache < usage ? cache : usage;
    bound(m, limit, limit > usage ? limit - usage : 0);
    m->bounded = true;
}

/* The process's own cgroup, and all above it up to the mount. `line` begins with its path. */
static void bound_upwards(struct fl_memory *m, struct fl_memory_scratch *s, const struct flavour *f,
                          const char *line)
{
    struct fl_text t = fl_text_on(s->folder, sizeof s->folder);
    size_t mount_len = strlen(f->mount);

    fl_text_str(&t, f->mount);
    for (; *line != '\n' && *line != '\0'; line++) {
        fl_text_str(&t, (char[2]){*line, '\0'});
    }
    for (;;) {
        bound_by_cgroup(m, s, f);
        char *slash = strrchr(s->folder, '/');
        if (slash == NULL || (size_t)(slash - s->folder) < mount_len) {
            return;
        }
        *slash = '\0';
    }
}

/* The path in the line of /proc/self/cgroup that is about memory: v2's "0::", v1's whose controllers name it. */
static const char *find_path(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);

    return at != NULL ? at + strlen(mark) : NULL;
}

static void bound_by_cgroups(struct fl_memory *m, struct fl_memory_scratch *s)
{
    static const char own[] = "/proc/self/cgroup";

    if (fl_sys.read_file(own, s->text, sizeof s->text) == 0) {
        const char *path =
            strncmp(s->text, "0::", 3) == 0 ? s->text + 3 : find_path(s->text, "\n0::");
        if (path != NULL) {
            bound_upwards(m, s, &v2, path);
        }
    }
    if (fl_sys.read_file(own, s->text, sizeof s->text) ==
        0) { /* again: the first way used the text up */
        const char *path = find_path(s->text, ":memory:");
        path = path != NULL ? path : find_path(s->text, ",memory:");
        if (path != NULL) {
            bound_upwards(m, s, &v1, path);
        }
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

void fl_memory_look(struct fl_memory *m, struct fl_memory_scratch *s)
{
    uint64_t available_kib, total_kib, commit_kib;

    *m = (struct fl_memory){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, false};
    bound_by_cgroups(m, s);
    bound_kept(m, fl_sys.limit(RLIMIT_AS));
    bound_kept(m, fl_sys.limit(RLIMIT_DATA));
    bool strict =
        fl_sys.read_file("/proc/sys/vm/overcommit_memory", s->text, sizeof s->text) == 0 &&
        s->text[0] == '2';
    if (fl_sys.read_file("/proc/meminfo", s->text, sizeof s->text) != 0) {
        return;
    }
    if (fl_parse_after(s->text, "MemAvailable:", &available_kib) &&
        fl_parse_after(s->text, "MemTotal:", &total_kib)) {
        bound(m, total_kib * 1024, available_kib * 1024);
    }
    if (strict && fl_parse_after(s->text, "CommitLimit:", &commit_kib)) {
        bound_kept(m, commit_kib * 1024);
    }
}
