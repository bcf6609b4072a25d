/* sysfs for what there is, system calls for what is where: no library between. */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BATCH = 512, PAGE = 4096, MASK_BITS = 8 * sizeof(unsigned long) + 1 };

static _Noreturn void give_up(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

/* False: there is no such file. */
static bool slurp(const char *path, char text[static 1], size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* "0-3,8": calls add for each number. */
static void each_in_list(const char *text, void (*add)(void *, int), void *arg)
{
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') {
            last = strtol(end + 1, &end, 10);
        }
        for (long i = first; i <= last; i++) {
            add(arg, (int)i);
        }
        text = *end == ',' ? end + 1 : end;
    }
}

static void add_node(void *arg, int node)
{
    struct nodes *nodes = arg;

    if (node != nodes->n || node >= NODES_MOST) {
        errno = ERANGE;
        give_up("numbers of nodes");
    }
    nodes->n++;
}

static void add_memory(void *arg, int node)
{
    ((struct nodes *)arg)->has_memory[node] = true;
}

struct adding {
    struct nodes *nodes;
    int node;
};

static void add_cpu(void *arg, int cpu)
{
    struct adding *a = arg;

    a->nodes->has_cpu[a->node] = true;
    a->nodes->last_cpu[a->node] = cpu;
    CPU_SET((size_t)cpu, &a->nodes->cpus[a->node]);
}

static void read_node(struct nodes *nodes, int node)
{
    char path[NODES_TEXT], text[NODES_TEXT], *at = text;
    struct adding a = {nodes, node};

    CPU_ZERO(&nodes->cpus[node]);
    nodes->last_cpu[node] = -1;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    if (!slurp(path, text, sizeof text)) {
        give_up(path);
    }
    each_in_list(text, add_cpu, &a);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", node);
    if (!slurp(path, text, sizeof text)) {
        give_up(path);
    }
    for (int to = 0; to < nodes->n; to++) {
        nodes->distance[node][to] = (int)strtol(at, &at, 10);
    }
}

void nodes_read(struct nodes *nodes)
{
    char text[NODES_TEXT];

    memset(nodes, 0, sizeof *nodes);
    if (!slurp("/sys/devices/system/node/online", text, sizeof text)) {
        give_up("/sys/devices/system/node");
    }
    each_in_list(text, add_node, nodes);
    if (slurp("/sys/devices/system/node/has_memory", text, sizeof text)) {
        each_in_list(text, add_memory, nodes);
    }
    for (int i = 0; i < nodes->n; i++) {
        read_node(nodes, i);
    }
}

static int last(const struct nodes *nodes, const bool *of)
{
    int found = 0;

    for (int i = 0; i < nodes->n; i++) {
        found = of[i] ? i : found;
    }
    return found;
}

int nodes_first_cpu(const struct nodes *nodes)
{
    int i = 0;

    while (i + 1 < nodes->n && !nodes->has_cpu[i]) {
        i++;
    }
    return i;
}

int nodes_last_cpu(const struct nodes *nodes)
{
    return last(nodes, nodes->has_cpu);
}

int nodes_last_memory(const struct nodes *nodes)
{
    return last(nodes, nodes->has_memory);
}

void nodes_run_on(const struct nodes *nodes, int node)
{
    unsigned cpu, here;

    if (sched_setaffinity(0, sizeof nodes->cpus[node], &nodes->cpus[node]) != 0 ||
        getcpu(&cpu, &here) != 0) {
        give_up("run on a node");
    }
    if ((int)here != node) {
        errno = EXDEV;
        give_up("run on a node");
    }
}

bool nodes_policy(int mode, unsigned long mask)
{
    return syscall(SYS_set_mempolicy, mode, mask != 0 ? &mask : NULL, mask != 0 ? MASK_BITS : 0) ==
           0;
}

bool nodes_policy_of(void *base, size_t len, int mode, unsigned long mask)
{
    return syscall(SYS_mbind, base, len, mode, mask != 0 ? &mask : NULL, mask != 0 ? MASK_BITS : 0,
                   0) == 0;
}

void nodes_count(struct census *c, const void *base, size_t len)
{
    uintptr_t at = (uintptr_t)base & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)base + len;
    void *pages[BATCH];
    int where[BATCH];

    while (at < end) {
        unsigned long n = 0;
        for (; n < BATCH && at < end; n++, at += PAGE) {
            pages[n] = (void *)at;
        }
        if (syscall(SYS_move_pages, 0, n, pages, NULL, where, 0) != 0) {
            give_up("move_pages");
        }
        for (unsigned long i = 0; i < n; i++) {
            if (where[i] >= 0 && where[i] < NODES_MOST) {
                c->on[where[i]]++;
            } else {
                c->nowhere++;
            }
        }
    }
}

void nodes_print(const struct nodes *nodes, const char *label, const struct census *c)
{
    char line[NODES_TEXT];
    int at = snprintf(line, sizeof line, "%s:", label);

    for (int i = 0; i < nodes->n; i++) {
        at += snprintf(line + at, sizeof line - (size_t)at, " node%d %ld", i, c->on[i]);
    }
    dprintf(STDOUT_FILENO, "%s nowhere %ld\n", line, c->nowhere);
}

long nodes_number(const char *path, const char *key)
{
    static char text[65536];
    const char *p = slurp(path, text, sizeof text) ? strstr(text, key) : NULL;

    return p != NULL ? atol(p + strlen(key)) : -1;
}

long nodes_free_mib(int node)
{
    char path[NODES_TEXT];

    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    return nodes_number(path, "MemFree:") / 1024;
}
