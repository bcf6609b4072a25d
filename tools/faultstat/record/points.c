#include "faultstat/record/points.h"

void fl_points_add(struct fl_points *points, struct fl_point point)
{
    points->stride = points->stride != 0 ? points->stride : 1;
    if (points->seen++ % points->stride != 0) {
        return;
    }
    if (points->count == FL_POINTS_MOST) {
        for (size_t i = 0; i < FL_POINTS_MOST / 2; i++) {
            points->point[i] = points->point[i * 2];
        }
        points->count = FL_POINTS_MOST / 2;
        points->stride *= 2;
    }
    points->point[points->count++] = point;
}
