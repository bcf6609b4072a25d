/* The machine's nodes, from sysfs: total functions of what can be read. Files are read into the
 * caller's room. */
#include "numa/internal.h"

#include <errno.h>
#include <string.h>

enum { LOCAL = 10, REMOTE = 20 }; /* distances */

static uint64_t all(const struct fl_topology *t)
{
    return t->count < FL_NODES ? fl_numa_bit(t->count) - 1 : UINT64_MAX;
}

/* ROOT MIDDLE [ID TAIL], read into s->text. False when there is no such file. What is cut has lost
 * its last number. */
static bool read_below(struct fl_numa_scratch *s, const char *root, const char *middle, int id,
                       const char *tail)
{
    struct fl_text path = fl_text_on(s->path, sizeof s->path);

    fl_text_str(&path, root);
    fl_text_str(&path, middle);
    if (id >= 0) {
        fl_text_u64(&path, (uint64_t)id);
        fl_text_str(&path, tail);
    }
    if (fl_sys.read_file(s->path, s->text, sizeof s->text) != 0) {
        return false;
    }
    char *comma = strlen(s->text) + 1 == sizeof s->text ? strrchr(s->text, ',') : NULL;
    if (comma != NULL) {
        *comma = '\0';
    }
    return true;
}

static bool read_node(const struct fl_topology *t, unsigned node, const char *root,
                      const char *file, struct fl_numa_scratch *s)
{
    return read_below(s, root, "/devices/system/node/node", t->id[node], file);
}

bool fl_numa_list(const char *list, uint64_t word[], uint64_t bits)
{
    uint64_t first, last;
    int rc;

    memset(word, 0, bits / 8);
    while ((rc = fl_parse_span(&list, &first, &last)) == 0) {
        for (uint64_t i = first; i <= last && i < bits; i++) {
            word[i / 64] |= (uint64_t)1 << (i % 64);
        }
    }
    return rc == -ENOENT;
}

/* The nodes that a file of the folder lists; 0 when it does not. */
static uint64_t read_set(const struct fl_topology *t, const char *root, const char *file,
                         struct fl_numa_scratch *s)
{
    struct fl_node_ids ids;

    return read_below(s, root, file, -1, NULL) && fl_numa_list(s->text, ids.word, FL_NODE_IDS)
               ? fl_topology_set(t, &ids)
               : 0;
}

/* Apart: a set of nodes is large. */
static FL_APART void read_online(struct fl_topology *t, const char *root, struct fl_numa_scratch *s)
{
    struct fl_node_ids ids;

    if (read_below(s, root, "/devices/system/node/online", -1, NULL) &&
        fl_numa_list(s->text, ids.word, FL_NODE_IDS)) {
        for (unsigned i = 0; i < FL_NODE_IDS; i++) {
            if ((ids.word[i / 64] >> (i % 64) & 1) == 0) {
                continue;
            }
            if (t->count == FL_NODES) {
                t->left_out++;
            } else {
                t->id[t->count++] = (uint16_t)i;
            }
        }
    }
    t->count = t->count == 0 ? 1 : t->count;
    fl_assert(t->count <= FL_NODES);
}

/* One number for each node online. Another count of them, and a node that is not nearest to itself,
 * are no distances. */
static void read_distances(struct fl_topology *t, unsigned node, const char *root,
                           struct fl_numa_scratch *s)
{
    uint8_t *row = t->distance[node];
    unsigned n = 0;
    bool good = read_node(t, node, root, "/distance", s);

    for (const char *p = s->text; good && *p != '\0' && *p != '\n'; n++) {
        uint64_t v = 0;
        good = fl_parse_after(p, "", &v) && v >= LOCAL && v <= UINT8_MAX;
        if (n < t->count) {
            row[n] = (uint8_t)v;
        }
        p += strspn(p, " ");
        p += strspn(p, "0123456789");
        p += strspn(p, " ");
    }
    if (good && n == t->count + t->left_out && row[node] == LOCAL) {
        return;
    }
    memset(row, REMOTE, t->count);
    row[node] = LOCAL;
}

/* Is `a` before `b` on the way from node `from`? */
static bool is_nearer(const struct fl_topology *t, unsigned from, unsigned a, unsigned b)
{
    const uint8_t *row = t->distance[from];
    unsigned up_a = (a + t->count - from) % t->count, up_b = (b + t->count - from) % t->count;

    return row[a] != row[b] ? row[a] < row[b] : up_a < up_b;
}

/* T3, by insertion. */
static void sort_order(struct fl_topology *t, unsigned from)
{
    uint8_t *order = t->order[from];
    unsigned n = 0;

    for (unsigned node = 0; node < t->count; node++) {
        if ((t->memory & fl_numa_bit(node)) == 0) {
            continue;
        }
        unsigned i = n++;
        for (; i > 0 && is_nearer(t, from, node, order[i - 1]); i--) {
            order[i] = order[i - 1];
        }
        order[i] = (uint8_t)node;
    }
    fl_assert(n == (unsigned)__builtin_popcountll(t->memory));
}

