#include "faultstat/record/save.h"

#include "faultstat/json.h"
#include "faultstat/machine.h"
#include "faultstat/record/names.h"
#include "faultstat/record/predict.h"
#include "faultstat/record/steady.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const double mib = 1 << 20;
static const uint64_t few_samples = 500; /* a share of 2 % is then known to a third of itself */

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static json_t *faults_json(const struct fl_recorder *recorder, const struct fl_watch *watch)
{
    uint64_t minor = 0;
    uint64_t major = 0;
    fl_rings_count(&recorder->rings, &minor, &major);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:f}", "getrusage_minor",
                     (json_int_t)watch->usage.ru_minflt, "getrusage_major",
                     (json_int_t)watch->usage.ru_majflt, "counted_minor", (json_int_t)minor,
                     "counted_major", (json_int_t)major, "samples", (json_int_t)recorder->samples,
                     "every", recorder->every, "lost_records", (json_int_t)recorder->gaps.lost,
                     "broken_records", (json_int_t)recorder->gaps.broken, "cut_stacks",
                     recorder->gaps.cut, "unknown_mapping", recorder->gaps.unmapped);
}

static json_t *kinds_json(const struct fl_costs *costs)
{
    json_t *array = json_array();
    for (int i = 0; i < FL_KIND_COUNT; i++) {
        json_array_append_new(array, json_pack("{s:s, s:f, s:f, s:f}", "name", fl_kind_name[i],
                                               "cost_ns", costs->ns[i], "saved_ns",
                                               costs->saved_ns[i], "user_ns", costs->user_ns[i]));
    }
    return array;
}

static json_t *spans_json(void)
{
    json_t *array = json_array();
    for (int i = 0; i < FL_SPAN_COUNT; i++) {
        json_array_append_new(array, json_string(fl_span_name[i]));
    }
    return array;
}

static json_t *series_json(const struct fl_series *series)
{
    json_t *faults = json_array();
    json_t *rss = json_array();
    json_t *huge = json_array();
    for (size_t i = 0; i < series->count; i++) {
        json_array_append_new(faults, json_real(series->bucket[i].faults));
        json_array_append_new(rss, json_real((double)series->bucket[i].rss / mib));
        json_array_append_new(huge, json_real((double)series->bucket[i].huge / mib));
    }
    return json_pack("{s:f, s:o, s:o, s:o}", "width_ms", (double)series->width_ns / 1e6, "faults",
                     faults, "rss_mib", rss, "huge_mib", huge);
}

/* Sums of step `i`; all 0 where nothing was noted. */
static struct fl_step_sum sum_of(const struct fl_recorder *recorder, size_t i)
{
    return i + 1 < recorder->steps.count ? recorder->steps.part[i + 1] : (struct fl_step_sum){0};
}

static json_t *steps_json(const struct fl_recorder *recorder, const struct fl_steps *steps)
{
    json_t *array = json_array();
    for (size_t i = 0; i < fl_steps_count(steps); i++) {
        const struct fl_mark *mark = &steps->mark[i];
        struct fl_step step = fl_steps_get(steps, i);
        struct fl_step_sum sum = sum_of(recorder, i);
        double start_ms = ((double)mark->leave_ns - (double)recorder->series.start_ns) / 1e6;
        json_array_append_new(array, json_pack("{s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f}",
                                               "start_ms", start_ms, "wall_ms", step.wall_ms,
                                               "user_ms", step.user_ms, "sys_ms", step.sys_ms,
                                               "minor", (json_int_t)step.minor, "faults",
                                               sum.faults, "cost_ms", sum.cost_ns / 1e6, "rss_mib",
                                               (double)steps->mark[i + 1].look.memory.rss / mib));
    }
    return array;
}

/* Addresses against time of the last whole step; of the whole run where there are no steps. */
static json_t *layout_json(const struct fl_recorder *recorder, const struct fl_watch *watch)
{
    bool has_steps = fl_steps_count(&watch->steps) > 1 && recorder->steps.last.count > 0;
    const struct fl_points *points = has_steps ? &recorder->steps.last : &recorder->steps.now;
    json_t *array = json_array();
    uint64_t start_ns = points->count > 0 ? points->point[0].time_ns : 0;
    for (size_t i = 0; i < points->count; i++) {
        const struct fl_point *p = &points->point[i];
        json_array_append_new(array, json_pack("[f, I, i]", (double)(p->time_ns - start_ns) / 1e6,
                                               (json_int_t)p->addr, (int)p->kind));
    }
    return json_pack("{s:s, s:o}", "what", has_steps ? "one step" : "the run", "points", array);
}

/* Some process of it had the library: what it would do is not to be predicted. */
static bool ran_under_faultless(const struct fl_recorder *recorder)
{
    static const char file[] = "libfaultless.so";
    for (size_t i = 0; i < recorder->unwinder.modules.count; i++) {
        const char *path = recorder->unwinder.modules.module[i].path;
        const char *slash = path != NULL ? strrchr(path, '/') : NULL;
        if (slash != NULL && strncmp(slash + 1, file, strlen(file)) == 0) {
            return true;
        }
    }
    return false;
}

