/* Statistics: the snapshot, and the public API. */
#include "runtime/runtime.h"

#include "faultless/faultless.h"

#include <errno.h>
#include <string.h>

void fl_read_stats(struct fl_stats_values *out)
{
    if (!fl_is_started()) {
        *out = (struct fl_stats_values){.active = fl_runtime.shadowed_by == NULL};
        return;
    }
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
    out->plan_unplaced = plan.unplaced;
    out->plan_missed_bytes = plan.missed_bytes;
    out->plan_recorded = plan.recorded;
    out->plan_steps = plan.steps;
    out->plan_layouts = plan.layouts;
    out->plan_drops = plan.drops;
    out->plan_bytes = plan.arena_bytes;
    out->plan_free_bytes = plan.free_bytes;
    if (fl_runtime.shadowed_by != NULL && out->requests == 0) {
        out->active = 0; /* a tracer in front of us passes requests on, an allocator does not */
    }
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
        fl_residency_ask(&r->pages, plan, &out->table_resident_bytes, &out->unknown_bytes);
    }
    return rc;
}

int fl_step_new(struct fl_step_context **out)
{
    (void)fl_boot_for_call();
    return fl_plan_context_new(out);
}

int fl_step_free(struct fl_step_context *ctx)
{
    return fl_plan_context_free(ctx);
}

int fl_step_begin(struct fl_step_context *ctx)
{
    (void)fl_boot_for_call();
    return fl_plan_begin(ctx);
}

int fl_step_end(struct fl_step_context *ctx)
{
    return fl_plan_end(ctx);
}

int fl_heap_create(const struct fl_heap_options *o, struct fl_heap **out)
{
    (void)fl_boot_for_call();
    return fl_heap_make(o, out);
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
               "the public struct is its size and then FL_STATS_FIELDS");
#define FL_SAME_PLACE(field, kind, text)                                                           \
    _Static_assert(offsetof(struct fl_stats, field) ==                                             \
                       sizeof(uint64_t) + offsetof(struct fl_stats_values, field),                 \
                   #field " stands elsewhere in the public struct than in FL_STATS_FIELDS");
FL_STATS_FIELDS(FL_SAME_PLACE)
#undef FL_SAME_PLACE

int fl_stats_read(struct fl_stats *out)
{
    struct fl_stats_values values;

    if (out == NULL || out->size < 2 * sizeof(uint64_t)) {
        return -EINVAL;
    }
    (void)fl_boot_for_call();
    if (fl_is_started()) {
        fl_region_prove(&fl_runtime.region); /* `rung` is to say how pages move */
    }
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
    (void)fl_boot_for_call();
    int rc = fl_read_residency(&values);
    if (rc == 0) {
        hand_out(&out->live_bytes, out->size, &values, sizeof values);
    }
    return rc;
}

void fl_report_unwritten(const char *option, const char *path, int rc)
{
    const char *why = rc == -ENOENT   ? ": there is no such folder"
                      : rc == -EACCES ? ": it is not permitted"
                      : rc == -ENOSPC ? ": no space is left"
                                      : NULL;
    char line[480];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, option);
    fl_text_str(&t, path);
    fl_text_str(&t, " cannot be written");
    fl_text_str(&t, why != NULL ? why : ", error ");
    if (why == NULL) {
        fl_text_u64(&t, (uint64_t)-rc);
    }
    fl_say(line);
}
