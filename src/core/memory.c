/* How much memory may still be taken, and held: the machine, the memory cgroups above this process,
 * its limits.
 *
 * Ranks: what may be populated unasked is divided. Each rank may take an N-th of what is left above
 * the half that stays for all: those that look at the same moment do not together take more than
 * there is. And as long as the owner tells what it holds, no more than an N-th of that half in all:
 * a rank that looks often, or comes first, leaves the others theirs. What is used up, and what
 * limits the process alone, is a fact and not divided. Sources: proc(5) meminfo; cgroups(7); kernel
 * docs cgroup-v2 memory.max and memory.high, cgroup-v1 memory.limit_in_bytes. */
#include "core/core.h"

#include <string.h>
#include <sys/resource.h>

enum { LOOKS = 16 };                                       /* between two searches, at most */
static const uint64_t search_after_ns = 1000ull * 1000000; /* since the last one, at most */

static const struct flavour {
    const char *mount, *limit, *high, *usage, *reclaimable;
} flavours[] = {
    {"/sys/fs/cgroup", "/memory.max", "/memory.high", "/memory.current", "\ninactive_file "},
    {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", NULL, "/memory.usage_in_bytes",
     "\ntotal_inactive_file "},
};

/* Reads `file` of the level's folder into s->text. */
static int read_below(struct fl_memory_scratch *s, const struct fl_cgroup_level *l,
                      const char *file)
{
    fl_assert(l->len < FL_CGROUP_PATH && l->flavour <= 1);
    memcpy(s->path, s->own[l->flavour], l->len);
    struct fl_text t = fl_text_on(s->path + l->len, sizeof s->path - l->len);
    fl_text_str(&t, file);
    return fl_sys.read_file(s->path, s->text, sizeof s->text);
}

/* The number in that file; "max", and no such file, is UINT64_MAX. */
static uint64_t read_number(struct fl_memory_scratch *s, const struct fl_cgroup_level *l,
                            const char *file)
{
    uint64_t v;

    return file != NULL && read_below(s, l, file) == 0 && fl_parse_after(s->text, "", &v)
               ? v
               : UINT64_MAX;
}

static unsigned ranks(const struct fl_memory_scratch *s)
{
    return s->ranks > 1 ? s->ranks : 1;
}

/* Of `room`, which is left of `total`, what may be populated unasked. Grows with `room`. */
static uint64_t eager_part(const struct fl_memory_scratch *s, uint64_t total, uint64_t room)
{
    uint64_t eager = (room > total / 2 ? room - total / 2 : 0) / ranks(s);

    if ((s->promises || ranks(s) > 1) && s->held != NULL) {
        uint64_t share = total / 2 / ranks(s);
        uint64_t left = share > *s->held ? share - *s->held : 0;
        eager = eager < left ? eager : left;
    }
    fl_assert(eager <= room);
    return eager;
}

/* One bound on memory: the machine, or one cgroup. The least of all counts. */
static void bound(struct fl_memory *m, const struct fl_memory_scratch *s, uint64_t total,
                  uint64_t room)
{
    uint64_t eager = eager_part(s, total, room);

    m->headroom = room < m->headroom ? room : m->headroom;
    m->eager = eager < m->eager ? eager : m->eager;
    m->most = total < m->most ? total : m->most;
    fl_assert(m->eager <= m->headroom);
}

/* Its limit, less what is used and cannot be reclaimed at once. False: its use cannot be read. */
static bool bound_by_cgroup(struct fl_memory *m, struct fl_memory_scratch *s,
                            const struct fl_cgroup_level *l)
{
    const struct flavour *f = &flavours[l->flavour];
    uint64_t usage = read_number(s, l, f->usage), cache = 0;

    if (usage == UINT64_MAX) {
        return false;
    }
    uint64_t unused = l->limit > usage ? l->limit - usage : 0;
    /* What is reclaimable can only add to that: it takes long to read, and where this is not the
     * least it does not count. */
    bool may_bind = unused < m->headroom || eager_part(s, l->limit, unused) < m->eager;
    if (may_bind && read_below(s, l, "/memory.stat") == 0) {
        (void)fl_parse_after(s->text, f->reclaimable, &cache);
    }
    usage -= cache < usage ? cache : usage;
    m->unused = unused < m->unused ? unused : m->unused;
    m->bounded = m->grouped = true;
    bound(m, s, l->limit, l->limit > usage ? l->limit - usage : 0);
    return true;
}

/* The process's own cgroup, and all above it up to the mount: those that have a limit. */
static void find_levels(struct fl_memory_scratch *s, int flavour)
{
    const struct flavour *f = &flavours[flavour];
    const char *own = s->own[flavour];
    struct fl_cgroup_level l = {.flavour = flavour, .len = strlen(own)};

    while (l.len >= strlen(f->mount) && s->nlevel < FL_CGROUP_LEVELS) {
        uint64_t high = read_number(s, &l, f->high);
        l.limit = read_number(s, &l, f->limit);
        l.limit = high < l.limit ? high : l.limit;
        if (l.limit < 1ull << 60) {
            s->level[s->nlevel++] = l;
        }
        while (own[--l.len] != '/') {
        }
    }
    fl_assert(s->nlevel <= FL_CGROUP_LEVELS);
}

