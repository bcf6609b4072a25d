/* From runs to verdicts. */
#include "faultstat/analysis.h"

#include <math.h>
#include <string.h>

enum { FL_CLAUSES_LEN = 128 };

bool fl_run_is_good(const struct fl_run *run)
{
    return run->is_done && run->exit_status == 0 && !run->is_timed_out &&
           run->served.state != FL_SERVED_NOT_LOADED && run->served.state != FL_SERVED_SHADOWED;
}

/* The good values of a figure in the order of the rounds. Returns how many. */
static size_t collect(const struct fl_comparison *c, size_t peer, enum fl_metric metric,
                      double value[FL_ROUNDS_MAX])
{
    size_t count = 0;
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->plan.rounds + round];
        if (fl_run_is_good(run) && !isnan(run->value[metric])) {
            value[count++] = run->value[metric];
        }
    }
    return count;
}

/* The good values of a figure of two allocators, in the rounds where both are good. */
static size_t collect_pairs(const struct fl_comparison *c, size_t peer, size_t other,
                            enum fl_metric metric, double own[FL_ROUNDS_MAX],
                            double reference[FL_ROUNDS_MAX])
{
    size_t count = 0;
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        const struct fl_run *a = &c->run[peer * c->plan.rounds + round];
        const struct fl_run *b = &c->run[other * c->plan.rounds + round];
        if (fl_run_is_good(a) && fl_run_is_good(b) && !isnan(a->value[metric]) &&
            !isnan(b->value[metric])) {
            own[count] = a->value[metric];
            reference[count++] = b->value[metric];
        }
    }
    return count;
}

/* The interval of the ratio of two allocators' figures. */
static bool make_interval(const struct fl_analysis *a, const struct fl_comparison *c, size_t peer,
                          size_t other, enum fl_metric metric, struct fl_interval *out)
{
    double value[4][FL_ROUNDS_MAX];
    struct fl_samples samples = {.own = value[0],
                                 .reference = value[1],
                                 .paired_own = value[2],
                                 .paired_reference = value[3]};
    samples.own_count = collect(c, peer, metric, value[0]);
    samples.reference_count = collect(c, other, metric, value[1]);
    samples.pairs = collect_pairs(c, peer, other, metric, value[2], value[3]);
    return fl_ratio_interval(&samples, a->level, out);
}

static void make_figure(struct fl_analysis *a, const struct fl_comparison *c, size_t peer,
                        enum fl_metric metric)
{
    double own[FL_ROUNDS_MAX];
    double first[FL_ROUNDS_MAX];
    struct fl_figure *figure = &a->peer[peer].figure[metric];
    figure->ratio = NAN;
    figure->count = collect(c, peer, metric, own);
    size_t first_count = collect(c, a->reference, metric, first);
    if (figure->count == 0) {
        return;
    }
    figure->has_interval =
        peer != a->reference && make_interval(a, c, peer, a->reference, metric, &figure->interval);
    figure->median = fl_median(own, figure->count); /* and sorts */
    figure->least = own[0];
    figure->most = own[figure->count - 1];
    if (first_count > 0) {
        double median = fl_median(first, first_count);
        figure->ratio = median > 0 ? figure->median / median : NAN;
    }
}

static void note_runs(struct fl_analysis *a, const struct fl_comparison *c, size_t peer)
{
    struct fl_judgement *j = &a->peer[peer];
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->plan.rounds + round];
        if (!run->is_done) {
            continue;
        }
        a->has_steps |= run->steps > 0;
        a->has_processes |= run->value[FL_METRIC_PROCESSES] > 1;
        if (run->exit_status != 0 || run->is_timed_out) {
            j->failures++;
            j->failure = run->exit_status;
        }
        if (run->served.state >= FL_SERVED_NOT_LOADED) {
            fl_served_text(&run->served, j->reason, sizeof(j->reason));
        }
    }
}

