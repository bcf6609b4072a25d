/* How much memory may still be taken: MemAvailable and the memory cgroups above this process.
 *
 * Sources: proc(5) meminfo; cgroups(7); kernel docs cgroup-v2 memory.max, cgroup-v1 memory.limit_in_bytes. */
#include "core/core.h"

#include <string.h>

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

/* What is left of `available` when an eighth of `total` stays free: for whoever touches what he asked for later than
 * we populate, and for the rest of the machine. */
static uint64_t less_reserve(uint64_t available, uint64_t total)
{
    return available > total / 8 ? available - total / 8 : 0;
}

/* Room in one cgroup: limit less what is used and cannot be reclaimed at once. "max" does not parse: no limit. */
static uint64_t room_of(const struct flavour *f, const char *folder)
{
    uint64_t limit, usage, cache = 0;
    char text[BUFFER], path[PATH];

    if (!read_number(folder, f->limit, &limit) || !read_number(folder, f->usage, &usage) ||
        limit >= 1ull << 60) {
        return UINT64_MAX;
    }
    struct fl_text t = fl_text_on(path, sizeof path);
    fl_text_str(&t, folder);
    fl_text_str(&t, "/memory.stat");
    if (fl_sys.read_file(path, text, sizeof text) == 0) {
        (void)fl_parse_after(text, f->reclaimable, &cache);
    }
    usage -= cache < usage ? cache : usage;
    return less_reserve(limit > usage ? limit - usage : 0, limit);
}

/* The least room from the process's own cgroup up to the mount. */
static uint64_t room_upwards(const struct flavour *f, const char *line)
{
    char folder[PATH];
    struct fl_text t = fl_text_on(folder, sizeof folder);
    size_t mount_len = strlen(f->mount);
    uint64_t least = UINT64_MAX;

    fl_text_str(&t, f->mount);
    for (; *line != '\n' && *line != '\0'; line++) {
        fl_text_str(&t, (char[2]){*line, '\0'});
    }
    for (;;) {
        uint64_t room = room_of(f, folder);
        least = room < least ? room : least;
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < mount_len) {
            return least;
        }
        *slash = '\0';
    }
}

static uint64_t cgroup_room(void)
{
    char text[BUFFER];
    uint64_t least = UINT64_MAX;

    if (fl_sys.read_file("/proc/self/cgroup", text, sizeof text) != 0) {
        return least;
    }
    const char *own = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (own != NULL) {
        least = room_upwards(&v2, strstr(own, "::") + 2);
    }
    const char *memory = strstr(text, ":memory:");
    if (memory != NULL) {
        uint64_t room = room_upwards(&v1, memory + strlen(":memory:"));
        least = room < least ? room : least;
    }
    return least;
}

uint64_t fl_memory_available(void)
{
    char text[BUFFER];
    uint64_t available_kib, total_kib, least = cgroup_room();

    if (fl_sys.read_file("/proc/meminfo", text, sizeof text) == 0 &&
        fl_parse_after(text, "MemAvailable:", &available_kib) &&
        fl_parse_after(text, "MemTotal:", &total_kib)) {
        uint64_t room = less_reserve(available_kib * 1024, total_kib * 1024);
        least = room < least ? room : least;
    }
    return least;
}