/* The path in a line "ID:CONTROLLERS:PATH" of the hierarchy that has the memory controller, by what
 * v2 (no controllers) or v1 say; NULL: it is another's. */
static const char *path_in(const char *line, int flavour)
{
    const char *names = strchr(line, ':'), *path = names != NULL ? strchr(names + 1, ':') : NULL;

    if (path == NULL || flavour == 0) {
        return path != NULL && path == names + 1 ? path + 1 : NULL;
    }
    for (size_t len; names < path; names += len + 1) {
        len = strcspn(names + 1, ",:");
        if (len == strlen("memory") && memcmp(names + 1, "memory", len) == 0) {
            return path + 1;
        }
    }
    return NULL;
}

/* Keeps the folder of the process's own cgroup, by /proc/self/cgroup in s->text. */
static bool keep_own(struct fl_memory_scratch *s, int flavour)
{
    struct fl_text t = fl_text_on(s->own[flavour], FL_CGROUP_PATH);
    const char *path = NULL;

    for (const char *line = s->text; path == NULL && *line != '\0';) {
        size_t len = strcspn(line, "\n");
        path = path_in(line, flavour);
        line += len + (line[len] != '\0');
    }
    if (path == NULL) {
        return false;
    }
    fl_text_str(&t, flavours[flavour].mount);
    for (; *path != '\n' && *path != '\0'; path++) {
        fl_text_str(&t, (char[2]){*path, '\0'});
    }
    if (t.buf[t.len - 1] == '/') { /* the mount itself */
        t.buf[t.len - 1] = '\0';
    }
    return true;
}

static void search(struct fl_memory_scratch *s)
{
    s->nlevel = 0;
    s->own[0][0] = s->own[1][0] = '\0';
    if (fl_sys.read_file("/proc/self/cgroup", s->text, sizeof s->text) == 0) {
        bool v1 = keep_own(s, 1);
        /* A controller is in one hierarchy: then v2's has no files about memory. */
        (void)(v1 || keep_own(s, 0));
        find_levels(s, v1 ? 1 : 0);
    }
    s->strict = fl_sys.read_file("/proc/sys/vm/overcommit_memory", s->text, sizeof s->text) == 0 &&
                s->text[0] == '2';
    s->looks = LOOKS;
}

/* What counts maps and not pages: an eighth of it may be free memory of ours. */
static void bound_kept(struct fl_memory *m, uint64_t limit)
{
    if (limit != UINT64_MAX) {
        m->keep = limit / 8 < m->keep ? limit / 8 : m->keep;
        m->bounded = true;
    }
}

static void bound_by_machine(struct fl_memory *m, struct fl_memory_scratch *s)
{
    uint64_t available_kib, total_kib, commit_kib;

    if (fl_sys.read_file("/proc/meminfo", s->text, sizeof s->text) != 0) {
        return;
    }
    if (fl_parse_after(s->text, "MemAvailable:", &available_kib) &&
        fl_parse_after(s->text, "MemTotal:", &total_kib)) {
        bound(m, s, total_kib * 1024, available_kib * 1024);
    }
    if (s->strict && fl_parse_after(s->text, "CommitLimit:", &commit_kib)) {
        bound_kept(m, commit_kib * 1024 / ranks(s));
    }
}

/* False: a cgroup is no longer where it was. */
static bool bound_all(struct fl_memory *m, struct fl_memory_scratch *s)
{
    bool all = true;

    *m = (struct fl_memory){.headroom = UINT64_MAX,
                            .unused = UINT64_MAX,
                            .eager = UINT64_MAX,
                            .keep = UINT64_MAX,
                            .most = UINT64_MAX};
    bound_kept(m, fl_sys.limit(RLIMIT_AS));
    bound_kept(m, fl_sys.limit(RLIMIT_DATA));
    bound_by_machine(m, s);
    for (size_t i = 0; i < s->nlevel; i++) {
        all = bound_by_cgroup(m, s, &s->level[i]) && all;
    }
    return all;
}

void fl_memory_look(struct fl_memory *m, struct fl_memory_scratch *s)
{
    fl_lock_must_be_free(FL_RANK_REGION);
    uint64_t now = fl_sys.now_ns();
    bool known = s->looks != 0 && now - s->found_ns < search_after_ns;

    if (!known) {
        s->found_ns = now;
        search(s);
    }
    fl_assert(s->looks != 0);
    s->looks--;
    if (!bound_all(m, s) && known) { /* the process has been moved, and its old cgroup removed */
        search(s);
        (void)bound_all(m, s);
    }
}
