/* The table of helper threads: an entry outlives its thread, for the process's totals do too. */
#include "faultstat/threads.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The kernel names the workers of io_uring after the thread that made the requests. */
static bool is_helper(pid_t pid, const char name[16])
{
    static const char worker_prefix[] = "iou-wrk-";
    struct fl_usage unused;
    char owner[16];
    if (!has_prefix(name, worker_prefix)) {
        return has_prefix(name, "fl-");
    }
    pid_t tid = (pid_t)atoi(name + strlen(worker_prefix));
    return tid > 0 && fl_proc_read_usage(pid, tid, &unused, owner) == 0 && has_prefix(owner, "fl-");
}

static struct fl_thread *find_or_add(struct fl_threads *table, pid_t pid, pid_t tid, uint64_t born)
{
    for (unsigned i = 0; i < table->count; i++) {
        if (table->entry[i].tid == tid && table->entry[i].last.born == born) {
            return &table->entry[i];
        }
    }
    if (table->count == FL_THREADS_MAX) {
        table->lost++;
        return NULL;
    }
    table->entry[table->count].pid = pid;
    table->entry[table->count].tid = tid;
    return &table->entry[table->count++];
}

int fl_threads_sample(struct fl_threads *table, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return -errno;
    }
    const struct dirent *item;
    while ((item = readdir(folder)) != NULL) {
        pid_t tid = (pid_t)atoi(item->d_name);
        struct fl_usage usage;
        char name[16];
        if (tid <= 0 || fl_proc_read_usage(pid, tid, &usage, name) != 0 || !is_helper(pid, name)) {
            continue;
        }
        struct fl_thread *entry = find_or_add(table, pid, tid, usage.born);
        if (entry != NULL) {
            entry->last = usage;
        }
    }
    closedir(folder);
    return 0;
}

struct fl_usage fl_threads_sum(const struct fl_threads *table, pid_t pid)
{
    struct fl_usage sum = {0};
    for (unsigned i = 0; i < table->count; i++) {
        const struct fl_usage *last = &table->entry[i].last;
        if (pid != 0 && table->entry[i].pid != pid) {
            continue;
        }
        sum.minor += last->minor;
        sum.major += last->major;
        sum.user_ns += last->user_ns;
        sum.sys_ns += last->sys_ns;
    }
    return sum;
}
