/* A loop whose iterations are alike, on one node or several; and memory that is read from another
 * node than it lies on.
 *
 *   victim_node_steps steps N         a thread bound to each node that has CPUs makes N declared
 *                                     steps, one thread after the other
 *   victim_node_steps beside N        the same, all threads at once
 *   victim_node_steps moved N         a thread of the first node makes N steps, moves to the last,
 *                                     goes on until all of its blocks lie there, though not for
 *                                     ever, and makes N more
 *   victim_node_steps hinted SECONDS  reads on the last node for so long what it has put on the
 *                                     first
 *
 * Prints "LABEL: node0 N node1 N ... nowhere N" of the last step's blocks, in base pages, and
 * "faults LABEL N": the minor faults that the thread took in the last quarter of its steps, or
 * while it read. */
#include "../preload/victims/victim.h"
#include "nodes.h"

#include <dlfcn.h>
#include <time.h>

enum { REQUESTS = 48, LIVES = 9, LABEL = 32, LINE = 512, PATIENCE = 1000 };

static struct nodes nodes;
static int (*begin)(void *), (*end)(void *);
static int steps;

static size_t size_of(int request)
{
    return ((size_t)128 * KIB << request % 6) + (size_t)request * 4 * KIB;
}

static void take_back(char *p, int request, struct census *c)
{
    if (c != NULL) {
        nodes_count(c, p, size_of(request));
    }
    free(p);
}

/* Each block lives for a few requests. With `c`, where they lay. */
static void step(struct census *c)
{
    char *block[REQUESTS];

    CHECK(begin == NULL || begin(NULL) == 0);
    for (int i = 0; i < REQUESTS; i++) {
        block[i] = taken(size_of(i));
        for (size_t at = 0; at < size_of(i); at += 4 * KIB) {
            block[i][at] = 1;
        }
        if (i >= LIVES) {
            take_back(block[i - LIVES], i - LIVES, c);
        }
    }
    for (int i = REQUESTS - LIVES; i < REQUESTS; i++) {
        take_back(block[i], i, c);
    }
    CHECK(end == NULL || end(NULL) == 0);
}

static void loop(const char *what, int node)
{
    struct census c = {0};
    char label[LABEL];
    long before = 0;

    nodes_run_on(&nodes, node);
    for (int i = 0; i < steps; i++) {
        if (i == steps - steps / 4) {
            before = faults_of(RUSAGE_THREAD);
        }
        step(NULL);
        if (i < steps / 2) {
            usleep(2000); /* time for what looks for repeats */
        }
    }
    long faults = faults_of(RUSAGE_THREAD) - before;
    step(&c);
    snprintf(label, sizeof label, "%s %d", what, node);
    nodes_print(&nodes, label, &c);
    dprintf(1, "faults %s %ld\n", label, faults);
}

/* Mappings that are `chosen` get a policy: hinting faults are for memory without one, so what is
 * counted is of the rest alone. */
