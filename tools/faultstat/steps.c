/* Arithmetic over marks. */
#include "faultstat/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double fl_median(double *value, size_t n)
{
    qsort(value, n, sizeof(*value), compare_doubles);
    return n % 2 != 0 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

int fl_steps_add(struct fl_steps *steps, const struct fl_mark *mark)
{
    if (steps->count == steps->capacity) {
        size_t capacity = steps->capacity != 0 ? steps->capacity * 2 : 64;
        struct fl_mark *grown = reallocarray(steps->mark, capacity, sizeof(*grown));
        if (grown == NULL) {
            return -ENOMEM;
        }
        steps->mark = grown;
        steps->capacity = capacity;
    }
    steps->mark[steps->count++] = *mark;
    return 0;
}

size_t fl_steps_count(const struct fl_steps *steps)
{
    return steps->count > 0 ? steps->count - 1 : 0;
}

/* b - a, where a counter that was read with an error may seem to run backward. */
static uint64_t grown(uint64_t a, uint64_t b)
{
    return b > a ? b - a : 0;
}

struct fl_step fl_steps_get(const struct fl_steps *steps, size_t i)
{
    const struct fl_mark *a = &steps->mark[i];
    const struct fl_mark *b = &steps->mark[i + 1];
    return (struct fl_step){
        .wall_ms = (double)(b->arrive_ns - a->leave_ns) / 1e6,
        .user_ms = (double)grown(a->look.app.user_ns, b->look.app.user_ns) / 1e6,
        .sys_ms = (double)grown(a->look.app.sys_ns, b->look.app.sys_ns) / 1e6,
        .minor = grown(a->look.app.minor, b->look.app.minor),
        .major = grown(a->look.app.major, b->look.app.major),
        .helper_minor = grown(a->look.helper.minor, b->look.helper.minor),
    };
}

static size_t warmup_steps(size_t steps, int warmup)
{
    size_t wanted = warmup >= 0 ? (size_t)warmup : steps / 3;
    if (warmup < 0 && wanted < 3) {
        wanted = 3;
    }
    return wanted < steps ? wanted : steps - 1;
}

int fl_steps_summarise(const struct fl_steps *steps, int warmup, struct fl_steps_summary *out)
{
    memset(out, 0, sizeof(*out));
    out->steps = fl_steps_count(steps);
    if (out->steps == 0) {
        return -ENODATA;
    }
    size_t skip = warmup_steps(out->steps, warmup);
    size_t n = out->steady = out->steps - skip;
    double *wall = calloc(n * 2, sizeof(*wall));
    if (wall == NULL) {
        return -ENOMEM;
    }
    double *minor = wall + n;
    for (size_t i = 0; i < n; i++) {
        struct fl_step step = fl_steps_get(steps, skip + i);
        wall[i] = step.wall_ms;
        minor[i] = (double)step.minor;
        out->wall_ms_mean += step.wall_ms / (double)n;
        out->minor_mean += (double)step.minor / (double)n;
        out->major_mean += (double)step.major / (double)n;
        out->helper_minor_mean += (double)step.helper_minor / (double)n;
        out->user_ms_mean += step.user_ms / (double)n;
        out->sys_ms_mean += step.sys_ms / (double)n;
    }
    out->wall_ms_median = fl_median(wall, n);
    out->minor_median = fl_median(minor, n);
    out->wall_ms_min = wall[0];
    out->minor_max = minor[n - 1];
    free(wall);
    out->first = fl_steps_get(steps, 0);
    out->base_rss = steps->mark[0].look.memory.rss;
    out->peak_above = grown(out->base_rss, steps->mark[steps->count - 1].look.memory.rss_peak);
    return 0;
}

void fl_steps_clear(struct fl_steps *steps)
{
    free(steps->mark);
    memset(steps, 0, sizeof(*steps));
}
