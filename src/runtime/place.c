/* Several nodes: what numa/ decides, as the region's zones; and what the kernel is told of them. */
#include "runtime/runtime.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>

#ifndef MPOL_LOCAL
#define MPOL_LOCAL 4
#endif
#ifndef MPOL_WEIGHTED_INTERLEAVE
#define MPOL_WEIGHTED_INTERLEAVE 6
#endif

enum { FOUND_MOST = 256, FOUND_BATCH = 32, STAT_PROCESSOR = 39 };
static const uint64_t weighted_bit = (uint64_t)1 << 63;

/* Nodes that take turns. */
struct spread {
    _Atomic uint64_t key; /* their set, with weighted_bit perhaps; 0: free */
    struct fl_node_ids ids;
    _Atomic bool ready; /* `ids` are `key`'s */
};

/* Constant after the start, but for what says otherwise. What mbind is told lies here, ready: on a
 * small stack there is no room for it. */
static struct {
    bool bind; /* the window carries policies */
    int touch_mode;
    struct fl_node_ids touch_ids;
    struct fl_node_ids ids[FL_NODES]; /* each alone */
    struct fl_cpu_ids launch;         /* CPUs */
    struct fl_cpu_ids cpus[FL_NODES]; /* all of each node */
    struct spread spread[FL_SPREADS]; /* any thread's, by `key` */
    _Atomic bool refused;             /* mbind is */
    /* The worker's. */
    struct fl_cpu_ids worker;
    bool moved, placing;
    int worker_mode;
    struct fl_node_ids worker_ids;
} place;

static unsigned nodes(void)
{
    return fl_runtime.numa.topology.count;
}

static bool is_spread(struct spread *s, uint64_t key)
{
    uint64_t is = atomic_load(&s->key);

    if (is == 0 && atomic_compare_exchange_strong(&s->key, &is, key)) {
        fl_topology_ids(&fl_runtime.numa.topology, key & ~weighted_bit, &s->ids);
        atomic_store(&s->ready, true);
        return true;
    }
    return is == key;
}

static unsigned spread_zone(const struct fl_placement *p)
{
    uint64_t key = p->prefer | (p->weighted ? weighted_bit : 0);
    unsigned i = 0;

    while (!is_spread(&place.spread[i], key) && i < FL_SPREADS - 1) {
        i++; /* more sets than programs have share the last one's nodes */
    }
    return 2 * nodes() + 1 + i;
}

static void zonelist(size_t len, struct fl_zonelist *out)
{
    struct fl_numa_request q = {.len = len, .served = atomic_load(&fl_runtime.region.touch.open)};
    struct fl_placement p;
    unsigned node = 0, touch = 2 * nodes();
    uint64_t full = 0;

    fl_numa_place(&fl_runtime.numa, &q, &p);
    out->n = 0;
    out->on_touch = p.kind == FL_PLACE_TOUCH;
    out->strict = p.strict;
    out->touched = (uint8_t)(q.node < nodes() ? nodes() + q.node : touch);
    if (p.kind == FL_PLACE_SPREAD) {
        out->zone[out->n++] = (uint8_t)spread_zone(&p);
    }
    while (p.kind == FL_PLACE_NODE && (node = fl_placement_node(&fl_runtime.numa.topology, &p, 0,
                                                                FL_NODES, full)) < FL_NODES) {
        out->zone[out->n++] = (uint8_t)node;
        full |= (uint64_t)1 << node;
    }
    if (out->n == 0) {
        out->zone[out->n++] = (uint8_t)touch;
    }
}

static void bind(struct fl_range range, int mode, const struct fl_node_ids *ids)
{
    int rc = fl_nodes.bind(range, mode, ids);

    if (rc == -EINVAL && mode == MPOL_WEIGHTED_INTERLEAVE) {
        rc = fl_nodes.bind(range, MPOL_INTERLEAVE, ids);
    }
    if ((rc == -EPERM || rc == -ENOSYS) && !atomic_exchange(&place.refused, true) &&
        fl_runtime.options.value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_say("no placement: the kernel refuses mbind, so memory lies where the thread runs that "
               "brings it in");
    }
}

static void bind_spread(struct fl_range range, const struct spread *s,
                        const struct fl_node_ids *ids)
{
    bool weighted = (atomic_load(&s->key) & weighted_bit) != 0;

    bind(range, weighted ? MPOL_WEIGHTED_INTERLEAVE : MPOL_INTERLEAVE, ids);
}

