/* Finds processes in /proc, and reads what the kernel says of them beside their live pages. */
#include "faultstat/top/process.h"

#include "faultstat/nodes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FL_PATH = 64, FL_REST = 100 /* times what a walk of page tables took */, FL_YOUNG_S = 5 };

/* A process that is not under faultless. Its next exec may put it there. */
struct fl_top_seen {
    pid_t pid;
    uint64_t image;
};

/* What a process executes, and since when: changes with exec, and with another process of the
 * number. 0: it has ended, or is not ours to look at. The stack's start, by chance, tells the same
 * program executed again. */
static uint64_t image_of(pid_t pid)
{
    char path[FL_PATH];
    char text[1024];
    struct stat what;
    unsigned long long born, stack;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &what) != 0) {
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *rest = fl_proc_read_text(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL;
    if (rest == NULL ||
        sscanf(rest + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu "
               "%*u %*d %*u %*u %*u %llu",
               &born, &stack) != 2) {
        return 0;
    }
    return (what.st_ino + what.st_dev * 0x9e3779b97f4a7c15u + born * 0xd1b54a32d192ed03u + stack) |
           1;
}

uint64_t fl_top_map_of(const char *line)
{
    static const char name[] = "libfaultless";
    unsigned long long start, offset;
    int at = 0;
    if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %n", &start, &offset, &at) != 2 || at == 0 ||
        offset != 0 || line[at] != '/') {
        return 0;
    }
    const char *slash = strrchr(line + at, '/');
    return strncmp(slash + 1, name, sizeof(name) - 1) == 0 ? start : 0;
}

/* The kernel does not let us read the memory of the process: what is there is not known. */
static bool is_refused(int rc)
{
    return rc == -EPERM || rc == -ENOSYS;
}

/* Some libraries with such a name are none: libfaultless_torch.so. */
int fl_top_find_page(pid_t pid, uint64_t *out)
{
    char path[FL_PATH];
    char *line = NULL;
    size_t size = 0;
    struct fl_live_memory memory = fl_live_memory_of(pid);
    int rc = 0;
    *out = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return -errno;
    }
    while (*out == 0 && !is_refused(rc) && getline(&line, &size, file) > 0) {
        uint64_t base = fl_top_map_of(line);
        rc = base != 0 ? fl_live_find(&memory, base, out) : rc;
    }
    free(line);
    fclose(file);
    return rc;
}

static int compare_pids(const void *left, const void *right)
{
    pid_t a = ((const struct fl_top_process *)left)->pid;
    pid_t b = ((const struct fl_top_process *)right)->pid;
    return (a > b) - (a < b);
}

static struct fl_top_process *find(const struct fl_top *top, pid_t pid)
{
    for (size_t i = 0; i < top->count; i++) {
        if (top->process[i].pid == pid) {
            return &top->process[i];
        }
    }
    return NULL;
}

/* One more element at `*array`'s end. NULL: no memory. */
static void *grow(void **array, size_t count, size_t *room, size_t size)
{
    if (count == *room) {
        size_t wanted = *room != 0 ? 2 * *room : 64;
        void *bigger = reallocarray(*array, wanted, size);
        if (bigger == NULL) {
            return NULL;
        }
        *array = bigger;
        *room = wanted;
    }
    return (char *)*array + count * size;
}

static struct fl_top_process *add(struct fl_top *top, pid_t pid)
{
    void *array = top->process;
    struct fl_top_process *p = grow(&array, top->count, &top->room, sizeof(*p));
    top->process = array;
    if (p != NULL) {
        *p = (struct fl_top_process){.pid = pid};
        top->count++;
    }
    return p;
}

/* ---- processes that are of no interest ---- */

static int compare_seen(const void *left, const void *right)
{
    const struct fl_top_seen *a = left;
    const struct fl_top_seen *b = right;
    return (a->pid > b->pid) - (a->pid < b->pid);
}

/* Those of the last look are sorted; those that it has not, behind, are of this look. */
static bool was_seen(const struct fl_top *top, size_t sorted, pid_t pid, uint64_t image)
{
    struct fl_top_seen key = {pid, image};
    const struct fl_top_seen *seen =
        sorted != 0 ? bsearch(&key, top->seen, sorted, sizeof(key), compare_seen) : NULL;
    return seen != NULL && seen->image == image;
}

static void note_seen(struct fl_top *top, pid_t pid, uint64_t image)
{
    void *array = top->seen;
    struct fl_top_seen *seen = grow(&array, top->seens, &top->seen_room, sizeof(*seen));
    top->seen = array;
    if (seen != NULL) { /* else it is looked at again */
        *seen = (struct fl_top_seen){pid, image};
        top->seens++;
    }
}

/* What was noted in this look replaces what was noted in the last one. */
static void keep_seen(struct fl_top *top, size_t sorted)
{
    top->seens -= sorted;
    if (top->seens != 0) {
        memmove(top->seen, top->seen + sorted, top->seens * sizeof(top->seen[0]));
        qsort(top->seen, top->seens, sizeof(top->seen[0]), compare_seen);
    }
}

/* ---- one process ---- */

/* Rollup and nodes: the kernel walks the page tables. */
static void walk(struct fl_top_process *p)
{
    struct fl_nodes nodes;
    uint64_t start = fl_proc_now_ns();
    if (start < p->walk_due_ns) {
        return;
    }
    if (fl_proc_read_rollup(p->pid, &p->rollup) != 0) {
        p->rollup = (struct fl_rollup){0};
    }
    p->remote_pct = fl_nodes_online() > 1 && fl_nodes_read(p->pid, &nodes) == 0
                        ? fl_nodes_remote_pct(&nodes)
                        : NAN;
    uint64_t now = fl_proc_now_ns();
    p->walk_due_ns = now + FL_REST * (now - start);
}

