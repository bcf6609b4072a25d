/* Which addresses were touched when, in one step: at most so many points, evenly thinned. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_POINTS_H
#define FAULTLESS_FAULTSTAT_RECORD_POINTS_H

#include "faultstat/record/kind.h"

enum { FL_POINTS_MOST = 4096 };

struct fl_point {
    uint64_t time_ns;
    uint64_t addr;
    enum fl_kind kind;
};

struct fl_points {
    struct fl_point point[FL_POINTS_MOST];
    size_t count;
    size_t stride; /* each so manieth is kept; 0 as 1 */
    size_t seen;
};

void fl_points_add(struct fl_points *points, struct fl_point point);

#endif