static void judge(struct fl_analysis *a, const struct fl_comparison *c, size_t peer)
{
    struct fl_judgement *j = &a->peer[peer];
    const struct fl_figure *time = &j->figure[a->metric];
    const struct fl_figure *first = &a->peer[a->reference].figure[a->metric];
    double value[FL_ROUNDS_MAX];
    j->noise = fl_noise_of(value, collect(c, peer, a->metric, value));
    if (!c->peers.peer[peer].is_present) {
        j->verdict = FL_VERDICT_NOT_COMPARED;
        snprintf(j->reason, sizeof(j->reason), "absent");
    } else if (time->count == 0) {
        j->verdict = FL_VERDICT_NOT_COMPARED;
        if (j->reason[0] == '\0') {
            snprintf(j->reason, sizeof(j->reason), "%s",
                     j->failures > 0 ? "every run failed" : "no run was made");
        }
    } else if (peer == a->reference) {
        j->verdict = FL_VERDICT_REFERENCE;
    } else if (first->count == 0) {
        j->verdict = FL_VERDICT_NOT_COMPARED;
        snprintf(j->reason, sizeof(j->reason), "%.30s has no good run",
                 c->peers.peer[a->reference].name);
    } else if (!time->has_interval) {
        j->verdict = FL_VERDICT_TOO_FEW;
        snprintf(j->reason, sizeof(j->reason), "%zu good beside %zu, and %d of each are needed",
                 time->count, first->count, FL_SAMPLES_LEAST);
    } else {
        j->verdict = fl_verdict_of(&time->interval);
    }
}

/* Among those that are faster: who is fastest, and who cannot be told from it. */
static void find_fastest(struct fl_analysis *a, const struct fl_comparison *c)
{
    a->fastest = a->reference;
    for (size_t i = 0; i < c->peers.count; i++) {
        bool is_first = a->fastest == a->reference;
        double ratio = a->peer[i].figure[a->metric].ratio;
        if (a->peer[i].verdict == FL_VERDICT_FASTER &&
            (is_first || ratio < a->peer[a->fastest].figure[a->metric].ratio)) {
            a->fastest = i;
        }
    }
    for (size_t i = 0; i < c->peers.count; i++) {
        struct fl_interval interval;
        if (i != a->fastest && a->peer[i].verdict == FL_VERDICT_FASTER) {
            a->peer[i].is_tied = !make_interval(a, c, i, a->fastest, a->metric, &interval) ||
                                 fl_verdict_of(&interval) == FL_VERDICT_NO_DIFFERENCE;
        }
    }
}

/* The first allocator that was measured; else the first that is there. */
static size_t find_reference(const struct fl_comparison *c)
{
    size_t first = c->peers.count;
    for (size_t i = 0; i < c->peers.count; i++) {
        if (!c->peers.peer[i].is_present) {
            continue;
        }
        for (unsigned round = 0; round < c->plan.rounds; round++) {
            if (fl_run_is_good(&c->run[i * c->plan.rounds + round])) {
                return i;
            }
        }
        first = i < first ? i : first;
    }
    return first < c->peers.count ? first : 0;
}

void fl_analysis_make(struct fl_analysis *a, const struct fl_comparison *c)
{
    size_t present = 0;
    memset(a, 0, sizeof(*a));
    a->reference = find_reference(c);
    for (size_t i = 0; i < c->peers.count; i++) {
        present += c->peers.peer[i].is_present;
        note_runs(a, c, i);
    }
    a->level = fl_level_of(present - (present > 0));
    a->metric = a->has_steps ? FL_METRIC_STEP_MS : FL_METRIC_WALL_S;
    for (size_t i = 0; i < c->peers.count; i++) {
        for (int m = 0; m < FL_METRIC_COUNT; m++) {
            make_figure(a, c, i, (enum fl_metric)m);
        }
    }
    for (size_t i = 0; i < c->peers.count; i++) {
        judge(a, c, i);
    }
    find_fastest(a, c);
    fl_analysis_warn(a, c);
}

/* A difference in another figure than the time, where one is shown: appended to `text`. */
static void add_clause(const struct fl_figure *figure, const char *what, char text[FL_CLAUSES_LEN])
{
    size_t used = strlen(text);
    if (figure->has_interval && fl_verdict_of(&figure->interval) != FL_VERDICT_NO_DIFFERENCE) {
        snprintf(text + used, FL_CLAUSES_LEN - used, "; %.3f x the %s", figure->ratio, what);
    }
}

/* What a row saves of, or adds to, the page faults; and, where its time tells nothing, the
 * processor time, which waiting and other programs disturb less. */
