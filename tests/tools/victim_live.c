/* Does what it is told under libfaultless, says in a line what its own statistics are, and waits
 * for the end of its standard input.
 *
 *   victim_live work      blocks that it keeps, and others that it frees
 *   victim_live threads   the same in four threads
 *   victim_live steps     steps until a plan serves them; it waits amid one
 *   victim_live fork      work; a child of fork keeps one block more. A line each
 *   victim_live filter    work, and then no system call but read, write and exit
 *   victim_live files     its descriptors and shared mappings instead of statistics
 *   victim_live exec      work; after a line of input it is cat, without the library */
#include "faultless/faultless.h"

#include <dirent.h>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { KEPT = 12, ROUNDS = 16, STEPS = 60, THREADS = 4, MIB = 1 << 20 };

static char *kept[KEPT];
static int (*read_stats)(struct fl_stats *);
static int (*read_residency)(struct fl_residency *);
static int (*step_begin)(struct fl_step_context *), (*step_end)(struct fl_step_context *);

static void *need(void *p)
{
    if (p == NULL) {
        _exit(3);
    }
    return p;
}

static char *touched(size_t len)
{
    return memset(need(malloc(len)), 1, len);
}

static void *churn(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        char *a = touched((size_t)(1 + i % 4) * MIB);
        char *b = touched((size_t)(1 + i % 3) * MIB);
        free(a);
        free(b);
    }
    return NULL;
}

static void work(void)
{
    for (int i = 0; i < KEPT; i++) {
        kept[i] = touched(4 * MIB);
    }
    (void)churn(NULL);
}

static void work_in_threads(void)
{
    pthread_t thread[THREADS];
    work();
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread[i], NULL, churn, NULL) != 0) {
            _exit(3);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
}

static void step(void)
{
    char *block[6];
    (void)step_begin(NULL);
    for (int i = 0; i < 6; i++) {
        block[i] = touched((size_t)(1 + i) * MIB);
    }
    for (int i = 0; i < 6; i++) {
        free(block[i]);
    }
    (void)step_end(NULL);
}

static void work_in_steps(void)
{
    for (int i = 0; i < STEPS; i++) {
        step();
        usleep(2000); /* the worker packs meanwhile */
    }
    (void)step_begin(NULL);
    kept[0] = touched(1 * MIB);
    kept[1] = touched(2 * MIB);
}

static const struct {
    const char *name;
    size_t at;
} field[] = {
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct fl_stats, name)                                                     \
    }
    FIELD(active),       FIELD(requests),       FIELD(cache_hits),      FIELD(stalls),
    FIELD(lazy),         FIELD(refused),        FIELD(in_use_bytes),    FIELD(populated_bytes),
    FIELD(stock_bytes),  FIELD(cached_bytes),   FIELD(plan_free_bytes), FIELD(free_held_bytes),
    FIELD(served_bytes), FIELD(populate_bytes), FIELD(purge_bytes),     FIELD(move_bytes),
    FIELD(plan_hits),    FIELD(plan_misses),    FIELD(plan_steps),      FIELD(plan_layouts),
    FIELD(plan_drops),   FIELD(rung),
#undef FIELD
};

static void say(void)
{
    char line[4096];
    struct fl_stats stats = {.size = sizeof(stats)};
    struct fl_residency there = {.size = sizeof(there)};
    int len = snprintf(line, sizeof(line), "{\"pid\": %d", (int)getpid());
    (void)read_residency(&there);
    (void)read_stats(&stats);
    for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
        unsigned long long value = *(uint64_t *)(void *)((char *)&stats + field[i].at);
        len += snprintf(line + len, sizeof(line) - (size_t)len, ", \"%s\": %llu", field[i].name,
                        value);
    }
    len += snprintf(line + len, sizeof(line) - (size_t)len, ", \"live_bytes\": %llu}\n",
                    (unsigned long long)there.live_bytes);
    if (write(STDOUT_FILENO, line, (size_t)len) != len) {
        _exit(3);
    }
}

/* What a page of ours would be seen by, were there one with a file. */
static void say_files(void)
{
    char line[8192] = "files";
    char text[512];
    DIR *folder = need(opendir("/proc/self/fd"));
    const struct dirent *item;
    while ((item = readdir(folder)) != NULL) {
        int fd = atoi(item->d_name);
        ssize_t n = item->d_name[0] != '.' && fd != dirfd(folder)
                        ? readlinkat(dirfd(folder), item->d_name, text, sizeof(text) - 1)
                        : -1;
        if (n > 0 && fd > STDERR_FILENO) {
            text[n] = '\0';
            strncat(strcat(line, " "), text, 1024);
        }
    }
    closedir(folder);
    FILE *maps = need(fopen("/proc/self/maps", "re"));
    while (fgets(text, sizeof(text), maps) != NULL) {
        const char *mode = strchr(text, ' ');
        if (mode != NULL && mode[4] == 's') {
            text[strcspn(text, "\n")] = '\0';
            strncat(strcat(line, " "), text, 512);
        }
    }
    fclose(maps);
    puts(line);
    fflush(stdout);
}

static void wait_for_end(void)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

static void become_cat(void)
{
    char byte;
    (void)!read(STDIN_FILENO, &byte, 1);
    unsetenv("LD_PRELOAD");
    execlp("cat", "cat", (char *)NULL);
    _exit(3);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    bool forks = strcmp(what, "fork") == 0;
#define FIND(name) *(void **)&name = dlsym(RTLD_DEFAULT, "fl_" #name)
    *(void **)&read_stats = dlsym(RTLD_DEFAULT, "fl_stats_read");
    *(void **)&read_residency = dlsym(RTLD_DEFAULT, "fl_residency_read");
    FIND(step_begin);
    FIND(step_end);
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where Yama wants it said */
    if (strcmp(what, "files") == 0) {
        work();
        say_files();
        wait_for_end();
        return 0;
    }
    if (strcmp(what, "steps") == 0) {
        work_in_steps();
    } else if (strcmp(what, "threads") == 0) {
        work_in_threads();
    } else {
        work();
    }
    say();
    if (forks && fork() == 0) {
        kept[0] = touched(24 * MIB);
        say();
    }
    if (strcmp(what, "exec") == 0) {
        become_cat();
    }
    if (strcmp(what, "filter") == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0) {
        wait_for_end();
        syscall(SYS_exit, 0); /* exit_group is not allowed */
    }
    wait_for_end();
    return 0;
}
