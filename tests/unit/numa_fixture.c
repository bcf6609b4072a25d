#include "unit/numa_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct drawn_machine drawn_one = {
    "one", "0\n", "0\n", "0\n", {{0, "0-3\n", "10\n", 4096, 2048, 1024, 1}}};
const struct drawn_machine drawn_two = {
    "two",
    "0-1\n",
    "0-1\n",
    "0-1\n",
    {{0, "0-3\n", "10 21\n", 1024, 512, 128, 3}, {1, "4-7\n", "21 10\n", 1024, 100, 0, 1}}};
const struct drawn_machine drawn_four = {"four",
                                         "0-3\n",
                                         "0-3\n",
                                         "0-3\n",
                                         {{0, "0,4\n", "10 16 21 21\n", 65536, 30000, 0, 1},
                                          {1, "1,5\n", "16 10 21 21\n", 65536, 30000, 0, 1},
                                          {2, "2,6\n", "21 21 10 16\n", 65536, 30000, 0, 1},
                                          {3, "3,7\n", "21 21 16 10\n", 65536, 30000, 0, 1}}};
const struct drawn_machine drawn_snc = {"snc",
                                        "0-7\n",
                                        "0-7\n",
                                        "0-7\n",
                                        {{0, "0\n", "10 12 12 12 21 21 21 21\n", 1024, 512, 0, 1},
                                         {1, "1\n", "12 10 12 12 21 21 21 21\n", 1024, 512, 0, 1},
                                         {2, "2\n", "12 12 10 12 21 21 21 21\n", 1024, 512, 0, 1},
                                         {3, "3\n", "12 12 12 10 21 21 21 21\n", 1024, 512, 0, 1},
                                         {4, "4\n", "21 21 21 21 10 12 12 12\n", 1024, 512, 0, 1},
                                         {5, "5\n", "21 21 21 21 12 10 12 12\n", 1024, 512, 0, 1},
                                         {6, "6\n", "21 21 21 21 12 12 10 12\n", 1024, 512, 0, 1},
                                         {7, "7\n", "21 21 21 21 12 12 12 10\n", 1024, 512, 0, 1}}};
const struct drawn_machine drawn_cxl = {"cxl",
                                        "0-3\n",
                                        "0-3\n",
                                        "0-1\n",
                                        {{0, "0-3\n", "10 21 14 24\n", 1024, 512, 0, 4},
                                         {1, "4-7\n", "21 10 24 14\n", 1024, 512, 0, 4},
                                         {2, "\n", "14 24 10 26\n", 4096, 4000, 0, 1},
                                         {3, "\n", "24 14 26 10\n", 4096, 4000, 0, 1}}};
const struct drawn_machine drawn_gaps = {"gaps",
                                         "0,2,5\n",
                                         "0,2,5\n",
                                         "0,2,5\n",
                                         {{0, "0-1\n", "10 20 30\n", 1024, 512, 0, 1},
                                          {2, "2-3\n", "20 10 20\n", 1024, 512, 0, 1},
                                          {5, "4-5\n", "30 20 10\n", 1024, 512, 0, 1}}};
const struct drawn_machine drawn_bare = {"bare",
                                         "0-2\n",
                                         "0,2\n",
                                         "0-2\n",
                                         {{0, "0\n", "10 20 30\n", 1024, 512, 0, 1},
                                          {1, "1\n", "20 10 15\n", 0, 0, 0, 1},
                                          {2, "2\n", "30 15 10\n", 1024, 512, 0, 1}}};
const struct drawn_machine drawn_half = {
    "half",
    "0-1\n",
    "0\n",
    "0-1\n",
    {{0, "0\n", "10 20\n", 1024, 512, 0, 1}, {1, "1\n", "20 10\n", 0, 0, 0, 1}}};

const struct drawn_machine *const drawn_all[8] = {&drawn_one,  &drawn_two, &drawn_four,
                                                  &drawn_snc,  &drawn_cxl, &drawn_gaps,
                                                  &drawn_bare, &drawn_half};

struct drawn_thread drawn_thread;
static const struct drawn_machine *machine;

static int put(char *buf, size_t size, const char *text)
{
    if (text == NULL) {
        return -ENOENT;
    }
    snprintf(buf, size, "%s", text);
    return 0;
}

