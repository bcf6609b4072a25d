/* What an allocator does, and holds, when the program has freed everything and does nothing.
 *
 *   idle [--mib N] [--block-mib N] [--settle-ms N] [--watch-ms N]
 *
 * Writes and frees --mib twice, waits --settle-ms, then looks at every thread but the main one, and
 * again after --watch-ms: the program has made none, so they are the allocator's. The last line is
 * `SUMMARY {json}`: wakes, the context switches between the looks, a thread that came or went
 * counting as one more; threads; rss_start_mib and rss_mib, before the first allocation and at the
 * end. */
#include "common.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 256 };

static long mib = 1024, block_mib = 32, settle_ms = 12000, watch_ms = 10000;

/* The threads of this process but the main one. */
struct look {
    struct {
        int tid;
        long switches;
    } thread[MOST];
    int count;
};

static long sum_of_lines(const char *path, const char *key)
{
    char line[256];
    long sum = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *at = strstr(line, key);
        if (at != NULL) {
            sum += atol(at + strlen(key));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return sum;
}

static void take_look(struct look *look)
{
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *item;
    memset(look, 0, sizeof(*look));
    while (folder != NULL && (item = readdir(folder)) != NULL && look->count < MOST) {
        char path[64];
        int tid = atoi(item->d_name);
        if (tid <= 0 || tid == getpid()) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
        look->thread[look->count].tid = tid;
        look->thread[look->count++].switches = sum_of_lines(path, "voluntary_ctxt_switches:");
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static int find(const struct look *look, int tid)
{
    for (int i = 0; i < look->count; i++) {
        if (look->thread[i].tid == tid) {
            return i;
        }
    }
    return -1;
}

static long wakes_between(const struct look *a, const struct look *b)
{
    long wakes = 0;
    for (int i = 0; i < a->count; i++) {
        wakes += find(b, a->thread[i].tid) < 0; /* it has ended */
    }
    for (int i = 0; i < b->count; i++) {
        int before = find(a, b->thread[i].tid);
        wakes += before < 0 ? b->thread[i].switches + 1
                            : b->thread[i].switches - a->thread[before].switches;
    }
    return wakes;
}

static double rss_mib(void)
{
    return (double)sum_of_lines("/proc/self/status", "VmRSS:") / 1024;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},
                                              {"--block-mib", &block_mib},
                                              {"--settle-ms", &settle_ms},
                                              {"--watch-ms", &watch_ms},
                                              {NULL, NULL}};
    static struct look before, after;
    fl_bench_options(argc, argv, option);
    double start = rss_mib();
    for (int i = 0; i < 2; i++) {
        fl_bench_warm((size_t)mib << 20, (size_t)block_mib << 20);
    }
    fl_bench_sleep_ms(settle_ms);
    take_look(&before);
    fl_bench_sleep_ms(watch_ms);
    take_look(&after);
    printf("SUMMARY {\"wakes\": %ld, \"wakes_a_second\": %.3f, \"threads\": %d, \"rss_start_mib\": "
           "%.2f, "
           "\"rss_mib\": %.2f}\n",
           wakes_between(&before, &after),
           (double)wakes_between(&before, &after) * 1e3 / (double)watch_ms, after.count, start,
           rss_mib());
    return 0;
}
