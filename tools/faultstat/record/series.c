#include "faultstat/record/series.h"

#include <string.h>

static const uint64_t first_width_ns = 10000000; /* 10 ms */

void fl_series_start(struct fl_series *series, uint64_t start_ns)
{
    memset(series, 0, sizeof(*series));
    series->start_ns = start_ns;
    series->width_ns = first_width_ns;
}

static void halve(struct fl_series *series)
{
    for (size_t i = 0; i < FL_BUCKETS; i++) {
        struct fl_bucket a = series->bucket[i];
        series->bucket[i] = (struct fl_bucket){0};
        struct fl_bucket *to = &series->bucket[i / 2];
        to->faults += a.faults;
        to->rss = a.rss > to->rss ? a.rss : to->rss;
        to->huge = a.huge > to->huge ? a.huge : to->huge;
    }
    series->width_ns *= 2;
    series->count = (series->count + 1) / 2;
}

struct fl_bucket *fl_series_at(struct fl_series *series, uint64_t time_ns)
{
    uint64_t since = time_ns > series->start_ns ? time_ns - series->start_ns : 0;
    while (since / series->width_ns >= FL_BUCKETS) {
        halve(series);
    }
    size_t i = (size_t)(since / series->width_ns);
    series->count = i >= series->count ? i + 1 : series->count;
    return &series->bucket[i];
}
