/* Memory that is short: how the worker hears of it, and what it does. Everything free goes back at
 * once; decay would be too slow.
 *
 * stall   the kernel counts how long tasks wait for memory (PSI), on the machine and in the own
 *         cgroup of v2. Where it
 *         lets us wait for too much of it, the worker does.
 * limit   the own cgroup has met its limit: memory.events of v2, the pressure level of v1. Page
 *         cache alone gets it there,
 *         and gives way when it has to: it counts only when, without the cache, less than half of
 *         some limit is left.
 * Between two releases lies a second; what comes meanwhile waits in its descriptor. Sources: kernel
 * docs accounting/psi, cgroup-v2 memory.events, cgroup-v1 memory 11 (memory pressure). */
#include "uffd/internal.h"

#include <errno.h>
#include <string.h>

static const uint64_t quiet_ns = 1000000000; /* between two releases */

/* Stalls of any task in us, and the window. Unprivileged ones get whole 2 s alone (Linux 6.5). */
static const char *const triggers[] = {"some 70000 1000000", "some 150000 2000000"};

enum { PATH_BYTES = FL_CGROUP_PATH + 64 };

static void release(struct fl_worker *w)
{
    if (fl_sys.now_ns() < w->quiet_ns) { /* two sources spoke at once */
        return;
    }
    fl_assert(!fl_lock_is_held(FL_RANK_REGION, FL_SHARDS));
    fl_region_release(w->region);
    w->quiet_ns = fl_sys.now_ns() + quiet_ns;
}

static bool stalled(struct fl_worker *w, const struct fl_source *s, short came)
{
    (void)s;
    fl_assert(s->fd >= 0 && s->pressure);
    if ((came & POLLERR) != 0) { /* its cgroup is gone */
        return false;
    }
    if (fl_region_kept(w->region) != SIZE_MAX) { /* else the program wants it kept */
        release(w);
    }
    return true;
}

static bool limit_met(struct fl_worker *w, const struct fl_source *s, short came)
{
    struct fl_memory m;
    (void)came; /* POLLERR is how such a file says that it has changed */

    fl_assert(s->fd >= 0 && s->pressure);
    if (fl_events.take(s->fd) != 0) {
        return false;
    }
    fl_memory_look(&m, &w->scratch);
    if (m.eager == 0) {
        release(w);
    }
    return true;
}

static void watch_stalls(struct fl_worker *w, int fd)
{
    fl_assert(fd >= 0 && w->watching);
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        if (fl_events.tell(fd, triggers[i], strlen(triggers[i]) + 1) == 0) {
            (void)fl_source_add(w, (struct fl_source){fd, POLLPRI, true, stalled});
            return;
        }
    }
    (void)fl_events.close(fd);
}

/* Opens the file in the process's cgroup, or in the nearest one above that has it: in a container
 * the path may be the host's, and the mount is the cgroup. `path` is left as that of the file.
 *   own    folder of the cgroup, below `mount`; "": there is none */
static int open_upwards(const char *own, const char *mount, const char *file, bool writable,
                        char path[static PATH_BYTES], int *out_fd)
{
    for (size_t len = strlen(own); len >= strlen(mount);) {
        fl_assert(own[0] == '/');
        struct fl_text t = fl_text_on(path, PATH_BYTES);
        fl_text_str(&t, own);
        fl_assert(len <= t.len);
        t.len = len;
        fl_text_str(&t, file);
        if (fl_events.open(path, writable, out_fd) == 0) {
            return 0;
        }
        while (own[--len] != '/') {
        }
    }
    return -ENOENT;
}

static void watch_v2(struct fl_worker *w, const char *own)
{
    static const char mount[] = "/sys/fs/cgroup";
    char path[PATH_BYTES];
    int fd;

    if (open_upwards(own, mount, "/memory.pressure", true, path, &fd) == 0) {
        watch_stalls(w, fd);
    }
    if (open_upwards(own, mount, "/memory.events", false, path, &fd) == 0) {
        (void)fl_events.take(fd); /* changes count from here */
        (void)fl_source_add(w, (struct fl_source){fd, POLLPRI, true, limit_met});
    }
}

/* The control file is told which counter to raise, and on whose level: text as in `printf "%d %d
 * medium"`. */
static bool tell_level(int control_fd, int counter_fd, int level_fd)
{
    char text[64];
    struct fl_text t = fl_text_on(text, sizeof text);

    fl_text_u64(&t, (uint64_t)counter_fd);
    fl_text_str(&t, " ");
    fl_text_u64(&t, (uint64_t)level_fd);
    fl_text_str(&t, " medium");
    return fl_events.tell(control_fd, text, t.len) == 0;
}

/* Neither file is needed once the counter is known. */
static void watch_v1(struct fl_worker *w, const char *own)
{
    static const char mount[] = "/sys/fs/cgroup/memory", control[] = "/cgroup.event_control";
    char path[PATH_BYTES];
    int control_fd, level_fd, fd;

    if (open_upwards(own, mount, control, true, path, &control_fd) != 0) {
        return;
    }
    fl_assert(strlen(path) >= sizeof control - 1);
    struct fl_text t = {path, sizeof path, strlen(path) - (sizeof control - 1)};
    fl_text_str(&t, "/memory.pressure_level");
    if (fl_events.open(path, false, &level_fd) == 0) {
        if (fl_events.counter(&fd) == 0) {
            if (tell_level(control_fd, fd, level_fd)) {
                (void)fl_source_add(w, (struct fl_source){fd, POLLIN, true, limit_met});
            } else {
                (void)fl_events.close(fd);
            }
        }
        (void)fl_events.close(level_fd);
    }
    (void)fl_events.close(control_fd);
}

void fl_pressure_watch(struct fl_worker *w)
{
    struct fl_memory m;
    int fd;

    fl_assert(!w->watching && w->wake_fd >= 0);
    w->watching = true;
    if (fl_events.open("/proc/pressure/memory", true, &fd) == 0) {
        watch_stalls(w, fd);
    }
    w->scratch.looks = 0; /* finds the cgroups anew */
    fl_memory_look(&m, &w->scratch);
    watch_v2(w, w->scratch.own[0]);
    watch_v1(w, w->scratch.own[1]);
}

void fl_pressure_unwatch(struct fl_worker *w)
{
    fl_assert(w->watching);
    w->watching = false;
    for (struct fl_source *s = w->source; s < w->source + FL_WORKER_SOURCES; s++) {
        if (s->fd >= 0 && s->pressure) {
            fl_source_close(w, s);
        }
    }
}
