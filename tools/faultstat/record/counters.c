#include "faultstat/record/counters.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fl_thread_count *find_thread(struct fl_counters *c, pid_t tid, uint64_t born)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->thread[i].tid == tid && c->thread[i].born == born) {
            return &c->thread[i];
        }
    }
    if (c->count == c->capacity) {
        size_t capacity = c->capacity * 2 + 16;
        struct fl_thread_count *grown = reallocarray(c->thread, capacity, sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        c->thread = grown;
        c->capacity = capacity;
    }
    c->thread[c->count] = (struct fl_thread_count){.tid = tid, .born = born};
    return &c->thread[c->count++];
}

static void count_under(struct fl_recorder *recorder, const char *who, double faults)
{
    char text[48];
    snprintf(text, sizeof(text), "thread %s", who);
    struct fl_place place = {fl_modules_get(&recorder->unwinder.modules, text), 0};
    fl_recorder_add(recorder, &place, 1, FL_KIND_OTHER, FL_SPAN_UNKNOWN, faults);
}

static void look_at_thread(struct fl_recorder *recorder, pid_t pid, pid_t tid)
{
    struct fl_usage usage;
    char name[16];
    if (fl_proc_read_usage(pid, tid, &usage, name) != 0) {
        return;
    }
    struct fl_thread_count *thread = find_thread(recorder->counters, tid, usage.born);
    uint64_t faults = usage.minor + usage.major;
    if (thread != NULL && faults > thread->faults) {
        count_under(recorder, name, (double)(faults - thread->faults));
        recorder->counters->named += faults - thread->faults;
        thread->faults = faults;
    }
}

void fl_counters_look(struct fl_recorder *recorder, pid_t pid, uint64_t now_ns)
{
    struct fl_counters *c = recorder->counters;
    struct fl_usage all;
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0) {
            look_at_thread(recorder, pid, tid);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    if (fl_proc_read_usage(pid, 0, &all, NULL) == 0 && all.minor + all.major > c->total) {
        fl_series_at(&recorder->series, now_ns)->faults +=
            (double)(all.minor + all.major - c->total);
        c->total = all.minor + all.major;
    }
}

void fl_counters_finish(struct fl_recorder *recorder)
{
    struct fl_counters *c = recorder->counters;
    if (c->total > c->named) {
        count_under(recorder, "that ended", (double)(c->total - c->named));
    }
}