/* Another thread is about to have its ids ready. */
static FL_APART void bind_spread_anew(struct fl_range range, const struct spread *s)
{
    struct fl_node_ids ids;

    fl_topology_ids(&fl_runtime.numa.topology, atomic_load(&s->key) & ~weighted_bit, &ids);
    bind_spread(range, s, &ids);
}

static void mapped(struct fl_range range, unsigned zone)
{
    unsigned n = nodes();

    if (!place.bind || atomic_load(&place.refused)) {
        return;
    }
    if (zone < n) {
        bind(range, MPOL_PREFERRED, &place.ids[zone]);
    } else if (zone <= 2 * n) {
        bind(range, place.touch_mode, &place.touch_ids);
    } else {
        const struct spread *s = &place.spread[zone - 2 * n - 1];
        if (FL_LIKELY(atomic_load(&s->ready))) {
            bind_spread(range, s, &s->ids);
        } else {
            bind_spread_anew(range, s);
        }
    }
}

static void mapped_own(struct fl_range range)
{
    static const struct fl_node_ids none;

    if (place.bind && !atomic_load(&place.refused)) {
        bind(range, MPOL_LOCAL, &none);
    }
}

static unsigned zone_of(int node)
{
    return fl_topology_find(&fl_runtime.numa.topology, (unsigned)node);
}

static int number_of(unsigned node)
{
    return fl_runtime.numa.topology.id[node];
}

static unsigned found(struct fl_range range)
{
    uintptr_t at[FOUND_BATCH];
    int id[FOUND_BATCH], all = -1;
    size_t step = fl_max(fl_align_up(range.len / FOUND_MOST, fl_page.huge), fl_page.huge);

    for (size_t done = 0; done < range.len;) {
        size_t n = 0;
        for (; n < FOUND_BATCH && done < range.len; done += step) {
            at[n++] = range.base + done;
        }
        if (fl_nodes.where(n, at, id) != 0) {
            return nodes();
        }
        for (size_t i = 0; i < n; i++) {
            all = all < 0 ? id[i] : all;
            if (id[i] >= 0 && id[i] != all) {
                return nodes();
            }
        }
    }
    return all >= 0 ? fl_topology_find(&fl_runtime.numa.topology, (unsigned)all) : nodes();
}

static bool has_cpu(const struct fl_cpu_ids *set, unsigned cpu)
{
    return cpu < FL_CPU_IDS && (set->word[cpu / 64] >> cpu % 64 & 1) != 0;
}

/* `nodes()`: of none that is known. */
static unsigned node_of_cpu(unsigned cpu)
{
    unsigned node = 0;

    while (node < nodes() && !has_cpu(&place.cpus[node], cpu)) {
        node++;
    }
    return node;
}

static unsigned runs_on(int tid)
{
    char path[64], text[1024];
    struct fl_text t = fl_text_on(path, sizeof path);

    fl_text_str(&t, "/proc/self/task/");
    fl_text_u64(&t, (uint64_t)tid);
    fl_text_str(&t, "/stat");
    if (fl_sys.read_file(path, text, sizeof text) != 0) {
        return nodes();
    }
    const char *at = strrchr(text, ')'); /* the name may have spaces: its end is field 2's */
    for (int field = 2; at != NULL && field < STAT_PROCESSOR; field++) {
        at = strchr(at + 1, ' ');
    }
    uint64_t cpu;
    return at != NULL && fl_parse_after(at, " ", &cpu) ? node_of_cpu((unsigned)cpu) : nodes();
}

static void fill_begin(unsigned zone)
{
    struct fl_cpu_ids to;
    struct fl_node_ids ids;
    bool any = false;

    if (zone >= nodes()) {
        return;
    }
    for (size_t i = 0; i < FL_CPU_IDS / 64; i++) {
        to.word[i] = place.launch.word[i] & place.cpus[zone].word[i];
        any |= to.word[i] != 0;
    }
    place.moved = any && fl_nodes.cpus(&place.worker) == 0 && fl_nodes.set_cpus(&to) == 0;
    place.placing = (!place.bind || atomic_load(&place.refused)) &&
                    fl_nodes.policy(&place.worker_mode, &place.worker_ids) == 0;
    if (place.placing) {
        fl_topology_ids(&fl_runtime.numa.topology, (uint64_t)1 << zone, &ids);
        (void)fl_nodes.set_policy(MPOL_PREFERRED, &ids);
    }
}