static int put_meminfo(char *buf, size_t size, const struct drawn_node *n)
{
    snprintf(buf, size,
             "Node %d MemTotal:       %u kB\nNode %d MemFree:        %u kB\n"
             "Node %d Active(file):   %u kB\nNode %d Inactive(file): %u kB\n",
             n->id, n->mib * 1024, n->id, n->free_mib * 1024, n->id, n->file_mib * 512, n->id,
             n->file_mib * 512);
    return 0;
}

static int read_node(const struct drawn_node *n, const char *file, char *buf, size_t size)
{
    if (strcmp(file, "cpulist") == 0) {
        return put(buf, size, n->cpus);
    }
    if (strcmp(file, "distance") == 0) {
        return put(buf, size, n->distance);
    }
    return strcmp(file, "meminfo") == 0 ? put_meminfo(buf, size, n) : -ENOENT;
}

static const struct drawn_node *find_node(int id)
{
    for (size_t i = 0; i < sizeof machine->node / sizeof machine->node[0]; i++) {
        if (machine->node[i].id == id && machine->node[i].distance != NULL) {
            return &machine->node[i];
        }
    }
    return NULL;
}

static int drawn_read_file(const char *path, char *buf, size_t size)
{
    const struct {
        const char *path, *text;
    } file[] = {
        {"/drawn/devices/system/node/online", machine->online},
        {"/drawn/devices/system/node/has_memory", machine->memory},
        {"/drawn/devices/system/node/has_cpu", machine->cpus},
        {"/proc/thread-self/status", drawn_thread.status},
    };
    char name[32];
    int id;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        if (strcmp(path, file[i].path) == 0) {
            return put(buf, size, file[i].text);
        }
    }
    if (sscanf(path, "/drawn/kernel/mm/mempolicy/weighted_interleave/node%d", &id) == 1) {
        const struct drawn_node *n = find_node(id);
        snprintf(buf, size, "%u\n", n != NULL ? n->weight : 0);
        return n != NULL ? 0 : -ENOENT;
    }
    if (sscanf(path, "/drawn/devices/system/node/node%d/%31s", &id, name) == 2) {
        const struct drawn_node *n = find_node(id);
        return n != NULL ? read_node(n, name, buf, size) : -ENOENT;
    }
    return -ENOENT;
}

static int thread_policy(int *out_mode, struct fl_node_ids *out)
{
    drawn_thread.npolicy++;
    *out_mode = drawn_thread.mode;
    *out = drawn_thread.nodes;
    return drawn_thread.rc;
}

static int thread_allowed(struct fl_node_ids *out)
{
    *out = drawn_thread.allowed;
    return drawn_thread.rc;
}

static int thread_here(unsigned *out_id)
{
    *out_id = drawn_thread.here;
    return drawn_thread.rc;
}

static int thread_cpus(struct fl_cpu_ids *out)
{
    *out = drawn_thread.cpus;
    return drawn_thread.rc;
}

void draw(const struct drawn_machine *m)
{
    machine = m;
    fl_sys.read_file = drawn_read_file;
    fl_nodes = (struct fl_nodes_sys){.policy = thread_policy,
                                     .allowed = thread_allowed,
                                     .here = thread_here,
                                     .cpus = thread_cpus};
    drawn_thread = (struct drawn_thread){.here = (unsigned)m->node[0].id};
    memset(&drawn_thread.allowed, 0xff, sizeof drawn_thread.allowed);
    memset(&drawn_thread.cpus, 0xff, sizeof drawn_thread.cpus);
}

void draw_and_read(const struct drawn_machine *m, struct fl_topology *t)
{
    static struct fl_numa_scratch scratch;

    draw(m);
    fl_topology_read(t, "/drawn", &scratch);
}

struct fl_node_ids ids_of(const char *list)
{
    struct fl_node_ids ids = {{0}};
    uint64_t first, last;

    while (list != NULL && fl_parse_span(&list, &first, &last) == 0) {
        for (uint64_t i = first; i <= last; i++) {
            ids.word[i / 64] |= (uint64_t)1 << (i % 64);
        }
    }
    return ids;
}

uint64_t set_of(const struct fl_topology *t, const char *list)
{
    struct fl_node_ids ids = ids_of(list);

    return fl_topology_set(t, &ids);
}
