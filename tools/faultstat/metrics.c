/* From a watched run to named figures. */
#include "faultstat/metrics.h"

#include "faultstat/text.h"

#include <errno.h>
#include <math.h>

#define FL_METRIC_INFO(symbol, key, heading, decimals, shown) {key, heading, decimals, shown},
const struct fl_metric_info fl_metric_info[FL_METRIC_COUNT] = {FL_METRICS(FL_METRIC_INFO)};
#undef FL_METRIC_INFO

static const char *const legend[FL_METRIC_COUNT] = {
    [FL_METRIC_STEP_MS] = "step ms: time of a steady step, median",
    [FL_METRIC_STEP_FAULTS] = "faults/step: minor faults of a steady step, median",
    [FL_METRIC_STEP_FAULTS_MEAN] = "faults mean: their mean",
    [FL_METRIC_STEP_SYS_MS] = "sys ms/step: system time of a steady step, mean",
    [FL_METRIC_FIRST_STEP_MS] = "first ms: time of the first step",
    [FL_METRIC_PEAK_ABOVE_MIB] = "peak+ MiB: peak RSS less what was resident at the first mark",
    [FL_METRIC_WALL_S] = "wall s: from start to end, median",
    [FL_METRIC_FAULTS] = "faults: minor faults of its threads but those named fl-*",
    [FL_METRIC_PEAK_MIB] = "peak MiB: peak RSS of the largest process",
    [FL_METRIC_PSS_MIB] = "all MiB: peak of all processes together",
    [FL_METRIC_MEAN_MIB] = "mean MiB: memory over time, all processes together",
    [FL_METRIC_HUGE_PCT] = "huge %: anonymous memory in huge pages, at its peak",
    [FL_METRIC_REMOTE_PCT] = "remote %: anonymous memory on nodes where no thread runs",
    [FL_METRIC_REMOTE_SHARED_PCT] = "shared %: remote, if all threads use all of it alike",
};

void fl_metrics_print_legend(const bool is_shown[static FL_METRIC_COUNT], FILE *file,
                             size_t columns)
{
    char text[1024] = "";
    size_t used = 0;
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        if (is_shown[m] && legend[m] != NULL && used < sizeof(text)) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? "; " : "",
                                     legend[m]);
        }
    }
    fl_text_wrap(file, "columns", text, 10, columns);
}

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void get_step_metrics(const struct fl_steps_summary *s, double *value)
{
    value[FL_METRIC_STEP_MS] = s->wall_ms_median;
    value[FL_METRIC_STEP_MS_MEAN] = s->wall_ms_mean;
    value[FL_METRIC_STEP_MS_MIN] = s->wall_ms_min;
    value[FL_METRIC_STEP_FAULTS] = s->minor_median;
    value[FL_METRIC_STEP_FAULTS_MEAN] = s->minor_mean;
    value[FL_METRIC_STEP_FAULTS_MAX] = s->minor_max;
    value[FL_METRIC_STEP_HELPER_FAULTS] = s->helper_minor_mean;
    value[FL_METRIC_STEP_MAJOR_FAULTS] = s->major_mean;
    value[FL_METRIC_STEP_USER_MS] = s->user_ms_mean;
    value[FL_METRIC_STEP_SYS_MS] = s->sys_ms_mean;
    value[FL_METRIC_STEP_CPU_MS] = s->user_ms_mean + s->sys_ms_mean;
    value[FL_METRIC_FIRST_STEP_MS] = s->first.wall_ms;
    value[FL_METRIC_FIRST_STEP_FAULTS] = (double)s->first.minor;
    value[FL_METRIC_BASE_RSS_MIB] = mib(s->base_rss);
    value[FL_METRIC_PEAK_ABOVE_MIB] = mib(s->peak_above);
}

int fl_metrics_get(const struct fl_watch *watch, int warmup, double value[static FL_METRIC_COUNT])
{
    const struct fl_peaks *peaks = &watch->peaks;
    for (int i = 0; i < FL_METRIC_COUNT; i++) {
        value[i] = NAN;
    }
    value[FL_METRIC_WALL_S] = watch->wall_s;
    value[FL_METRIC_USER_S] = seconds(&watch->usage.ru_utime);
    value[FL_METRIC_SYS_S] = seconds(&watch->usage.ru_stime);
    value[FL_METRIC_CPU_S] = value[FL_METRIC_USER_S] + value[FL_METRIC_SYS_S];
    value[FL_METRIC_FAULTS] = (double)fl_watch_app_minor(watch);
    value[FL_METRIC_MAJOR_FAULTS] = (double)fl_watch_app_major(watch);
    value[FL_METRIC_HELPER_FAULTS] = (double)watch->helper.minor;
    value[FL_METRIC_PEAK_MIB] = (double)watch->usage.ru_maxrss / 1024;
    value[FL_METRIC_PROCESSES] = (double)watch->processes;
    value[FL_METRIC_SWITCHES] = (double)watch->usage.ru_nvcsw;
    value[FL_METRIC_FORCED_SWITCHES] = (double)watch->usage.ru_nivcsw;
    value[FL_METRIC_THP_ALLOC] = (double)watch->thp.fault_alloc;
    value[FL_METRIC_THP_FALLBACK] = (double)watch->thp.fault_fallback;
    value[FL_METRIC_THP_SPLIT] = (double)watch->thp.split_page;
    if (watch->perf_error == 0) {
        value[FL_METRIC_PERF_FAULTS] = (double)watch->perf_minor;
    }
    if (peaks->samples > 0) {
        value[FL_METRIC_HUGE_PEAK_MIB] = mib(peaks->huge);
        value[FL_METRIC_PSS_MIB] = mib(peaks->pss);
        value[FL_METRIC_MEAN_MIB] =
            mib(peaks->for_ns > 0 ? (uint64_t)(peaks->pss_ns / peaks->for_ns) : peaks->pss);
    }
    if (peaks->at_peak.anonymous > 0) {
        value[FL_METRIC_HUGE_PCT] =
            100.0 * (double)peaks->at_peak.huge / (double)peaks->at_peak.anonymous;
    }
    if (peaks->nodes.count > 0) {
        value[FL_METRIC_REMOTE_PCT] = fl_nodes_remote_pct(&peaks->nodes);
        value[FL_METRIC_REMOTE_SHARED_PCT] = fl_nodes_shared_pct(&peaks->nodes);
    }
    struct fl_steps_summary steps;
    int rc = fl_steps_summarise(&watch->steps, warmup, &steps);
    if (rc == 0) {
        get_step_metrics(&steps, value);
    }
    return rc == -ENODATA ? 0 : rc;
}
