/* Statistics: the snapshot, and the public API. */
#include "runtime/runtime.h"

#include "faultless/faultless.h"

#include <errno.h>
#include <string.h>

void fl_read_stats(struct fl_stats_values *out)
{
    *out = (struct fl_stats_values){.active = fl_runtime.active};
    fl_region_stats_read(&fl_runtime.region, out);
    struct fl_plan_stats plan;
    fl_plan_stats_read(&plan);
    /* An arena is an extent of the region's that no request asked for. */
    out->requests += plan.hits - fl_min(plan.arenas, out->requests);
    out->live_extents += plan.live_blocks - fl_min(plan.arenas, out->live_extents);
    out->frees = out->requests - fl_min(out->live_extents, out->requests);
    out->served_bytes += plan.hit_bytes;
    out->plan_hits = plan.hits;
    out->plan_misses = plan.misses;
    out->plan_unseated = plan.unseated;
    out->plan_missed_bytes = plan.missed_bytes;
    out->plan_recorded = plan.recorded;
    out->plan_steps = plan.steps;
    out->plan_layouts = plan.layouts;
    out->plan_drops = plan.drops;
    out->plan_bytes = plan.arena_bytes;
    out->plan_free_bytes = plan.free_bytes;
}

int fl_read_residency(struct fl_residency_values *out)
{
    struct fl_region *r = &fl_runtime.region;

    *out = (struct fl_residency_values){.live_bytes = 0};
    int rc = fl_runtime.active ? fl_region_residency(r, out) : 0;
    if (rc == 0 && fl_runtime.active) {
        size_t mapped;
        struct fl_range plan = fl_plan_memory(&mapped);
        out->table_bytes += mapped;
        fl_region_ask(r, plan, &out->table_resident_bytes, &out->unknown_bytes);
    }
    return rc;
}

int fl_step_new(struct fl_step_context **out)
{
    fl_boot();
    return fl_plan_context_new(out);
}

int fl_step_free(struct fl_step_context *ctx)
{
    return fl_plan_context_free(ctx);
}

int fl_step_begin(struct fl_step_context *ctx)
{
    fl_boot();
    fl_gpu_step();
    return fl_plan_begin(ctx);
}

int fl_step_end(struct fl_step_context *ctx)
{
    return fl_plan_end(ctx);
}

const char *fl_version(void)
{
    return FL_VERSION;
}

/* Of a public struct with its size in front: as many of `values` as the caller has room for, from
 * `first` on; what a later header asks for is 0. */
static void hand_out(void *first, uint64_t size, const void *values, size_t len)
{
    memset(first, 0, size - sizeof size);
    memcpy(first, values, fl_min(size - sizeof size, len));
}

_Static_assert(sizeof(struct fl_stats) == sizeof(uint64_t) + sizeof(struct fl_stats_values),
               "the public struct is its size and then FL_STATS_FIELDS, in that order");

int fl_stats_read(struct fl_stats *out)
{
    struct fl_stats_values values;

    if (out == NULL || out->size < 2 * sizeof(uint64_t)) {
        return -EINVAL;
    }
    fl_boot();
    fl_region_prove(&fl_runtime.region); /* `rung` is to say how pages move */
    fl_read_stats(&values);
    hand_out(&out->active, out->size, &values, sizeof values);
    return 0;
}

_Static_assert(sizeof(struct fl_residency) == sizeof(uint64_t) + sizeof(struct fl_residency_values),
               "the public struct is its size and then these values, in that order");

int fl_residency_read(struct fl_residency *out)
{
    struct fl_residency_values values;

    if (out == NULL || out->size < 2 * sizeof(uint64_t)) {
        return -EINVAL;
    }
    fl_boot();
    int rc = fl_read_residency(&values);
    if (rc == 0) {
        hand_out(&out->live_bytes, out->size, &values, sizeof values);
    }
    return rc;
}
<<<<<<< HEAD
=======

