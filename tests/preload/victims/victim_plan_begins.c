/* Steps of 512 MiB: what do those take in faults in which a plan begins to serve? The most that a
 * step after the third took is printed. */
#include "victim.h"

#include <dirent.h>
#include <sys/resource.h>

enum { BLOCKS = 32, STEPS = 14, KNOWN = 3 };

static long faults_here(void)
{
    struct rusage u;
    CHECK(getrusage(RUSAGE_THREAD, &u) == 0);
    return u.ru_minflt;
}

/* The other threads that do not sleep. */
static int others_awake(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = -1; /* this one */

    CHECK(tasks != NULL);
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        char path[300], stat[512];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/stat", d->d_name);
        FILE *f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f == NULL) {
            continue;
        }
        const char *end = fgets(stat, sizeof stat, f) == NULL ? NULL : strrchr(stat, ')');
        n += end != NULL && end[2] != 'S';
        CHECK(fclose(f) == 0);
    }
    CHECK(closedir(tasks) == 0);
    return n;
}

/* The worker has done what the last request asked it for, on however busy a machine. */
static void wait_for_worker(void)
{
    for (int asleep = 0; asleep < 3;) {
        CHECK(usleep(1000) == 0);
        asleep = others_awake() == 0 ? asleep + 1 : 0;
    }
}

static void step(void)
{
    static char *p[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        size_t n = (size_t)(15 + i % 3) * MIB + (size_t)i * 64 * KIB;
        CHECK((p[i] = malloc(n)) != NULL);
        for (size_t at = 0; at < n; at += 4 * KIB) {
            p[i][at] = 1;
        }
        if (i == 0) {
            wait_for_worker();
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(p[(i * 7) % BLOCKS]);
    }
}

int main(void)
{
    long most = 0;

    for (int i = 0; i < STEPS; i++) {
        long before = faults_here();
        step();
        long now = faults_here() - before;
        most = i >= KNOWN && now > most ? now : most;
    }
    printf("most %ld\n", most);
    puts("done");
    return 0;
}
