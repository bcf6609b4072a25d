/* Source: proc(5), prlimit(2). */
#include "launcher/process.h"

#include "faultstat/proc.h"
#include "faultstat/top/live.h"
#include "launcher/check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FL_ENVIRONMENT_MOST = 1 << 20, FL_PATH = 64 };

/* The process as it is being read. */
struct reading {
    struct fl_process *p;
    struct fl_live live;
    int page; /* 0: the library's figures are in `live`; -EAGAIN: it has not begun; else: why not */
    char last[PATH_MAX];
};

static FILE *open_of(pid_t pid, const char *name)
{
    char path[FL_PATH];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

/* ---- what is mapped ---- */

/* One file, as the process sees it: a container has another root. */
static void look_for_allocator(struct fl_process *p, const char *path)
{
    char inside[PATH_MAX + FL_PATH];
    struct fl_own own;
    unsigned i = 0;

    snprintf(inside, sizeof inside, "/proc/%d/root%s", (int)p->pid, path);
    if (p->nown == FL_PROCESS_OWN || !fl_allocators_find(inside, &own)) {
        return;
    }
    while (i < p->nown && strcmp(p->own[i].kind->what, own.kind->what) != 0) {
        i++;
    }
    if (i == p->nown) {
        p->own[p->nown++] = own;
    }
}

/* Ours is there: where its page says that it stands. */
static void read_page(struct reading *r, uint64_t base)
{
    struct fl_live_memory memory = fl_live_memory_of(r->p->pid);
    uint64_t page;

    r->page = fl_live_find(&memory, base, &page);
    r->page = r->page == 0 ? fl_live_read(&memory, page, &r->live) : r->page;
}

static void take_file(struct reading *r, const char *path, uint64_t base)
{
    static const char ours[] = "libfaultless.so";
    struct fl_process *p = r->p;

    if (strncmp(strrchr(path, '/') + 1, ours, sizeof ours - 1) == 0) {
        snprintf(p->library, sizeof p->library, "%s", path);
        read_page(r, base);
    } else {
        look_for_allocator(p, path);
    }
}

/* Each file once: its parts lie one behind the other. */
static int read_files(struct reading *r)
{
    FILE *maps = open_of(r->p->pid, "maps");
    char *line = NULL;
    size_t room = 0;
    uint64_t base, offset;
    int at;

    if (maps == NULL) {
        return -errno;
    }
    while (getline(&line, &room, maps) > 0) {
        line[strcspn(line, "\n")] = '\0';
        at = 0;
        (void)sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*s %n", &base, &offset, &at);
        if (at != 0 && line[at] == '/' && offset == 0 && strcmp(r->last, line + at) != 0) {
            snprintf(r->last, sizeof r->last, "%s", line + at);
            take_file(r, line + at, base);
        }
    }
    int rc = ferror(maps) ? -errno : 0;
    free(line);
    fclose(maps);
    return rc;
}

/* ---- what is in memory ---- */

static bool figure(const struct reading *r, enum fl_live_figure what, uint64_t *value)
{
    bool known = r->page == 0 && r->live.known[what];

    *value = known ? r->live.value[what] : 0;
    return known;
}

/* By the kernel's account, of all memory and of what lies in the library's window. */
static void read_memory(const struct reading *r)
{
    struct fl_process *p = r->p;
    FILE *maps = open_of(p->pid, "smaps");
    uint64_t from = 0, window, len, bytes;
    char *line = NULL, word[2];
    size_t room = 0;
    bool has_window = figure(r, FL_LIVE_WINDOW, &window) && figure(r, FL_LIVE_WINDOW_BYTES, &len);

    p->anonymous = p->ours = FL_UNLIMITED;
    if (maps == NULL) {
        return;
    }
    p->anonymous = 0;
    p->ours = has_window || r->page == -EAGAIN ? 0 : FL_UNLIMITED;
    while (getline(&line, &room, maps) > 0) {
        if (sscanf(line, "Anonymous: %" SCNu64 " kB", &bytes) == 1) {
            p->anonymous += bytes << 10;
            p->ours += has_window && from - window < len ? bytes << 10 : 0;
        } else if (sscanf(line, "%" SCNx64 "-%*x %1[-r]", &bytes, word) == 2) {
            from = bytes;
        }
    }
    free(line);
    fclose(maps);
}

/* ---- what else the kernel says ---- */

static uint64_t limit_of(pid_t pid, __rlimit_resource_t resource)
{
    struct rlimit r;
    bool known = prlimit(pid, resource, NULL, &r) == 0;

    return known && r.rlim_cur != RLIM_INFINITY ? (uint64_t)r.rlim_cur : FL_UNLIMITED;
}

static void read_status(struct fl_process *p)
{
    char path[FL_PATH], text[8192];

    snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
    p->thp_off = fl_proc_read_text(path, text, sizeof text) > 0 &&
                 fl_proc_find_number(text, "THP_enabled:", 1) == 0;
    p->as = limit_of(p->pid, RLIMIT_AS);
    p->data = limit_of(p->pid, RLIMIT_DATA);
    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)p->pid);
    p->group = fl_host_group_limit(path);
}