enum { REPORT_BYTES = 40960 };

static void read_nodes(struct fl_stats_nodes *out)
{
    const struct fl_topology *t = &fl_runtime.numa.topology;

    fl_region_nodes_read(&fl_runtime.region, out);
    for (unsigned i = 0; i < out->n; i++) {
        out->node[i].id = t->id[i];
    }
}

static bool is_standard_error(const char *where)
{
    return strcmp(where, "1") == 0 || strcmp(where, "stderr") == 0;
}

/* `soon`: the caller waits for no lock. */
static int append_json(const char *where, bool soon)
{
    char text[REPORT_BYTES], program[256];
    struct fl_text t = fl_text_on(text, sizeof text);
    struct fl_stats_values values;
    struct fl_stats_nodes nodes;
    struct fl_stats_gpus gpus;

    fl_read_stats(&values);
    read_nodes(&nodes);
    fl_gpu_stats_read(&gpus, soon);
    if (fl_sys.read_file("/proc/self/comm", program, sizeof program) != 0) {
        program[0] = '\0';
    }
    fl_stats_format_json(&values, &nodes, &gpus, getpid(), program, &t);
    return fl_sys.append_file(where, text, t.len);
}

static struct fl_text table_on(char *text, size_t size, bool soon)
{
    struct fl_text t = fl_text_on(text, size);
    struct fl_stats_values values;
    struct fl_stats_nodes nodes;
    struct fl_stats_gpus gpus;

    fl_read_stats(&values);
    read_nodes(&nodes);
    fl_gpu_stats_read(&gpus, soon);
    fl_stats_format_table(&values, &t);
    fl_stats_format_nodes(&nodes, &t);
    fl_stats_format_gpus(&gpus, &t);
    return t;
}

static _Atomic bool report_wanted;

static void want_report(int signal)
{
    (void)signal;
    atomic_store(&report_wanted, true);
    atomic_store(&fl_runtime.region.wants_worker,
                 true); /* the next large request or free calls it */
}

/* The worker has a table of descriptors of its own: the program's standard error by its name. */
static void table_to_standard_error(void)
{
    char text[REPORT_BYTES], path[64];
    struct fl_text t = table_on(text, sizeof text, true), p = fl_text_on(path, sizeof path);

    fl_text_str(&p, "/proc/");
    fl_text_u64(&p, (uint64_t)getpid());
    fl_text_str(&p, "/fd/2");
    (void)fl_sys.append_file(path, text, t.len);
}

uint64_t fl_report_wanted(struct fl_region *r)
{
    const char *where = fl_runtime.options.text[FL_OPTION_stats];

    (void)r;
    if (atomic_exchange(&report_wanted, false)) {
        if (where == NULL || strcmp(where, "0") == 0 || is_standard_error(where)) {
            table_to_standard_error();
        } else {
            (void)append_json(where, true);
        }
    }
    return FL_JOB_IDLE;
}

void fl_report_on_signal(int signal)
{
    struct sigaction now, ours = {.sa_handler = want_report, .sa_flags = SA_RESTART};

    if (signal != 0 && sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
        now.sa_handler == SIG_DFL) {
        (void)sigaction(signal, &ours, NULL);
    }
}

__attribute__((destructor)) static void at_exit(void)
{
    const char *where = fl_runtime.options.text[FL_OPTION_stats];
    char text[REPORT_BYTES];

    if (fl_region_busy()) {
        return;
    }
    fl_gpu_stop();
    fl_keep_save(true);
    if (where == NULL || strcmp(where, "0") == 0) {
        return;
    }
    fl_region_prove(&fl_runtime.region);
    if (is_standard_error(where)) {
        (void)fl_sys.write(STDERR_FILENO, text, table_on(text, sizeof text, false).len);
    } else if (append_json(where, false) != 0) {
        fl_say("the file of FAULTLESS_STATS cannot be written");
    }
}
>>>>>>> wt-fw
