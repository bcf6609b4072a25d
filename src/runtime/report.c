/* Statistics: the snapshot, the public API and the report at exit. */
#include "runtime/runtime.h"

#include "faultless/faultless.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void fl_read_stats(struct fl_stats_values *out)
{
    *out = (struct fl_stats_values){.active = fl_runtime.active};
    fl_region_stats_read(&fl_runtime.region, out);
    struct fl_plan_stats plan;
    fl_plan_stats_read(&plan);
    out->plan_hits = plan.hits;
    out->plan_misses = plan.misses;
    out->plan_missed_bytes = plan.missed_bytes;
    out->plan_steps = plan.steps;
    out->plan_layouts = plan.layouts;
    out->plan_drops = plan.drops;
    out->plan_bytes = plan.arena_bytes;
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

_Static_assert(sizeof(struct fl_stats) == sizeof(uint64_t) + sizeof(struct fl_stats_values),
               "the public struct is its size and then FL_STATS_FIELDS, in that order");

int fl_stats_read(struct fl_stats *out)
{
    struct fl_stats_values values;

    if (out == NULL || out->size < 2 * sizeof(uint64_t)) {
        return -EINVAL;
    }
    fl_boot();
    fl_read_stats(&values);
    memset(&out->active, 0, out->size - sizeof out->size); /* what a later header asks for is 0 */
    memcpy(&out->active, &values, fl_min(out->size - sizeof out->size, sizeof values));
    return 0;
}

__attribute__((destructor)) static void at_exit(void)
{
    enum { REPORT_BYTES = 8192 };
    const char *where = fl_runtime.options.text[FL_OPTION_stats];
    char text[REPORT_BYTES], program[256];
    struct fl_text t = fl_text_on(text, sizeof text);
    struct fl_stats_values values;

    if (fl_region_busy()) {
        return;
    }
    fl_keep_save();
    if (where == NULL || strcmp(where, "0") == 0) {
        return;
    }
    fl_read_stats(&values);
    if (strcmp(where, "1") == 0 || strcmp(where, "stderr") == 0) {
        fl_stats_format_table(&values, &t);
        (void)fl_sys.write(STDERR_FILENO, text, t.len);
        return;
    }
    if (fl_sys.read_file("/proc/self/comm", program, sizeof program) != 0) {
        program[0] = '\0';
    }
    fl_stats_format_json(&values, getpid(), program, &t);
    if (fl_sys.append_file(where, text, t.len) != 0) {
        fl_say("the file of FAULTLESS_STATS cannot be written");
    }
}