static void mind(bool (*chosen)(const char *line, uintptr_t from, uintptr_t to))
{
    static char text[1 << 16];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    CHECK(fd >= 0);
    while ((n = read(fd, text + len, sizeof text - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(fd);
    text[len] = '\0';
    for (char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *dash;
        uintptr_t from = strtoull(line, &dash, 16);
        uintptr_t to = *dash == '-' ? strtoull(dash + 1, NULL, 16) : 0;
        if (to > from && chosen(line, from, to)) {
            (void)nodes_policy_of((void *)from, to - from, POLICY_PREFERRED, 0);
        }
    }
}

static uintptr_t kept;

static bool is_not_kept(const char *line, uintptr_t from, uintptr_t to)
{
    (void)line;
    return kept < from || kept >= to;
}

/* What the kernel, the loader and the C library have mapped before the first large request. */
static bool is_others(const char *line, uintptr_t from, uintptr_t to)
{
    const char *end = strchrnul(line, '\n'), *rights = strchr(line, ' ');

    (void)from;
    (void)to;
    return rights != NULL && rights < end && rights[1] == 'r' &&
           memmem(line, (size_t)(end - line), "[anon:faultless", strlen("[anon:faultless")) == NULL;
}

/* A thread's stack, and what the thread library keeps in it. */
static void mind_stack(void)
{
    pthread_attr_t attr;
    void *base;
    size_t len;

    CHECK(pthread_getattr_np(pthread_self(), &attr) == 0);
    CHECK(pthread_attr_getstack(&attr, &base, &len) == 0);
    (void)nodes_policy_of(base, len, POLICY_PREFERRED, 0);
    pthread_attr_destroy(&attr);
}

static void *steps_thread(void *arg)
{
    mind_stack();
    loop("steps", (int)((const cpu_set_t *)arg - nodes.cpus));
    return NULL;
}

static void each_steps(bool at_once)
{
    pthread_t t[NODES_MOST];

    for (int i = 0; i < nodes.n; i++) {
        CHECK(!nodes.has_cpu[i] || pthread_create(&t[i], NULL, steps_thread, &nodes.cpus[i]) == 0);
        CHECK(at_once || !nodes.has_cpu[i] || pthread_join(t[i], NULL) == 0);
    }
    for (int i = 0; i < nodes.n; i++) {
        CHECK(!at_once || !nodes.has_cpu[i] || pthread_join(t[i], NULL) == 0);
    }
}

static void hinted(int seconds)
{
    const size_t each = 48 * MIB;
    struct census c = {0};
    char label[LABEL];
    struct timespec now;
    volatile char sum = 0;

    nodes_run_on(&nodes, nodes_first_cpu(&nodes));
    char *p = taken(each);
    for (size_t at = 0; at < each; at += 4 * KIB) {
        p[at] = 1;
    }
    kept = (uintptr_t)p + each / 2;
    mind(is_not_kept);
    nodes_run_on(&nodes, nodes_last_cpu(&nodes));
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) ==
          0); /* whose page is new: before faults are counted */
    long hints = nodes_number("/proc/vmstat", "numa_hint_faults "),
         faults = faults_of(RUSAGE_THREAD);
    for (time_t until = now.tv_sec + seconds; now.tv_sec < until;) {
        for (size_t at = 0; at < each; at += KIB) {
            sum = (char)(sum + p[at]);
        }
        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    }
    faults = faults_of(RUSAGE_THREAD) - faults;
    hints = nodes_number("/proc/vmstat", "numa_hint_faults ") - hints;
    nodes_count(&c, p, each);
    snprintf(label, sizeof label, "hinted %d", nodes_last_cpu(&nodes));
    nodes_print(&nodes, label, &c);
    dprintf(1, "faults %s %ld\nhints %ld\n", label, faults, hints);
    free(p);
}

/* Until no block of a step lies on another node. */
static void settle(int node)
{
    struct census c;

    nodes_run_on(&nodes, node);
    for (int i = 0; i < PATIENCE; i++) {
        memset(&c, 0, sizeof c);
        step(&c);
        usleep(2000);
        long elsewhere = c.nowhere;
        for (int k = 0; k < nodes.n; k++) {
            elsewhere += k != node ? c.on[k] : 0;
        }
        if (elsewhere == 0) {
            break;
        }
    }
}

int main(int argc, char **argv)
{
    const char *mode = argc == 3 ? argv[1] : "";
    void *found[] = {dlsym(RTLD_DEFAULT, "fl_step_begin"), dlsym(RTLD_DEFAULT, "fl_step_end")};

    memcpy(&begin, &found[0], sizeof begin);
    memcpy(&end, &found[1], sizeof end);
    nodes_read(&nodes);
    steps = argc == 3 ? atoi(argv[2]) : 0;
    if (strcmp(mode, "steps") == 0 || strcmp(mode, "beside") == 0) {
        mind(is_others);
        each_steps(strcmp(mode, "beside") == 0);
    } else if (strcmp(mode, "moved") == 0) {
        loop("before", nodes_first_cpu(&nodes));
        settle(nodes_last_cpu(&nodes));
        loop("moved", nodes_last_cpu(&nodes));
    } else if (strcmp(mode, "hinted") == 0) {
        hinted(steps);
    } else {
        dprintf(2, "no such mode\n");
        return 2;
    }
    return 0;
}
