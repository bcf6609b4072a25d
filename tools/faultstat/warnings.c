/* What a reader of the figures should know, one line each, with what can be done about it. */
#include "faultstat/analysis.h"

#include <stdarg.h>
#include <string.h>

#define FL_START_SHARE                                                                             \
    20               /* a run this many times longer than a start of a process is long enough */
#define FL_WIDE 0.05 /* of an interval: as much could be gained or lost unseen */

static void warn(struct fl_analysis *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(struct fl_analysis *a, const char *format, ...)
{
    va_list args;
    if (a->warnings < FL_WARNINGS_MAX) {
        va_start(args, format);
        vsnprintf(a->warning[a->warnings++], FL_WARNING_LEN, format, args);
        va_end(args);
    }
}

/* Add a name and its figure to a list. */
static void list(char text[FL_WARNING_LEN], const char *name, double figure, const char *unit)
{
    size_t used = strlen(text);
    snprintf(text + used, FL_WARNING_LEN - used, "%s%s %.0f%s", used > 0 ? ", " : "", name, figure,
             unit);
}

static void warn_of_noise(struct fl_analysis *a, const struct fl_comparison *c)
{
    char first[FL_WARNING_LEN] = "";
    char outliers[FL_WARNING_LEN] = "";
    char spread[FL_WARNING_LEN] = "";
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_noise *noise = &a->peer[i].noise;
        const char *name = c->peers.peer[i].name;
        if (noise->is_first_slow) {
            list(first, name, 1e3 * c->run[i * c->plan.rounds].value[FL_METRIC_WALL_S], " ms");
        } else if (noise->outliers > 0) {
            list(outliers, name, (double)noise->outliers, "");
        }
        if (noise->spread > FL_NOISE_SPREAD) {
            list(spread, name, 100 * noise->spread, " %");
        }
    }
    if (first[0] != '\0') {
        warn(a,
             "the first run was much slower than the others: %s: caches were cold; --warm or "
             "--prepare make runs alike",
             first);
    }
    if (outliers[0] != '\0') {
        warn(a, "outliers: %s: something disturbed these runs; repeat it on a quiet machine",
             outliers);
    }
    if (spread[0] != '\0') {
        warn(a,
             "noise: the middle half of the times spreads over much of the median: %s; more "
             "rounds or a quieter machine would tell more",
             spread);
    }
}

/* No difference could be shown: would more rounds help? Four times as many halve the interval. */
static void warn_of_width(struct fl_analysis *a, const struct fl_comparison *c)
{
    char wide[FL_WARNING_LEN] = "";
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_judgement *j = &a->peer[i];
        const struct fl_interval *interval = &j->figure[a->metric].interval;
        double width = interval->high - interval->low;
        bool is_told = j->noise.outliers > 0 || j->noise.spread > FL_NOISE_SPREAD;
        if (j->verdict == FL_VERDICT_NO_DIFFERENCE && width > FL_WIDE && !is_told) {
            list(wide, c->peers.peer[i].name, 100 * width, " %");
        }
    }
    if (wide[0] != '\0' && c->plan.rounds <= FL_ROUNDS_MAX / 4) {
        warn(a,
             "rounds: the interval is wide, so a smaller difference stays unseen: %s; "
             "--rounds %u would about halve it",
             wide, 4 * c->plan.rounds);
    }
}

/* Does starting the process hide what an allocator does? */
static void warn_of_start(struct fl_analysis *a, const struct fl_comparison *c)
{
    double start_s = 0;
    for (size_t i = 0; i < c->peers.count; i++) {
        double own = c->peers.peer[i].start_s;
        if (own > 0 && (start_s <= 0 || own < start_s)) {
            start_s = own;
        }
    }
    const struct fl_figure *wall = &a->peer[a->reference].figure[FL_METRIC_WALL_S];
    if (!a->has_steps && wall->count > 0 && start_s * FL_START_SHARE > wall->median) {
        warn(a,
             "start-up: a run takes %.1f ms, and starting any process %.1f ms; take a longer "
             "input, or time its steps: --step-regex",
             1e3 * wall->median, 1e3 * start_s);
    }
}

static void warn_of_steps(struct fl_analysis *a, const struct fl_comparison *c)
{
    uint64_t planned = 0;
    for (size_t i = 0; i < c->peers.count * c->plan.rounds; i++) {
        const struct fl_library_stats *library = &c->run[i].library;
        planned = library->plan_steps > planned ? library->plan_steps : planned;
    }
    if (c->plan.step_regex != NULL && !a->has_steps) {
        warn(a, "steps: fewer than two lines of the output matched --step-regex in each run; all "
                "figures are of whole runs");
    }
    if (a->has_steps) {
        return;
    }
    if (planned > 0) {
        warn(a,
             "steps: the program declared %llu and more to faultless; figures of a step tell more "
             "than those of the run: mark them, or --step-regex",
             (unsigned long long)planned);
    }
    if (c->repeats > 0 && c->plan.step_regex == NULL) {
        warn(a,
             "steps: %zu lines of the output are alike; --step-regex '%s' gives figures of a "
             "step, without start-up",
             c->repeats, c->repeats_pattern);
    }
}

static void warn_of_idle_library(struct fl_analysis *a, const struct fl_comparison *c)
{
    for (size_t i = 0; i < c->peers.count; i++) {
        bool is_idle = false;
        for (unsigned round = 0; round < c->plan.rounds; round++) {
            const struct fl_run *run = &c->run[i * c->plan.rounds + round];
            is_idle |= fl_run_is_good(run) && run->library.is_known && run->library.requests == 0;
        }
        if (is_idle) {
            warn(a,
                 "%s: it served no large request of this program, so it cannot make a "
                 "difference",
                 c->peers.peer[i].name);
        }
    }
}

void fl_analysis_warn(struct fl_analysis *a, const struct fl_comparison *c)
{
    warn_of_noise(a, c);
    warn_of_width(a, c);
    warn_of_start(a, c);
    warn_of_steps(a, c);
    warn_of_idle_library(a, c);
}