static json_t *prediction_json(const struct fl_recorder *recorder, const struct fl_watch *watch,
                               int warmup)
{
    struct fl_prediction_input in;
    if (!recorder->has_perf || ran_under_faultless(recorder)) {
        return json_null();
    }
    fl_steady_get(recorder, watch, warmup, &in);
    struct fl_prediction p = fl_predict(&in);
    double wall = p.bare_cpu_ms > 0 ? p.bare_wall_ms / p.bare_cpu_ms : 1; /* of processor time */
    return json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:s, s:f, s:f, s:f}", "of",
        in.has_steps ? "a steady step" : "the run", "wall_ms", p.bare_wall_ms, "cpu_ms",
        p.bare_cpu_ms, "user_ms", in.user_ms, "recording_cpu_ms", in.recording_ms,
        "faultless_wall_ms", p.cpu_ms * wall, "faultless_wall_low_ms", p.low_ms * wall,
        "faultless_wall_high_ms", p.high_ms * wall, "faultless_cpu_ms", p.cpu_ms,
        "faultless_cpu_low_ms", p.low_ms, "faultless_cpu_high_ms", p.high_ms, "certain",
        p.doubt == FL_DOUBT_NONE, "doubt", fl_doubt_text[p.doubt], "saved_cpu_ms",
        p.bare_cpu_ms - p.cpu_ms, "dearer", p.dearer, "avoided_faults", p.faults);
}

static void add_note(json_t *notes, bool holds, const char *text)
{
    if (holds) {
        json_array_append_new(notes, json_string(text));
    }
}

/* What the reader must know to trust the figures, in words. */
static json_t *notes_json(const struct fl_recorder *recorder, uint64_t numa_hints)
{
    json_t *notes = json_array();
    bool perf = recorder->has_perf;
    char text[192];
    snprintf(text, sizeof(text),
             "perf events refused (%s): faults by thread from /proc, no stacks, no kinds, no "
             "prediction; children are in the total alone",
             strerror(-recorder->perf_error));
    add_note(notes, !perf, text);
    add_note(notes, ran_under_faultless(recorder),
             "it ran under faultless: these faults are those that are left, and nothing is "
             "predicted");
    add_note(notes, perf && recorder->rings.user_only,
             "faults inside system calls are not seen (perf_event_paranoid)");
    add_note(notes, perf && !recorder->rings.has_page_size,
             "this kernel does not tell a page's size: huge pages are counted as 4 KiB");
    add_note(notes, perf && !recorder->rings.sees_protection && recorder->gaps.forked,
             "copies of anonymous memory count as anonymous 4 KiB: --copies tells them apart, as "
             "root with tracefs mounted");
    add_note(
        notes, perf && !recorder->rings.sees_zero_page,
        "reads of fresh memory count as anonymous 4 KiB: telling them apart takes CAP_PERFMON");
    snprintf(text, sizeof(text),
             "%llu NUMA hint faults in the whole system meanwhile: they have sites among the "
             "anonymous ones; no event of the kernel's tells them apart",
             (unsigned long long)numa_hints);
    add_note(notes, numa_hints != 0, text);
    add_note(notes, perf && recorder->samples < few_samples && recorder->every > 1,
             "few stacks were taken: --every 1 takes all");
    snprintf(text, sizeof(text), "%llu records found no room: use a larger --every",
             (unsigned long long)recorder->gaps.lost);
    add_note(notes, recorder->gaps.lost != 0, text);
    add_note(notes, perf,
             "costs are calibrated: what a fault of its kind took here before the run");
#ifndef __x86_64__
    add_note(notes, perf, "stacks by frame pointers");
#endif
    return notes;
}

json_t *fl_save_json(struct fl_recorder *recorder, const struct fl_watch *watch,
                     const struct fl_save_spec *spec)
{
    struct fl_machine machine;
    json_t *root = json_object();
    fl_machine_read(&machine);
    json_object_set_new(root, "schema", json_integer(FL_RECORD_SCHEMA));
    json_object_set_new(root, "kind", json_string(FL_RECORD_KIND));
    json_object_set_new(root, "faultstat", json_string(FL_VERSION));
    json_object_set_new(root, "command", fl_json_command(spec->command));
    json_object_set_new(root, "machine", fl_machine_json(&machine));
    json_object_set_new(root, "exit", json_integer(fl_watch_exit_status(watch)));
    json_object_set_new(root, "method", json_string(recorder->has_perf ? "perf" : "proc"));
    json_object_set_new(root, "wall_s", json_real(watch->wall_s));
    json_object_set_new(root, "user_s", json_real(seconds(watch->usage.ru_utime)));
    json_object_set_new(root, "sys_s", json_real(seconds(watch->usage.ru_stime)));
    json_object_set_new(root, "peak_mib", json_real((double)watch->usage.ru_maxrss / 1024));
    json_object_set_new(root, "faults", faults_json(recorder, watch));
    json_object_set_new(root, "kinds", kinds_json(&recorder->costs));
    json_object_set_new(root, "spans", spans_json());
    json_object_set_new(root, "series", series_json(&recorder->series));
    json_object_set_new(root, "steps", steps_json(recorder, &watch->steps));
    json_object_set_new(root, "layout", layout_json(recorder, watch));
    json_object_set_new(root, "prediction", prediction_json(recorder, watch, spec->warmup));
    json_object_set_new(root, "notes", notes_json(recorder, spec->numa_hints));
    if (fl_names_save(recorder, root) != 0) {
        json_decref(root);
        return NULL;
    }
    return root;
}
