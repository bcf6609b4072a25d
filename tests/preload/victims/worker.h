/* What victims see of the worker thread: its folder in /proc, and the memory that it gives back. */
#ifndef FAULTLESS_TESTS_PRELOAD_WORKER_H
#define FAULTLESS_TESTS_PRELOAD_WORKER_H

#include "victim.h"

#include <dirent.h>
#include <time.h>

static inline void nap(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static inline size_t rss_mib(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strtoull(strchr(text, ' '), NULL, 10) / 256;
}

/* Id of the thread named fl-uffd; empty when there is none. */
static char worker_id[32];
static inline int find_worker(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    worker_id[0] = '\0';
    while ((e = readdir(d)) != NULL) {
        char path[300], name[64];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
        close(fd);
        if (n > 0 && strncmp(name, "fl-uffd\n", 8) == 0) {
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
    for (int i = 0; find_worker(); i++) {
        CHECK(i < 1000);
        nap(10);
    }
}

static inline void use(size_t n)
{
    char *p = malloc(n);
    CHECK(p != NULL);
    memset(p, 1, n);
    free(p);
}

static inline void wait_until_small(size_t mib)
{
    for (int i = 0; rss_mib() > mib; i++) {
        CHECK(i < 1000); /* 10 s */
        nap(10);
    }
}

static inline void wait_for_worker(void)
{
    for (int i = 0; !find_worker(); i++) {
        CHECK(i < 1000);
        nap(10);
    }
}

#endif
