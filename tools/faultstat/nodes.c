/* numa_maps, line by line, and the threads' last CPUs. */
#include "faultstat/nodes.h"

#include "faultstat/proc.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FL_CPUS_MAX = 8192, FL_LIST_LEN = 65536 };

static uint16_t node_of_cpu[FL_CPUS_MAX]; /* constant after read_cpus */
static unsigned online;

/* Call `each` for every number of a list such as "0-3,8". */
static void for_each(const char *list, void (*each)(unsigned number, unsigned arg), unsigned arg)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10);
        unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        for (unsigned long i = first; i <= last && i < FL_CPUS_MAX; i++) {
            each((unsigned)i, arg);
        }
        list = *end == ',' ? end + 1 : end;
    }
}

static void put_cpu(unsigned cpu, unsigned node)
{
    node_of_cpu[cpu] = (uint16_t)node;
}

static void put_node(unsigned node, unsigned arg)
{
    static char text[FL_LIST_LEN];
    char path[64];
    (void)arg;
    online++;
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist", node);
    if (fl_proc_read_text(path, text, sizeof(text)) > 0) {
        for_each(text, put_cpu, node);
    }
}

static void read_cpus(void)
{
    char text[4096];
    if (fl_proc_read_text("/sys/devices/system/node/online", text, sizeof(text)) > 0) {
        for_each(text, put_node, 0);
    }
}

unsigned fl_nodes_online(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_cpus);
    return online;
}

/* The node with that id, added where it belongs; NULL: no room. */
static struct fl_node *find_or_add(struct fl_nodes *nodes, unsigned id)
{
    size_t i = nodes->count;
    while (i > 0 && nodes->node[i - 1].id >= id) {
        i--;
    }
    if (i < nodes->count && nodes->node[i].id == id) {
        return &nodes->node[i];
    }
    if (nodes->count == FL_NODES_MAX) {
        return NULL;
    }
    memmove(&nodes->node[i + 1], &nodes->node[i], (nodes->count - i) * sizeof(nodes->node[0]));
    nodes->count++;
    nodes->node[i] = (struct fl_node){.id = id};
    return &nodes->node[i];
}

/* "N0=12" of a token that begins at `at`; false: it is another. */
static bool parse_pages(const char *at, unsigned *id, uint64_t *pages)
{
    char *end;
    if (at[0] != 'N' || at[1] < '0' || at[1] > '9') {
        return false;
    }
    *id = (unsigned)strtoul(at + 1, &end, 10);
    if (*end != '=') {
        return false;
    }
    *pages = strtoull(end + 1, &end, 10);
    return *end == ' ' || *end == '\n' || *end == '\0';
}

/* Spaces and '=' in a file's name are written as octal numbers, so no name looks like a count. */
void fl_nodes_add_map(struct fl_nodes *nodes, const char *line)
{
    const char *size = strstr(line, " kernelpagesize_kB=");
    uint64_t page = size != NULL ? strtoull(strchr(size, '=') + 1, NULL, 10) << 10 : 4096;
    bool is_file = strstr(line, " file=") != NULL;
    for (const char *at = line; (at = strchr(at, ' ')) != NULL; at++) {
        unsigned id;
        uint64_t pages;
        struct fl_node *node = parse_pages(at + 1, &id, &pages) ? find_or_add(nodes, id) : NULL;
        if (node != NULL) {
            *(is_file ? &node->file : &node->anonymous) += pages * page;
        }
    }
}

void fl_nodes_add_thread(struct fl_nodes *nodes, unsigned id, uint64_t ticks)
{
    struct fl_node *node = find_or_add(nodes, id);
    if (node != NULL) {
        node->threads++;
        node->ticks += ticks;
    }
}

/* Fields 14, 15 and 39 of stat: user and system time, the CPU it last ran on. */
static void add_thread(struct fl_nodes *nodes, pid_t pid, pid_t tid)
{
    char path[64];
    char text[1024];
    unsigned long long user, sys;
    unsigned cpu;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (fl_proc_read_text(path, text, sizeof(text)) <= 0) {
        return;
    }
    const char *name = strchr(text, '(');
    const char *rest = strrchr(text, ')');
    if (name == NULL || rest == NULL || strncmp(name, "(fl-", 4) == 0) {
        return;
    }
    if (sscanf(rest + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u "
               "%*u %*d %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*d %u",
               &user, &sys, &cpu) == 3 &&
        cpu < FL_CPUS_MAX) {
        fl_nodes_add_thread(nodes, node_of_cpu[cpu], user + sys);
    }
}

