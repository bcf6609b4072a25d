/* Adds N spans to a timeline, for callgrind to count.   timeline_cost N */
#include "stats/stats.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

    fl_sys_boot();
    if (fl_timeline_begin() != 0) {
        return 1;
    }
    for (long i = 0; i < n; i++) {
        fl_timeline_span(FL_TIMELINE_STEP, fl_timeline_now(), 3);
    }
    printf("%zu\n", sizeof *fl_timeline);
    return 0;
}