static void read_environment(struct fl_process *p)
{
    char path[FL_PATH];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)p->pid);
    p->environment = malloc(FL_ENVIRONMENT_MOST);
    ssize_t n =
        p->environment != NULL ? fl_proc_read_text(path, p->environment, FL_ENVIRONMENT_MOST) : 0;
    p->environment_len = n > 0 ? (size_t)n : 0;
}

const char *fl_process_value(void *of, const char *name)
{
    const struct fl_process *p = of;
    size_t len = strlen(name);

    for (size_t at = 0; at < p->environment_len; at += strlen(p->environment + at) + 1) {
        const char *entry = p->environment + at;
        if (strncmp(entry, name, len) == 0 && entry[len] == '=') {
            return entry + len + 1;
        }
    }
    return NULL;
}

/* ---- the verdict ---- */

static void set(struct fl_process *p, enum fl_verdict verdict, const char *reason, const char *what)
{
    p->verdict = verdict;
    snprintf(p->reason, sizeof p->reason, "%s%s", reason, what);
}

static void judge_unloaded(struct fl_process *p, const struct fl_served *s)
{
    const char *preloads = fl_process_value(p, "LD_PRELOAD");

    if (s->state == FL_SERVED_NOT_LOADED && strcmp(s->reason, "the loader did not map it") != 0) {
        set(p, FL_VERDICT_NOT, s->reason, "");
    } else if (preloads != NULL && strstr(preloads, "faultless") != NULL) {
        set(p, FL_VERDICT_NOT, "the loader did not find what LD_PRELOAD names", "");
    } else {
        set(p, FL_VERDICT_NOT, "not preloaded", "");
    }
}

/* The last part of the path that lies there. What is unprintable in it becomes '?'. */
static const char *name_at(pid_t pid, uint64_t at, char name[64])
{
    struct fl_live_memory memory = fl_live_memory_of(pid);
    char path[256] = "";
    int rc = memory.read(&memory, at, path, sizeof path - 1);
    const char *slash = strrchr(path, '/');

    snprintf(name, 64, "%.63s", rc != 0 ? "another allocator" : slash != NULL ? slash + 1 : path);
    for (char *c = name; *c != '\0'; c++) {
        *c = isprint((unsigned char)*c) ? *c : '?';
    }
    return name;
}

/* The library's own figures go before what the order of the loader lets expect: what stands in
 * front may pass requests on. */
static void judge(const struct reading *r)
{
    struct fl_process *p = r->p;
    struct fl_served s;
    uint64_t word;
    char name[64];

    fl_served_read(p->pid, p->library[0] != '\0' ? p->library : "libfaultless.so", &s);
    if (figure(r, FL_LIVE_REQUESTS, &word) && word != 0) {
        set(p, FL_VERDICT_SERVED, "", "");
    } else if (p->library[0] == '\0') {
        judge_unloaded(p, &s);
    } else if (s.state == FL_SERVED_SHADOWED) {
        set(p, FL_VERDICT_NOT, "its malloc is that of ", s.reason);
    } else if (figure(r, FL_LIVE_SHADOWED, &word) && word != 0) {
        set(p, FL_VERDICT_NOT, "its malloc is that of ", name_at(p->pid, word, name));
    } else if (figure(r, FL_LIVE_ACTIVE, &word) && word == 0) {
        set(p, FL_VERDICT_NOT, "the library is not active (FAULTLESS_DISABLE, a sandbox)", "");
    } else if (figure(r, FL_LIVE_HOME, &word) && word == 0) {
        set(p, FL_VERDICT_NOT, "a child of fork that the library leaves alone", "");
    } else { /* its figures may be refused: then more is not known */
        bool is_idle = r->page == 0 || r->page == -EAGAIN;
        set(p, is_idle ? FL_VERDICT_IDLE : FL_VERDICT_SERVED, "", "");
    }
}

int fl_process_read(pid_t pid, struct fl_process *p)
{
    struct fl_usage usage;
    struct reading *r = calloc(1, sizeof *r);

    *p = (struct fl_process){.pid = pid};
    int rc = r == NULL ? -ENOMEM : fl_proc_read_usage(pid, 0, &usage, p->name);
    if (rc == 0) {
        r->p = p;
        r->page = -EAGAIN;
        rc = read_files(r);
        rc = rc == 0 && r->last[0] == '\0' ? -ESRCH : rc; /* it has ended, or is the kernel's */
    }
    if (rc == 0) {
        read_environment(p);
        read_memory(r);
        read_status(p);
        judge(r);
    } else {
        set(p, FL_VERDICT_UNKNOWN, "it cannot be looked at: ", strerror(-rc));
    }
    free(r);
    return rc == -ENOENT ? -ESRCH : rc;
}

void fl_process_end(struct fl_process *p)
{
    free(p->environment);
    p->environment = NULL;
    p->environment_len = 0;
}
