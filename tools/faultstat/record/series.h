/* Faults and memory over time, in bounded memory: when time runs past the end, two buckets become
 * one. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_SERIES_H
#define FAULTLESS_FAULTSTAT_RECORD_SERIES_H

#include <stddef.h>
#include <stdint.h>

enum { FL_BUCKETS = 600 };

struct fl_bucket {
    double faults;
    uint64_t rss;  /* bytes, the most seen; 0 = not seen */
    uint64_t huge; /* bytes, likewise */
};

/* T1: bucket i holds start_ns + i * width_ns up to the next one's begin. */
struct fl_series {
    uint64_t start_ns;
    uint64_t width_ns;
    size_t count; /* buckets that were reached */
    struct fl_bucket bucket[FL_BUCKETS];
};

void fl_series_start(struct fl_series *series, uint64_t start_ns);

/* The bucket of a time; the first for one before the start. */
struct fl_bucket *fl_series_at(struct fl_series *series, uint64_t time_ns);

#endif