/* Seconds that the process has lived. */
static double age_of(const struct fl_usage *usage)
{
    struct timespec boot;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    double born = (double)usage->born / (double)sysconf(_SC_CLK_TCK);
    double age = (double)boot.tv_sec + (double)boot.tv_nsec / 1e9 - born;
    return age > 0.01 ? age : 0.01; /* a tick: it is no older */
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now > before ? (double)(now - before) / seconds : 0;
}

static void set_rates(struct fl_top_process *p, const struct fl_top_process *before)
{
    bool is_first = before->at_ns == 0;
    double s = is_first ? age_of(&p->usage) : (double)(p->at_ns - before->at_ns + 1) / 1e9;
    p->faults_s = rate(p->usage.minor, before->usage.minor, s);
    p->requests_s = NAN;
    if (p->live.known[FL_LIVE_REQUESTS] && (is_first || before->live.known[FL_LIVE_REQUESTS])) {
        p->requests_s =
            rate(p->live.value[FL_LIVE_REQUESTS], before->live.value[FL_LIVE_REQUESTS], s);
    }
}

/* False: it has ended. */
static bool read_process(struct fl_top_process *p)
{
    struct fl_top_process before = *p;
    struct fl_memory memory;
    struct fl_live_memory m = fl_live_memory_of(p->pid);
    if (fl_proc_read_usage(p->pid, 0, &p->usage, p->name) != 0 ||
        fl_proc_read_memory(p->pid, &memory) != 0 || memory.rss == 0) {
        return false; /* a zombie has no memory */
    }
    p->at_ns = fl_proc_now_ns();
    p->rss = memory.rss;
    if (p->page != 0) {
        p->error = fl_live_read(&m, p->page, &p->live);
    }
    if (p->error != 0) {
        p->live = (struct fl_live){.version = p->live.version};
    }
    set_rates(p, &before);
    walk(p);
    return p->error != -ESRCH;
}

/* Of a process that has just begun the loader may not have mapped the library yet. */
static void note_unless_young(struct fl_top *top, pid_t pid, uint64_t image)
{
    struct fl_usage usage;
    if (fl_proc_read_usage(pid, 0, &usage, NULL) == 0 && age_of(&usage) > FL_YOUNG_S) {
        note_seen(top, pid, image);
    }
}

static bool is_wanted(const struct fl_top *top, pid_t pid)
{
    for (size_t i = 0; i < top->onlys; i++) {
        if (top->only[i] == pid) {
            return true;
        }
    }
    return top->onlys == 0;
}

/* A process that is new, or executes something else now. Returns it; NULL: it is not under
 * faultless. *rc: -ENOMEM, else as it was. */
static struct fl_top_process *meet(struct fl_top *top, pid_t pid, uint64_t image, int *rc)
{
    uint64_t page;
    int error = fl_top_find_page(pid, &page);
    if (page == 0 && !is_refused(error)) {
        note_unless_young(top, pid, image);
        return NULL;
    }
    struct fl_top_process *p = find(top, pid);
    p = p != NULL ? p : add(top, pid);
    if (p == NULL) {
        *rc = -ENOMEM;
        return NULL;
    }
    *p = (struct fl_top_process){.pid = pid, .image = image, .page = page, .remote_pct = NAN};
    p->error = page == 0 ? error : 0;
    return p;
}

static uid_t owner_of(pid_t pid)
{
    char path[FL_PATH];
    struct stat what;
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &what) == 0 ? what.st_uid : (uid_t)-1;
}

/* 0, also for a process that is none of ours; -ENOMEM. */
static int look_at(struct fl_top *top, size_t sorted, pid_t pid)
{
    uid_t uid = owner_of(pid);
    if (uid == (uid_t)-1 || (top->onlys == 0 && !top->all_users && uid != geteuid())) {
        return 0;
    }
    uint64_t image = image_of(pid);
    struct fl_top_process *p = find(top, pid);
    int rc = 0;
    if (image == 0 || was_seen(top, sorted, pid, image)) {
        if (image != 0) {
            note_seen(top, pid, image);
        }
        return 0;
    }
    p = p != NULL && p->image == image ? p : meet(top, pid, image, &rc);
    if (p != NULL) {
        p->uid = uid;
        p->is_here = read_process(p);
    }
    return rc;
}

int fl_top_look(struct fl_top *top)
{
    size_t sorted = top->seens;
    size_t kept = 0;
    int rc = 0;
    DIR *folder = opendir("/proc");
    const struct dirent *item;
    for (size_t i = 0; i < top->count; i++) {
        top->process[i].is_here = false;
    }
    while (folder != NULL && rc == 0 && (item = readdir(folder)) != NULL) {
        pid_t pid = isdigit((unsigned char)item->d_name[0]) ? (pid_t)atoi(item->d_name) : 0;
        if (pid > 0 && pid != getpid() && is_wanted(top, pid)) {
            rc = look_at(top, sorted, pid);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    for (size_t i = 0; i < top->count; i++) {
        if (top->process[i].is_here) {
            top->process[kept++] = top->process[i];
        }
    }
    top->count = kept;
    keep_seen(top, sorted);
    if (kept != 0) {
        qsort(top->process, kept, sizeof(top->process[0]), compare_pids);
    }
    return folder == NULL ? -errno : rc;
}

int fl_top_find(const struct fl_top *top, pid_t pid)
{
    char path[FL_PATH];
    if (find(top, pid) != NULL) {
        return 0;
    }
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? -ESRCH : -errno;
    }
    fclose(file);
    return -ENOENT;
}

void fl_top_free(struct fl_top *top)
{
    free(top->process);
    free(top->seen);
    *top = (struct fl_top){.count = 0};
}