void fl_topology_read_weights(struct fl_topology *t, const char *root, struct fl_numa_scratch *s)
{
    for (unsigned i = 0; i < t->count; i++) {
        uint64_t v = 1;
        if (!read_below(s, root, "/kernel/mm/mempolicy/weighted_interleave/node", t->id[i], "") ||
            !fl_parse_after(s->text, "", &v) || v == 0 || v > UINT8_MAX) {
            v = 1;
        }
        t->weight[i] = (uint8_t)v;
    }
}

void fl_topology_read(struct fl_topology *t, const char *root, struct fl_numa_scratch *s)
{
    *t = (struct fl_topology){.count = 0};
    read_online(t, root, s);
    if (t->count == 1) { /* most machines: no more is to be read */
        t->memory = t->cpus = 1;
        t->distance[0][0] = LOCAL;
        t->weight[0] = 1;
        return;
    }
    t->memory = read_set(t, root, "/devices/system/node/has_memory", s);
    if (t->memory == 0) { /* before Linux 3.8, and where it was a matter of configuration */
        t->memory = read_set(t, root, "/devices/system/node/has_normal_memory", s);
    }
    t->memory = t->memory == 0 ? all(t) : t->memory;
    t->cpus = read_set(t, root, "/devices/system/node/has_cpu", s);
    t->cpus = t->cpus == 0 ? all(t) : t->cpus;
    for (unsigned i = 0; i < t->count; i++) {
        t->weight[i] = 1;
        read_distances(t, i, root, s);
        sort_order(t, i);
    }
    if (!fl_numa_is_single(t->memory)) {
        fl_topology_read_weights(t, root, s);
    }
    fl_assert(((t->memory | t->cpus) & ~all(t)) == 0);
}

bool fl_topology_cpus(const struct fl_topology *t, unsigned node, const char *root,
                      struct fl_numa_scratch *s, struct fl_cpu_ids *out)
{
    if (read_node(t, node, root, "/cpulist", s) && fl_numa_list(s->text, out->word, FL_CPU_IDS)) {
        return true;
    }
    memset(out, 0, sizeof *out);
    return false;
}

unsigned fl_topology_find(const struct fl_topology *t, unsigned id)
{
    unsigned i = 0;

    while (i < t->count && t->id[i] != id) {
        i++;
    }
    return i < t->count ? i : FL_NODES;
}

uint64_t fl_topology_set(const struct fl_topology *t, const struct fl_node_ids *ids)
{
    uint64_t set = 0;

    for (unsigned i = 0; i < t->count; i++) {
        if ((ids->word[t->id[i] / 64] >> (t->id[i] % 64) & 1) != 0) {
            set |= fl_numa_bit(i);
        }
    }
    return set;
}

void fl_topology_ids(const struct fl_topology *t, uint64_t set, struct fl_node_ids *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < t->count; i++) {
        if ((set & fl_numa_bit(i)) != 0) {
            out->word[t->id[i] / 64] |= (uint64_t)1 << (t->id[i] % 64);
        }
    }
}

unsigned fl_topology_nearest(const struct fl_topology *t, unsigned from, uint64_t set)
{
    unsigned with_memory = (unsigned)__builtin_popcountll(t->memory);

    fl_assert(from < t->count);
    for (unsigned i = 0; i < with_memory; i++) {
        if ((set & fl_numa_bit(t->order[from][i])) != 0) {
            return t->order[from][i];
        }
    }
    return FL_NODES;
}

/* Bytes; 0 where the line is not there. */
static uint64_t kib_after(const char *text, const char *key)
{
    uint64_t v;

    return fl_parse_after(text, key, &v) ? v * 1024 : 0;
}

uint64_t fl_topology_room(const struct fl_topology *t, uint64_t set, const char *root,
                          struct fl_numa_scratch *s)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < t->count; i++) {
        if ((set & fl_numa_bit(i)) == 0) {
            continue;
        }
        if (!read_node(t, i, root, "/meminfo", s)) {
            return UINT64_MAX;
        }
        uint64_t total = kib_after(s->text, " MemTotal:");
        uint64_t free = kib_after(s->text, " MemFree:") + kib_after(s->text, " Inactive(file):") +
                        kib_after(s->text, " Active(file):") / 2;
        uint64_t kept = fl_min(total / 8, total / 512 + ((size_t)64 << 20));
        sum += free > kept ? free - kept : 0;
    }
    return sum;
}

unsigned fl_cpus_allowed(void)
{
    struct fl_cpu_ids cpus;
    unsigned n = 0;

    if (fl_nodes.cpus(&cpus) != 0) {
        return 0;
    }
    for (size_t i = 0; i < sizeof cpus.word / sizeof cpus.word[0]; i++) {
        n += (unsigned)__builtin_popcountll(cpus.word[i]);
    }
    return n;
}