static void fill_end(void)
{
    if (place.placing) {
        (void)fl_nodes.set_policy(place.worker_mode, &place.worker_ids);
    }
    if (place.moved) {
        (void)fl_nodes.set_cpus(&place.worker);
    }
}

void fl_place_note_sites(void)
{
    static _Atomic uint32_t changes;                                      /* since boot */
    uint32_t from = FL_SITE_FIRST + (atomic_fetch_add(&changes, 1) << 8); /* more than nodes */

    for (unsigned i = 0; i < nodes() * (FL_CPU_IDS / 64); i++) {
        unsigned node = i % nodes(), word = i / nodes();
        for (uint64_t cpus = place.cpus[node].word[word]; cpus != 0; cpus &= cpus - 1) {
            unsigned cpu = word * 64 + (unsigned)__builtin_ctzll(cpus);
            /* release: who sees it sees what has changed */
            atomic_store_explicit(&fl_site[cpu], from + node, memory_order_release);
        }
    }
}

uint64_t fl_place_refresh(struct fl_region *r)
{
    (void)r;
    if (fl_numa_refresh(&fl_runtime.numa)) {
        fl_place_note_sites();
    }
    return FL_JOB_IDLE;
}

static size_t alike_below(void)
{
    return fl_runtime.numa.choice.mode == FL_NUMA_FIRST_TOUCH ? fl_page.huge : FL_NUMA_LARGE;
}

/* What the first thread had at load: others may have been given theirs, by the program, before the
 * region starts. `rc`: why it is not known. */
static struct {
    int policy_rc, cpus_rc, mode;
    struct fl_node_ids ids;
    struct fl_cpu_ids cpus;
} launch FL_AT_START;

void fl_place_note_launch(void)
{
    bool confined = fl_sys_is_confined();

    launch.policy_rc = confined ? -EPERM : fl_nodes.policy(&launch.mode, &launch.ids);
    launch.cpus_rc = confined ? -EPERM : fl_nodes.cpus(&launch.cpus);
}

static int launch_policy(int *out_mode, struct fl_node_ids *out)
{
    *out_mode = launch.mode;
    *out = launch.ids;
    return launch.policy_rc;
}

static int launch_cpus(struct fl_cpu_ids *out)
{
    *out = launch.cpus;
    return launch.cpus_rc;
}

/* The zones are the nodes'. */
static FL_APART void divide(struct fl_numa_process *n)
{
    struct fl_numa_view view;

    fl_numa_view(n, &view);
    place.bind = fl_numa_window(&view, &place.touch_mode, &place.touch_ids);
    (void)launch_cpus(&place.launch);
    for (unsigned i = 0; i < nodes(); i++) {
        fl_topology_ids(&n->topology, (uint64_t)1 << i, &place.ids[i]);
        (void)fl_topology_cpus(&n->topology, i, n->root, &n->scratch, &place.cpus[i]);
    }
    fl_place_note_sites();
    fl_region_divide(&fl_runtime.region, &(struct fl_placing){
                                             .nodes = nodes(),
                                             .alike_below = alike_below(),
                                             .zonelist = zonelist,
                                             .zone_of = zone_of,
                                             .number_of = number_of,
                                             .mapped = mapped,
                                             .mapped_own = mapped_own,
                                             .has_room = fl_place_has_room,
                                             .look = fl_place_look,
                                             .found = found,
                                             .follows = place.bind,
                                             .runs_on = runs_on,
                                             .fill_begin = fill_begin,
                                             .fill_end = fill_end,
                                         });
}

void fl_place_start(void)
{
    struct fl_numa_process *n = &fl_runtime.numa;
    int (*policy)(int *, struct fl_node_ids *) = fl_nodes.policy;
    int (*cpus)(struct fl_cpu_ids *) = fl_nodes.cpus;

    fl_nodes.policy = launch_policy; /* none else asks before the region has started */
    fl_nodes.cpus = launch_cpus;
    fl_numa_start(n, &fl_runtime.options, "/sys");
    fl_nodes.policy = policy;
    fl_nodes.cpus = cpus;
    if (n->active) {
        divide(n);
    }
}
