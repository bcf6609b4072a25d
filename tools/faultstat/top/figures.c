/* What is made of the figures of a process. */
#include "faultstat/top/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool knows(const struct fl_top_process *p, enum fl_live_figure figure)
{
    return p->live.known[figure];
}

/* NAN: not known. What is below 0 was read while it changed. */
double fl_top_figure(const struct fl_top_process *p, enum fl_live_figure figure)
{
    double value = (double)(int64_t)p->live.value[figure];
    return !knows(p, figure) ? NAN : value > 0 ? value : 0;
}

double fl_top_hit_pct(const struct fl_top_process *p)
{
    double hits = fl_top_figure(p, FL_LIVE_PLAN_HITS);
    double all = hits + fl_top_figure(p, FL_LIVE_PLAN_MISSES);
    return all > 0 ? 100 * hits / all : NAN;
}

double fl_top_huge_pct(const struct fl_top_process *p)
{
    const struct fl_rollup *r = &p->rollup;
    return r->anonymous > 0 ? 100 * (double)r->huge / (double)r->anonymous : NAN;
}

const char *fl_top_method(const struct fl_top_process *p)
{
    static const char *const name[] = {"uffd", "mremap", "none"};
    uint64_t rung = p->live.value[FL_LIVE_RUNG];
    if (!knows(p, FL_LIVE_ACTIVE) || !knows(p, FL_LIVE_HOME)) {
        return "-";
    }
    if (p->live.value[FL_LIVE_ACTIVE] == 0 || p->live.value[FL_LIVE_HOME] == 0) {
        return "off";
    }
    bool is_tried = p->live.value[FL_LIVE_REQUESTS] != 0 && p->live.value[FL_LIVE_UNPROVEN] == 0;
    if (!knows(p, FL_LIVE_RUNG) || !is_tried || rung > 2) {
        return "?";
    }
    return name[rung];
}

/* How far the context is that is farthest. */
const char *fl_top_plan(const struct fl_top_process *p)
{
    static const struct {
        unsigned state;
        const char *name;
    } order[FL_LIVE_STATES] = {{2, "serve"}, {1, "pack"}, {0, "learn"}, {3, "rest"}};
    for (size_t i = 0; i < FL_LIVE_STATES; i++) {
        unsigned figure = FL_LIVE_STATE + order[i].state;
        if (p->live.known[figure] && p->live.value[figure] != 0) {
            return order[i].name;
        }
    }
    return "-";
}

void fl_top_reason(const struct fl_top_process *p, char text[FL_TOP_REASON])
{
    switch (-p->error) {
    case EPERM:
        snprintf(text, FL_TOP_REASON, "not permitted (see ptrace(2), Yama's ptrace_scope)");
        break;
    case EAGAIN:
        snprintf(text, FL_TOP_REASON, "no large request yet");
        break;
    case EPROTONOSUPPORT:
        snprintf(text, FL_TOP_REASON, "the live page has version %u, not %d", p->live.version,
                 FL_LIVE_VERSION);
        break;
    case EPROTO:
        snprintf(text, FL_TOP_REASON, "the live page contradicts itself");
        break;
    default:
        snprintf(text, FL_TOP_REASON, "%s", strerror(-p->error));
    }
}

/* ---- order ---- */

static const char *const key_name[FL_TOP_KEYS] = {
    [FL_TOP_LIVE] = "live",     [FL_TOP_RESIDENT] = "resident", [FL_TOP_RESERVE] = "reserve",
    [FL_TOP_FAULTS] = "faults", [FL_TOP_REQUESTS] = "requests", [FL_TOP_HIT] = "hit",
    [FL_TOP_PID] = "pid",
};

const char *fl_top_key_name(enum fl_top_key key)
{
    return key_name[key];
}

enum fl_top_key fl_top_key_of(const char *name)
{
    unsigned key = 0;
    while (key < FL_TOP_KEYS && strcmp(name, key_name[key]) != 0) {
        key++;
    }
    return (enum fl_top_key)key;
}

static double value_of(const struct fl_top_process *p, enum fl_top_key key)
{
    switch (key) {
    case FL_TOP_LIVE:
        return fl_top_figure(p, FL_LIVE_LIVE_BYTES);
    case FL_TOP_RESIDENT:
        return (double)p->rss;
    case FL_TOP_RESERVE:
        return fl_top_figure(p, FL_LIVE_RESERVE_BYTES);
    case FL_TOP_FAULTS:
        return p->faults_s;
    case FL_TOP_REQUESTS:
        return p->requests_s;
    case FL_TOP_HIT:
        return fl_top_hit_pct(p);
    default:
        return -(double)p->pid;
    }
}

/* What is not known comes last; equals by process number. */
static int compare(const void *left, const void *right, void *arg)
{
    const enum fl_top_key *key = arg;
    const struct fl_top_process *a = left;
    const struct fl_top_process *b = right;
    double x = value_of(a, *key);
    double y = value_of(b, *key);
    x = isnan(x) ? -INFINITY : x;
    y = isnan(y) ? -INFINITY : y;
    return x != y ? (x < y) - (x > y) : (a->pid > b->pid) - (a->pid < b->pid);
}

void fl_top_sort(struct fl_top *top, enum fl_top_key key)
{
    if (top->count != 0) {
        qsort_r(top->process, top->count, sizeof(top->process[0]), compare, &key);
    }
}