static void find_clauses(const struct fl_analysis *a, size_t peer, char text[FL_CLAUSES_LEN])
{
    const struct fl_judgement *j = &a->peer[peer];
    text[0] = '\0';
    if (j->verdict == FL_VERDICT_NO_DIFFERENCE) {
        add_clause(&j->figure[a->has_steps ? FL_METRIC_STEP_CPU_MS : FL_METRIC_CPU_S],
                   "processor time", text);
    }
    add_clause(&j->figure[a->has_steps ? FL_METRIC_STEP_FAULTS : FL_METRIC_FAULTS], "page faults",
               text);
}

void fl_analysis_sentence(const struct fl_analysis *a, const struct fl_comparison *c, size_t peer,
                          char *text, size_t len)
{
    const struct fl_judgement *j = &a->peer[peer];
    const struct fl_figure *time = &j->figure[a->metric];
    const char *first = c->peers.peer[a->reference].name;
    const char *what = a->has_steps ? "time of a step" : "time";
    char clauses[FL_CLAUSES_LEN];
    find_clauses(a, peer, clauses);
    switch (j->verdict) {
    case FL_VERDICT_REFERENCE:
        snprintf(text, len, "what the others are compared with");
        return;
    case FL_VERDICT_NOT_COMPARED:
        snprintf(text, len, "not compared: %s", j->reason);
        return;
    case FL_VERDICT_TOO_FEW:
        snprintf(text, len, "%.2f x the %s of %s, but too few runs to tell: %s", time->ratio, what,
                 first, j->reason);
        return;
    case FL_VERDICT_NO_DIFFERENCE:
        snprintf(text, len, "no difference could be shown: %.3f x the %s of %s (%.3f..%.3f)%s",
                 time->ratio, what, first, time->interval.low, time->interval.high, clauses);
        return;
    default:
        snprintf(text, len, "%s: %.3f x the %s of %s (%.3f..%.3f)%s", fl_verdict_word[j->verdict],
                 time->ratio, what, first, time->interval.low, time->interval.high, clauses);
        return;
    }
}

/* "; A, B cannot be told from it", or nothing. */
static void tie_clause(const struct fl_analysis *a, const struct fl_comparison *c, char text[160])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < c->peers.count && used < 100; i++) {
        if (a->peer[i].is_tied) {
            used += (size_t)snprintf(text + used, 160 - used, "%s%s", used > 0 ? ", " : "; ",
                                     c->peers.peer[i].name);
        }
    }
    if (used > 0) {
        snprintf(text + used, 160 - used, " cannot be told from it");
    }
}

void fl_analysis_conclude(const struct fl_analysis *a, const struct fl_comparison *c, char *text,
                          size_t len)
{
    size_t count[FL_VERDICT_COUNT] = {0};
    const struct fl_figure *gain = &a->peer[a->fastest].figure[a->metric];
    const char *first = c->peers.peer[a->reference].name;
    const char *what = a->has_steps ? "time of a step" : "time";
    char ties[160];
    tie_clause(a, c, ties);
    for (size_t i = 0; i < c->peers.count; i++) {
        count[a->peer[i].verdict]++;
    }
    if (count[FL_VERDICT_FASTER] > 0) {
        snprintf(text, len, "%s gains most: %.2f x the %s of %s (%.2f..%.2f)%s",
                 c->peers.peer[a->fastest].name, gain->ratio, what, first, gain->interval.low,
                 gain->interval.high, ties);
    } else if (count[FL_VERDICT_TOO_FEW] > 0) {
        snprintf(text, len, "none: too few runs to tell; at least %d rounds are needed",
                 FL_SAMPLES_LEAST);
    } else if (count[FL_VERDICT_NO_DIFFERENCE] > 0) {
        snprintf(text, len, "no difference to %s could be shown%s", first,
                 count[FL_VERDICT_SLOWER] > 0 ? "; others are slower" : "");
    } else if (count[FL_VERDICT_SLOWER] > 0) {
        snprintf(text, len, "none is faster than %s", first);
    } else if (a->peer[a->reference].failures > 0 && gain->count == 0) {
        snprintf(text, len, "none: every run of the command failed");
    } else {
        snprintf(text, len, "none: nothing could be compared with %s", first);
    }
}
