/* The CPUs on which helpers populate a block, and how many of them have nothing to do.
 *
 * They are those of the block's node that the thread may use; of its own node, where it may use
 * none there or the kernel doesn't tell. The kernel has no count of idle CPUs by node. It tells how
 * many threads want to run at this moment: they are taken to be spread evenly over the CPUs that
 * the thread may use, since the process's own threads run there. That errs towards fewer helpers.
 * Sources: proc(5) on /proc/loadavg, move_pages(2), sched_getaffinity(2). */
#include "sys/crew.h"

#include <string.h>

static unsigned count(const struct fl_cpu_ids *cpus)
{
    unsigned n = 0;

    for (size_t i = 0; i < sizeof cpus->word / sizeof cpus->word[0]; i++) {
        n += (unsigned)__builtin_popcountll(cpus->word[i]);
    }
    return n;
}

/* Of the `allowed` CPUs those that a list like "0-3,8" names. Returns how many. */
static unsigned pick(const struct fl_cpu_ids *allowed, const char *list, struct fl_cpu_ids *out)
{
    uint64_t first, last;

    memset(out, 0, sizeof *out);
    while (fl_parse_span(&list, &first, &last) == 0) {
        for (uint64_t i = first; i <= last && i < FL_CPU_IDS; i++) {
            out->word[i / 64] |= allowed->word[i / 64] & (uint64_t)1 << i % 64;
        }
    }
    return count(out);
}

static unsigned pick_of_node(struct fl_crew_cpus *c, unsigned node)
{
    char path[64];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, "/sys/devices/system/node/node");
    fl_text_u64(&t, node);
    fl_text_str(&t, "/cpulist");
    bool read = fl_sys.read_file(path, c->list, sizeof c->list) == 0;
    return read ? pick(&c->allowed, c->list, &c->idle) : 0;
}

/* Threads that want to run, the calling one not counted. 0: the kernel doesn't tell. */
static FL_APART uint64_t others_running(void)
{
    char text[64];
    uint64_t running = 0;

    if (fl_sys.read_file("/proc/loadavg", text, sizeof text) != 0) {
        return 0;
    }
    const char *slash = strchr(text, '/'), *from = slash;
    while (from != NULL && from > text && from[-1] != ' ') {
        from--;
    }
    for (; from != NULL && from < slash && *from >= '0' && *from <= '9'; from++) {
        running = running * 10 + (uint64_t)(*from - '0');
    }
    return running != 0 ? running - 1 : 0;
}

unsigned fl_crew_cpus(uintptr_t page, struct fl_crew_cpus *c)
{
    unsigned here = 0, n = 0;
    int node = -1;

    if (fl_nodes.cpus(&c->allowed) != 0) {
        return 0;
    }
    bool told = fl_nodes.here(&here) == 0;
    if (told && fl_nodes.where(1, &page, &node) == 0 && node >= 0 && (unsigned)node != here) {
        n = pick_of_node(c, (unsigned)node);
    }
    bool elsewhere = n != 0; /* the caller's CPU is not one of them */
    n = elsewhere || !told ? n : pick_of_node(c, here);
    if (n == 0) {
        c->idle = c->allowed;
        n = count(&c->idle);
    }
    unsigned all = (unsigned)fl_max(count(&c->allowed), 1);
    uint64_t busy = (others_running() * n + all - 1) / all + !elsewhere;
    unsigned idle = busy < n ? n - (unsigned)busy : 0;
    return idle != 0 ? (unsigned)fl_min(idle, fl_crew_quota() - 1) : 0;
}
