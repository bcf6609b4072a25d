/* What a fault of each kind costs on this machine, measured before the command starts: processor
 * time of touching fresh memory, less that of touching the same memory again, with the unmapping.
 * The kernel does not tell what one fault cost; a pair of events a fault would cost as much as the
 * fault. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_COST_H
#define FAULTLESS_FAULTSTAT_RECORD_COST_H

#include "faultstat/record/kind.h"

struct fl_costs {
    double ns[FL_KIND_COUNT];       /* of a fault; 0 = not measured */
    double saved_ns[FL_KIND_COUNT]; /* what writing resident huge pages instead saves a fault */
    double user_ns[FL_KIND_COUNT];  /* the part of it that counts as user time: the way back from
                                     * the fault, address translation, lines that the kernel
                                     * has brought into the cache (then below 0) */
    double user_reach_ns[FL_KIND_COUNT]; /* how far that may lie off, either way */
    double walk;    /* the part of its user time that a streaming loop over resident memory loses to
                  * base pages, by address translation; a loop that computes loses less */
    double pass_ns; /* writing and reading a base page's length of resident memory once */
    double clear_ns;     /* clearing a base page's length of resident memory */
    double recording_ns; /* what the recording adds to a fault */
};

/* Takes some 1.5 s and 128 MiB. What cannot be measured stays 0; huge pages without transparent
 * huge pages, for one.  Threads: the caller must be the only thread (it forks). */
void fl_costs_measure(struct fl_costs *costs);

/* With the events on now, set recording_ns. */
void fl_costs_measure_recording(struct fl_costs *costs);

#endif
