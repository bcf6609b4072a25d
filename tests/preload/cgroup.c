/* Hierarchies are looked for where the library looks: in one that is mounted elsewhere it would not
 * see the limit. Sources: cgroups(7); kernel docs cgroup-v2 (delegation, no internal processes),
 * cgroup-v1 memory. */
#include "cgroup.h"
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH = 512, FAILED = 98, ROUNDS = 1000 };

#define V2 "/sys/fs/cgroup"
#define V1 V2 "/memory"

static const struct kind {
    const char *mount, *limit, *usage, *swap, *events;
    const char *own; /* before the group's path in /proc/self/cgroup */
    long magic;
} kinds[] = {
    {V1, "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.swappiness",
     "memory.oom_control", "memory:", CGROUP_SUPER_MAGIC},
    {V2, "memory.max", "memory.current", "memory.swap.max", "memory.events",
     "0::", CGROUP2_SUPER_MAGIC},
};

/* Of the group that was made. `aside` is the group of the processes that were in its way; "": there
 * were none. */
static const struct kind *made;
static char parent[PATH], group[PATH], aside[PATH], missing[2 * PATH];
static bool enabled; /* the controller was switched on in `parent` */

static bool write_of(const char *folder, const char *file, const char *text)
{
    char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", folder, file);
    return fl_write_text(path, text);
}

/* The file's text; "" when it cannot be read. */
static void read_of(const char *folder, const char *file, char text[static 4 * PATH])
{
    char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", folder, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, 4 * PATH - 1) : 0;
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0) {
        close(fd);
    }
}

/* The first thing that is missing is what a skip tells: what is tried after it promises less. */
static bool lacks(const char *what, const char *where, int error)
{
    if (missing[0] == '\0') {
        snprintf(missing, sizeof missing, "needs a memory control group, got %s %.480s%s%s", what,
                 where, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    }
    return false;
}

static void remove_group(const char *folder)
{
    for (int i = 0; rmdir(folder) != 0 && errno == EBUSY && i < ROUNDS; i++) {
        usleep(1000); /* the kernel is still taking the last process out */
    }
}

/* Until there is none left: those that are moved may fork meanwhile. */
static bool move_all(const char *from, const char *to)
{
    char text[4 * PATH];

    for (int i = 0; i < ROUNDS; i++) {
        read_of(from, "cgroup.procs", text);
        if (text[0] == '\0') {
            return true;
        }
        for (char *save, *pid = strtok_r(text, "\n", &save); pid != NULL;
             pid = strtok_r(NULL, "\n", &save)) {
            (void)write_of(to, "cgroup.procs", pid);
        }
    }
    return false;
}

static void put_back(void)
{
    if (enabled) {
        (void)write_of(parent, "cgroup.subtree_control", "-memory");
        enabled = false;
    }
    if (aside[0] != '\0') {
        (void)move_all(aside, parent);
        remove_group(aside);
        aside[0] = '\0';
    }
}

/* v2: children of the parent get the memory controller. A group that is not the root of all may
 * have processes, or children with controllers, not both. */
static bool enable(void)
{
    enabled = write_of(parent, "cgroup.subtree_control", "+memory");
    if (!enabled && errno == EBUSY) {
        snprintf(aside, sizeof aside, "%.480s/faultless-aside-%d", parent, getpid());
        enabled = mkdir(aside, 0755) == 0 && move_all(parent, aside) &&
                  write_of(parent, "cgroup.subtree_control", "+memory");
    }
    return enabled;
}

/* A child can join, and finds the group where /proc says that it is. */
static bool can_join(void)
{
    char text[4 * PATH], line[2 * PATH];
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        fl_cgroup_join(NULL);
        read_of("/proc/self", "cgroup", text);
        snprintf(line, sizeof line, "%s%s\n", made->own, group + strlen(made->mount));
        _exit(strstr(text, line) != NULL ? 0 : FAILED);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool try_in(const char *folder, int limit_mib)
{
    char file[2 * PATH];

    snprintf(parent, sizeof parent, "%.480s", folder);
    snprintf(group, sizeof group, "%.480s/faultless-test-%d", folder, getpid());
    snprintf(file, sizeof file, "%s/%s", group, made->limit);
    if (mkdir(group, 0755) != 0) {
        return lacks("none in", folder, errno);
    }
    if (access(file, F_OK) != 0 && !enable()) {
        (void)lacks("no memory controller in", folder, errno);
    } else if (!fl_cgroup_limit(limit_mib)) {
        (void)lacks("no limit in", folder, errno);
    } else if (!can_join()) {
        (void)lacks("none that a process can join in", folder, 0);
    } else {
        (void)write_of(group, made->swap, "0");
        return true;
    }
    fl_cgroup_remove();
    return false;
}

/* In the mount first, then in each group on the way down to the process's own, and in that. */
static bool try_all(const struct kind *k, int limit_mib)
{
    char text[4 * PATH], own[4 * PATH];
    struct statfs fs;

    if (statfs(k->mount, &fs) != 0 || fs.f_type != k->magic) {
        return false;
    }
    made = k;
    read_of("/proc/self", "cgroup", text);
    const char *at = strstr(text, k->own);
    at = at != NULL ? at + strlen(k->own) : "";
    snprintf(own, sizeof own, "%s%.*s", k->mount, (int)strcspn(at, "\n"), at);
    for (char *end = own + strlen(k->mount), next;; end = strchrnul(end + 1, '/')) {
        next = *end;
        *end = '\0';
        if (try_in(own, limit_mib)) {
            return true;
        }
        *end = next;
        if (next == '\0' || end[1] == '\0') {
            return false;
        }
    }
}

/* Seen by this process and its children alone. v1's is tried only where the controller is not v2's:
 * to mount it binds it. */
static bool mount_one(void)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    char text[4 * PATH];

    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/sys", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return false;
    }
    if (mount("none", V2, "cgroup2", flags, NULL) == 0) {
        read_of(V2, "cgroup.controllers", text);
        if (strstr(text, "memory") != NULL) {
            return true;
        }
        (void)umount(V2);
    }
    return mount("none", V2, "tmpfs", flags, NULL) == 0 && mkdir(V1, 0755) == 0 &&
           mount("none", V1, "cgroup", flags, "memory") == 0;
}

