/* The figures of a run by name: one table that text, JSON and ratios are made from. */
#ifndef FAULTLESS_FAULTSTAT_METRICS_H
#define FAULTLESS_FAULTSTAT_METRICS_H

#include "faultstat/watch.h"

/* X(symbol, JSON key, heading of a column, decimals, shown in compare: 's' when the program marks
 *   steps, 'p' when it does not, 'b' both, 'n' both when nodes were read, 'm' both when a run had
 *   several processes, '-' neither) */
#define FL_METRICS(X)                                                                              \
    X(STEP_MS, "step_ms", "step ms", 2, 's')                                                       \
    X(STEP_FAULTS, "step_faults", "faults/step", 0, 's')                                           \
    X(STEP_FAULTS_MEAN, "step_faults_mean", "faults mean", 1, 's')                                 \
    X(STEP_SYS_MS, "step_sys_ms", "sys ms/step", 1, 's')                                           \
    X(FIRST_STEP_MS, "first_step_ms", "first ms", 1, 's')                                          \
    X(PEAK_ABOVE_MIB, "peak_above_base_mib", "peak+ MiB", 0, 's')                                  \
    X(WALL_S, "wall_s", "wall s", 3, 'p')                                                          \
    X(USER_S, "user_s", "user s", 3, 'p')                                                          \
    X(SYS_S, "sys_s", "sys s", 3, 'p')                                                             \
    X(FAULTS, "faults", "faults", 0, 'p')                                                          \
    X(PEAK_MIB, "peak_rss_mib", "peak MiB", 0, 'p')                                                \
    X(PSS_MIB, "pss_peak_mib", "all MiB", 0, 'm')                                                  \
    X(MEAN_MIB, "pss_mean_mib", "mean MiB", 0, 'b')                                                \
    X(HUGE_PCT, "huge_pct", "huge %", 1, 'b')                                                      \
    X(REMOTE_PCT, "remote_pct", "remote %", 1, 'n')                                                \
    X(REMOTE_SHARED_PCT, "remote_if_shared_pct", "shared %", 1, 'n')                               \
    X(CPU_S, "cpu_s", "cpu s", 3, '-')                                                             \
    X(STEP_CPU_MS, "step_cpu_ms", "cpu ms/step", 1, '-')                                           \
    X(HUGE_PEAK_MIB, "anon_huge_peak_mib", "huge MiB", 0, '-')                                     \
    X(HELPER_FAULTS, "helper_faults", "fl- faults", 0, '-')                                        \
    X(MAJOR_FAULTS, "major_faults", "major", 0, '-')                                               \
    X(STEP_MS_MEAN, "step_ms_mean", "step mean", 2, '-')                                           \
    X(STEP_MS_MIN, "step_ms_min", "step min", 2, '-')                                              \
    X(STEP_FAULTS_MAX, "step_faults_max", "max", 0, '-')                                           \
    X(STEP_HELPER_FAULTS, "step_helper_faults_mean", "fl- faults/step", 1, '-')                    \
    X(STEP_MAJOR_FAULTS, "step_major_faults_mean", "major/step", 1, '-')                           \
    X(STEP_USER_MS, "step_user_ms", "user ms/step", 1, '-')                                        \
    X(FIRST_STEP_FAULTS, "first_step_faults", "first faults", 0, '-')                              \
    X(BASE_RSS_MIB, "base_rss_mib", "base MiB", 0, '-')                                            \
    X(SWITCHES, "context_switches", "switches", 0, '-')                                            \
    X(FORCED_SWITCHES, "forced_context_switches", "forced", 0, '-')                                \
    X(PROCESSES, "processes", "processes", 0, '-')                                                 \
    X(PERF_FAULTS, "perf_minor_faults", "perf minor", 0, '-')                                      \
    X(THP_ALLOC, "thp_fault_alloc", "THP alloc", 0, '-')                                           \
    X(THP_FALLBACK, "thp_fault_fallback", "THP fallback", 0, '-')                                  \
    X(THP_SPLIT, "thp_split_page", "THP split", 0, '-')

#define FL_METRIC_ENUM(symbol, key, heading, decimals, shown) FL_METRIC_##symbol,
enum fl_metric { FL_METRICS(FL_METRIC_ENUM) FL_METRIC_COUNT };
#undef FL_METRIC_ENUM

struct fl_metric_info {
    const char *key;
    const char *heading;
    int decimals;
    char shown;
};

extern const struct fl_metric_info fl_metric_info[FL_METRIC_COUNT];

/* Say below a table what its columns are, where a heading does not say it all. */
void fl_metrics_print_legend(const bool is_shown[static FL_METRIC_COUNT], FILE *file,
                             size_t columns);

/* Fill in every figure of one run; NAN where the run has none, as the steps' of a program that
 * marks no steps.
 *   warmup   as for fl_steps_summarise.
 *   value    indexed by enum fl_metric.
 * Returns 0; -ENOMEM. */
int fl_metrics_get(const struct fl_watch *watch, int warmup, double value[static FL_METRIC_COUNT]);

#endif
