/* What kernel and system give. Each call is tried, as the library tries it; nothing is changed. */
#include "launcher/check.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
static const uint64_t feature_move = 1 << 16; /* UFFD_FEATURE_MOVE */

/* The whole of a small file; "" where it cannot be read. */
static bool slurp(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;

    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
    return n >= 0;
}

static void read_line(const char *path, char *line, size_t size)
{
    (void)slurp(path, line, size);
    line[strcspn(line, "\n")] = '\0';
}

/* The number behind `key` in `text`; `otherwise` when there is none. */
static uint64_t after(const char *text, const char *key, uint64_t otherwise)
{
    const char *at = strstr(text, key);

    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : otherwise;
}

static int try_populate(void)
{
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error = page == MAP_FAILED || madvise(page, len, MADV_POPULATE_WRITE) != 0 ? errno : 0;

    if (page != MAP_FAILED) {
        munmap(page, len);
    }
    return error;
}

static void try_userfaultfd(struct fl_host_calls *c)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = 0};

    c->uffd = fd < 0 ? errno : 0;
    c->uffd_move = c->uffd;
    if (fd >= 0) {
        bool told = ioctl(fd, UFFDIO_API, &api) == 0;
        c->uffd_move = told && (api.features & feature_move) != 0 ? 0 : ENOSYS;
        close(fd);
    }
    fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    c->uffd_all = fd < 0 ? EPERM : 0;
    if (fd < 0) {
        fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
        c->uffd_all = fd < 0 ? errno : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
}

static int try_uring(void)
{
    struct io_uring_params params = {.flags = 0};
    int fd = (int)syscall(SYS_io_uring_setup, 1, &params), error = fd < 0 ? errno : 0;

    if (fd >= 0) {
        close(fd);
    }
    return error;
}

const char *fl_host_answer(int error)
{
    /* What those calls answer. glibc has no such list before 2.32. */
    static const struct {
        int error;
        const char *name;
    } answers[] = {{0, "yes"},         {EPERM, "EPERM"},   {ENOSYS, "ENOSYS"},
                   {EINVAL, "EINVAL"}, {EACCES, "EACCES"}, {ENOMEM, "ENOMEM"},
                   {EMFILE, "EMFILE"}, {ENFILE, "ENFILE"}, {EAGAIN, "EAGAIN"}};

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i].error == error) {
            return answers[i].name;
        }
    }
    return "no";
}

static uint64_t limit_of(int resource)
{
    struct rlimit r;

    return getrlimit((__rlimit_resource_t)resource, &r) == 0 && r.rlim_cur != RLIM_INFINITY
               ? (uint64_t)r.rlim_cur
               : FL_UNLIMITED;
}

/* The least limit of the group at `path` below `root`, and of those above it. */
static uint64_t least_limit(const char *root, const char *path, const char *name)
{
    char folder[1024], file[1200], text[64];
    uint64_t least = FL_UNLIMITED;

    snprintf(folder, sizeof folder, "%s%s", root, path);
    for (;;) {
        snprintf(file, sizeof file, "%s/%s", folder, name);
        if (slurp(file, text, sizeof text) && text[0] >= '0' && text[0] <= '9') {
            uint64_t limit = strtoull(text, NULL, 10);
            least = limit < least ? limit : least;
        }
        char *slash = strrchr(folder, '/');
        if (slash == NULL || strlen(folder) <= strlen(root)) {
            return least;
        }
        *slash = '\0';
    }
}

uint64_t fl_host_group_limit(const char *groups)
{
    char text[8192], path[512];
    uint64_t least = FL_UNLIMITED;

    (void)slurp(groups, text, sizeof text);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        uint64_t limit = FL_UNLIMITED;
        if (sscanf(line, "0::%511s", path) == 1) {
            limit = least_limit("/sys/fs/cgroup", path, "memory.max");
        } else if (strstr(line, ":memory:") != NULL) {
            limit = least_limit("/sys/fs/cgroup/memory", strrchr(line, ':') + 1,
                                "memory.limit_in_bytes");
        }
        least = limit < least ? limit : least;
    }
    return least < (uint64_t)1 << 62 ? least : FL_UNLIMITED; /* v1 says so for none */
}

static void read_memory(struct fl_host_memory *m)
{
    char text[4096];

    (void)slurp("/proc/meminfo", text, sizeof text);
    m->total = after(text, "MemTotal:", 0) * 1024;
    m->available = after(text, "MemAvailable:", 0) * 1024;
    m->cgroup = fl_host_group_limit("/proc/self/cgroup");
    m->as = limit_of(RLIMIT_AS);
    m->data = limit_of(RLIMIT_DATA);
    m->memlock = limit_of(RLIMIT_MEMLOCK);
    read_line("/proc/sys/vm/overcommit_memory", text, sizeof text);
    m->overcommit = atoi(text);
}

static void read_thp(struct fl_host *h)
{
    char text[128], path[96];

    read_line("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", text, sizeof text);
    h->huge = strtoull(text, NULL, 10);
    /* The setting for this size goes before that for all, which it inherits mostly. */
    snprintf(path, sizeof path, "/sys/kernel/mm/transparent_hugepage/hugepages-%llukB/enabled",
             (unsigned long long)h->huge / 1024);
    read_line(path, text, sizeof text);
    if (text[0] == '\0' || strstr(text, "[inherit]") != NULL) {
        read_line("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    }
    char *chosen = strchr(text, '[');
    snprintf(h->thp, sizeof h->thp, "%.*s", chosen != NULL ? (int)strcspn(chosen + 1, "]") : 0,
             chosen != NULL ? chosen + 1 : "");
    h->thp_refused = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1;
}

static void read_nodes(struct fl_host *h)
{
    static const char *const policies[] = {
        "default",        "preferred",          "bind", "interleave", "local",
        "preferred-many", "weighted-interleave"};
    char text[8192];
    int mode = 0;

    read_line("/sys/devices/system/node/has_memory", h->nodes, sizeof h->nodes);
    (void)slurp("/proc/self/status", text, sizeof text);
    const char *allowed = strstr(text, "Mems_allowed_list:");
    snprintf(h->allowed, sizeof h->allowed, "%.*s",
             allowed != NULL ? (int)strcspn(allowed + 19, "\n") : 0,
             allowed != NULL ? allowed + 19 : "");
    h->seccomp = (int)after(text, "\nSeccomp:", 0);
    bool known = syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0;
    mode &= 0xff; /* without the flags */
    h->policy = !known                                               ? "not to be had"
                : mode < (int)(sizeof policies / sizeof policies[0]) ? policies[mode]
                                                                     : "of a later kernel";
}

static void read_gpus(struct fl_host *h)
{
    glob_t found;

    h->gpus = glob("/dev/nvidia[0-9]*", 0, NULL, &found) == 0 ? (unsigned)found.gl_pathc : 0;
    if (h->gpus != 0) {
        globfree(&found);
    }
    read_line("/proc/driver/nvidia/version", h->driver, sizeof h->driver);
}

void fl_host_read(struct fl_host *h)
{
    struct utsname name;

    *h = (struct fl_host){.policy = ""};
    if (uname(&name) == 0) {
        snprintf(h->kernel, sizeof h->kernel, "%s", name.release);
    }
    h->calls.populate = try_populate();
    try_userfaultfd(&h->calls);
    h->calls.uring = try_uring();
    read_memory(&h->memory);
    read_thp(h);
    read_nodes(h);
    read_gpus(h);
}
