/* Reading /proc and getrusage at each mark; medians at the end. */
#include "meter.h"

#include "faultless/faultless.h"
#include "faultless/step.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum figure { FL_WALL_MS, FL_FAULTS, FL_USER_MS, FL_SYS_MS, FL_FIGURES };

static double row[FL_METER_STEPS][FL_FIGURES];
static double before[FL_FIGURES];
static int steps;
static double base_mib, base_tables_mib; /* at fl_meter_base */
/* What the program has live, and the same with each block rounded up to whole huge pages of 2
 * MiB. */
static struct tally {
    atomic_ptrdiff_t now, peak;
} live, live_huge;

/* Name and minor faults of a thread of this process. Returns whether it is there. */
static bool read_thread(const char *tid, char name[static 16], unsigned long *faults)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    int found = fscanf(file, "%*d (%15[^)]) %*c %*d %*d %*d %*d %*d %*u %lu", name, faults);
    fclose(file);
    return found == 2;
}

/* Threads named fl-*, and the io_uring workers that the kernel made for one of them. */
static bool is_helper(const char *name)
{
    char owner[16];
    unsigned long unused;
    if (strncmp(name, "iou-wrk-", 8) == 0) {
        return read_thread(name + 8, owner, &unused) && strncmp(owner, "fl-", 3) == 0;
    }
    return strncmp(name, "fl-", 3) == 0;
}

/* Minor faults of living helpers: what an allocator populates off the program's path. */
static unsigned long helper_faults(void)
{
    unsigned long sum = 0;
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *item;
    while (folder != NULL && (item = readdir(folder)) != NULL) {
        char name[16];
        unsigned long faults;
        if (item->d_name[0] != '.' && read_thread(item->d_name, name, &faults) && is_helper(name)) {
            sum += faults;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return sum;
}

static void sample(double now[static FL_FIGURES])
{
    struct timespec t;
    struct rusage u;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &u);
    now[FL_WALL_MS] = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
    now[FL_FAULTS] = (double)((unsigned long)u.ru_minflt - helper_faults());
    now[FL_USER_MS] = (double)u.ru_utime.tv_sec * 1e3 + (double)u.ru_utime.tv_usec / 1e3;
    now[FL_SYS_MS] = (double)u.ru_stime.tv_sec * 1e3 + (double)u.ru_stime.tv_usec / 1e3;
}

/* For bench/fit's tracer, when it is preloaded. */
static void mark_trace(void)
{
    void (*mark)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "fit_mark");
    if (mark != NULL) {
        mark();
    }
}

static double read_mib(const char *path, const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = atol(line + strlen(key));
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return (double)kib / 1024;
}

/* Of the library, when it is preloaded. */
static double tables_mib(void)
{
    struct fl_residency now = {.size = sizeof(now)};
    int (*look)(struct fl_residency *) =
        (int (*)(struct fl_residency *))dlsym(RTLD_DEFAULT, "fl_residency_read");

    return look != NULL && look(&now) == 0 ? (double)now.table_resident_bytes / (1 << 20) : 0;
}

void fl_meter_base(void)
{
    base_tables_mib = tables_mib();
    base_mib = read_mib("/proc/self/smaps_rollup", "Rss:");
}

void fl_meter_begin(void)
{
    mark_trace();
    (void)fl_step_mark();
    sample(before);
}

void fl_meter_step(int nap_ms)
{
    double after[FL_FIGURES];
    usleep((useconds_t)nap_ms * 1000);
    sample(after);
    for (int i = 0; i < FL_FIGURES && steps < FL_METER_STEPS; i++) {
        row[steps][i] = after[i] - before[i];
    }
    steps++;
    (void)fl_step_mark();
    sample(before);
}

static void count(struct tally *t, ptrdiff_t grown)
{
    ptrdiff_t now = atomic_fetch_add(&t->now, grown) + grown;
    ptrdiff_t peak = atomic_load(&t->peak);

    while (now > peak && !atomic_compare_exchange_weak(&t->peak, &peak, now)) {
    }
}

void fl_meter_live(ptrdiff_t grown)
{
    const ptrdiff_t huge = (ptrdiff_t)2 << 20;
    ptrdiff_t rounded = ((grown < 0 ? -grown : grown) + huge - 1) / huge * huge;

    count(&live, grown);
    count(&live_huge, grown < 0 ? -rounded : rounded);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void fl_meter_report(const char *name, int warmup)
{
    static double sorted[FL_FIGURES][FL_METER_STEPS];
    double mean[FL_FIGURES] = {0};
    int n = steps - warmup;
    mark_trace();
    for (int i = 0; i < FL_FIGURES; i++) {
        for (int s = 0; s < n; s++) {
            sorted[i][s] = row[warmup + s][i];
            mean[i] += sorted[i][s] / n;
        }
        qsort(sorted[i], (size_t)n, sizeof(double), compare_doubles);
    }
    printf(
        "SUMMARY {\"name\": \"%s\", \"steps\": %d, \"wall_ms\": %.2f, "
        "\"wall_mean_ms\": %.2f, \"wall_min_ms\": %.2f, \"minflt\": %.0f, \"minflt_mean\": %.1f, "
        "\"minflt_max\": %.0f, \"user_ms\": %.1f, \"sys_ms\": %.1f, \"sys_share\": %.4f, "
        "\"peak_live_mib\": %.2f, \"peak_live_huge_mib\": %.2f, \"hwm_mib\": %.2f, \"rss_mib\": "
        "%.2f, \"base_mib\": %.2f, \"tables_mib\": %.2f, \"ahp_end_mib\": %.0f, "
        "\"first_steps_ms\": [%.0f, %.0f, %.0f]}\n",
        name, n, sorted[FL_WALL_MS][n / 2], mean[FL_WALL_MS], sorted[FL_WALL_MS][0],
        sorted[FL_FAULTS][n / 2], mean[FL_FAULTS], sorted[FL_FAULTS][n - 1], mean[FL_USER_MS],
        mean[FL_SYS_MS], mean[FL_SYS_MS] / (mean[FL_USER_MS] + mean[FL_SYS_MS] + 1e-9),
        (double)atomic_load(&live.peak) / (1 << 20),
        (double)atomic_load(&live_huge.peak) / (1 << 20), read_mib("/proc/self/status", "VmHWM:"),
        read_mib("/proc/self/status", "VmRSS:"), base_mib, tables_mib() - base_tables_mib,
        read_mib("/proc/self/smaps_rollup", "AnonHugePages:"), row[0][FL_WALL_MS],
        row[1][FL_WALL_MS], row[2][FL_WALL_MS]);
}