static void read_threads(struct fl_nodes *nodes, pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    const struct dirent *item;
    while (folder != NULL && (item = readdir(folder)) != NULL) {
        pid_t tid = (pid_t)atoi(item->d_name);
        if (tid > 0) {
            add_thread(nodes, pid, tid);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

int fl_nodes_read(pid_t pid, struct fl_nodes *out)
{
    char path[64];
    char *line = NULL;
    size_t size = 0;
    size_t lines = 0;
    memset(out, 0, sizeof(*out));
    (void)fl_nodes_online();
    snprintf(path, sizeof(path), "/proc/%d/numa_maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        int error = errno;
        snprintf(path, sizeof(path), "/proc/%d", (int)pid);
        return error == ENOENT && access(path, F_OK) == 0 ? -ENOSYS : -error;
    }
    errno = 0;
    while (getline(&line, &size, file) > 0) {
        fl_nodes_add_map(out, line);
        lines++;
    }
    int rc = errno != 0 ? -errno : lines == 0 ? -ESRCH : 0; /* what has ended has no maps */
    free(line);
    fclose(file);
    if (rc == 0) {
        read_threads(out, pid);
    }
    return rc;
}

static double sum_anonymous(const struct fl_nodes *nodes)
{
    double sum = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        sum += (double)nodes->node[i].anonymous;
    }
    return sum;
}

/* A thread's time, and a tick for being there: new ones have had none. */
static double weight(const struct fl_node *node)
{
    return (double)node->ticks + node->threads;
}

double fl_nodes_remote_pct(const struct fl_nodes *nodes)
{
    double remote = 0;
    double threads = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        remote += nodes->node[i].threads == 0 ? (double)nodes->node[i].anonymous : 0;
        threads += nodes->node[i].threads;
    }
    double sum = sum_anonymous(nodes);
    return sum > 0 && threads > 0 ? 100 * remote / sum : NAN;
}

double fl_nodes_shared_pct(const struct fl_nodes *nodes)
{
    double local = 0;
    double all = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        local += (double)nodes->node[i].anonymous * weight(&nodes->node[i]);
        all += weight(&nodes->node[i]);
    }
    double sum = sum_anonymous(nodes);
    return sum > 0 && all > 0 ? 100 * (1 - local / sum / all) : NAN;
}

void fl_nodes_print(const struct fl_nodes *nodes, FILE *file)
{
    double all = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        all += weight(&nodes->node[i]);
    }
    fprintf(file, "  %-24s %12s %12s %8s %6s\n", "memory by node", "anonymous", "of files",
            "threads", "time");
    for (size_t i = 0; i < nodes->count; i++) {
        const struct fl_node *n = &nodes->node[i];
        fprintf(file, "    node %-17u %8.1f MiB %8.1f MiB %8u %4.0f %%\n", n->id,
                (double)n->anonymous / (1 << 20), (double)n->file / (1 << 20), n->threads,
                all > 0 ? 100 * weight(n) / all : 0.0);
    }
    double remote = fl_nodes_remote_pct(nodes);
    double shared = fl_nodes_shared_pct(nodes);
    if (!isnan(remote) && !isnan(shared)) {
        fprintf(file, "  %-24s %12.1f %%     where none of the threads runs\n", "remote", remote);
        fprintf(file, "  %-24s %12.1f %%     if all threads use all of it alike\n",
                "  if it is shared", shared);
    }
}

json_t *fl_nodes_json(const struct fl_nodes *nodes)
{
    json_t *array = json_array();
    for (size_t i = 0; i < nodes->count; i++) {
        const struct fl_node *n = &nodes->node[i];
        json_array_append_new(array, json_pack("{s:i, s:I, s:I, s:i, s:I}", "node", (int)n->id,
                                               "anonymous_bytes", (json_int_t)n->anonymous,
                                               "file_bytes", (json_int_t)n->file, "threads",
                                               (int)n->threads, "ticks", (json_int_t)n->ticks));
    }
    return array;
}
