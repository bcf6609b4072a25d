/* What a fault of each kind costs on this machine, measured before the command starts: processor
 * time of touching fresh memory, less that of touching the same memory again, with the unmapping.
 * The kernel tells nobody what one fault cost; a pair of events a fault would cost as much as the
 * fault. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_COST_H
#define FAULTLESS_FAULTSTAT_RECORD_COST_H

#include "faultstat/record/kind.h"

struct fl_costs {
    double ns[FL_KIND_COUNT];       /* of a fault; 0 = not measured */
    double saved_ns[FL_KIND_COUNT]; /* what writing resident huge pages instead saves a fault */
    double recording_ns;            /* what the recording adds to a fault */
};

/* Takes some 0.2 s and 64 MiB. What cannot be measured stays 0; huge pages without transparent
 * huge pages, for one.  Threads: the caller must be the only thread (it forks). */
void fl_costs_measure(struct fl_costs *costs);

/* With the events on now, set recording_ns. */
void fl_costs_measure_recording(struct fl_costs *costs);

#endif