bool fl_cgroup_make(int limit_mib)
{
    missing[0] = '\0';
    for (int round = 0; round < 2; round++) {
        if (try_all(&kinds[0], limit_mib) || try_all(&kinds[1], limit_mib)) {
            return true;
        }
        if (missing[0] == '\0' && !mount_one()) {
            return lacks("no hierarchy that has the memory controller at",
                         V2 ", nor the right to mount one", errno);
        }
    }
    return false;
}

const char *fl_cgroup_missing(void)
{
    return missing;
}

bool fl_cgroup_limit_kib(long limit_kib)
{
    char bytes[32];

    snprintf(bytes, sizeof bytes, "%lld", (long long)limit_kib << 10);
    return write_of(group, made->limit, bytes);
}

bool fl_cgroup_limit(int limit_mib)
{
    return fl_cgroup_limit_kib((long)limit_mib << 10);
}

void fl_cgroup_join(void *arg)
{
    (void)arg;
    if (!write_of(group, "cgroup.procs", "0")) { /* the writer */
        _exit(FAILED);
    }
}

const char *fl_cgroup_limit_that_refuses(void)
{
    static char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", group, made->limit);
    return made->magic == CGROUP_SUPER_MAGIC ? path : "";
}

const char *fl_cgroup_usage_file(void)
{
    static char path[2 * PATH];

    snprintf(path, sizeof path, "%s/%s", group, made->usage);
    return path;
}

long long fl_cgroup_kills(void)
{
    char text[4 * PATH];

    read_of(group, made->events, text);
    const char *at = strstr(text, "\noom_kill ");
    return at != NULL ? atoll(at + strlen("\noom_kill ")) : -1;
}

void fl_cgroup_remove(void)
{
    remove_group(group);
    put_back();
}
