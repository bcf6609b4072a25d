/* What victims see of the worker thread: its folder in /proc, and the memory that it gives back. */
#ifndef FAULTLESS_TESTS_PRELOAD_WORKER_H
#define FAULTLESS_TESTS_PRELOAD_WORKER_H

#include "await.h"
#include "victim.h"

#include <dirent.h>

static inline void nap(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static inline size_t rss_mib(void)
{
    return rss_kib() / KIB;
}

/* Id of the thread named fl-uffd; empty when there is none. */
static char worker_id[32];
static inline int find_worker(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    worker_id[0] = '\0';
    while ((e = readdir(d)) != NULL) {
        char path[300], name[8192];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        if (strncmp(proc_text(name, path, ""), "fl-uffd\n", 8) == 0) {
            snprintf(worker_id, sizeof worker_id, "%.31s", e->d_name);
        }
    }
    closedir(d);
    return worker_id[0] != '\0';
}

/* A file of its folder in /proc. */
static inline const char *worker_file(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", worker_id, name);
    return path;
}

/* Until it has ended: nothing is left for it to do. */
static inline void wait_until_gone(void)
{
    FL_AWAIT(!find_worker());
}

static inline void wait_until_small(size_t mib)
{
    FL_AWAIT(rss_mib() <= mib);
}

/* It may have begun, had nothing to do any more, and ended before this thread looks: it gets
 * something to do until it is seen. */
static inline void wait_for_worker(void)
{
    while (!find_worker()) {
        use(64 * MIB);
    }
}

/* Does it sleep, and what helps it? Where it is not there it does. */
static inline int worker_sleeps(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int awake = 0;

    CHECK(tasks != NULL);
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        char path[300], stat[8192];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", d->d_name);
        const char *name = strstr(proc_text(stat, path, ""), "(fl-"), *end = strrchr(stat, ')');
        awake += name != NULL && end != NULL && end[2] != 'S';
    }
    CHECK(closedir(tasks) == 0);
    return awake == 0;
}

/* It has done what the last request asked it for, on however busy a machine. */
static inline void wait_until_worker_sleeps(void)
{
    for (int looks = 0; looks < 3; looks = worker_sleeps() ? looks + 1 : 0) {
        fl_between_looks();
    }
}

#endif
