/* One event of the trace, as it waits to be written. One folder's inner header, of trace.c and
 * trace_event.c. */
#ifndef FL_GPU_TRACE_TRACE_EVENT_H
#define FL_GPU_TRACE_TRACE_EVENT_H

#include "gpu/gpu.h"

enum fl_gpu_event_kind {
    FL_GPU_EVENT_FIGURES, /* value: as struct fl_gpu_figures */
    FL_GPU_EVENT_COPIES,  /* value: copies, their bytes, stalls, their ns */
    FL_GPU_EVENT_CALL,    /* value[0]: bytes */
    FL_GPU_EVENT_INSTANT, /* value[0]: what it is about */
    FL_GPU_EVENT_THREAD,
};

enum { FL_GPU_THREAD_NAME = 16 }; /* bytes, with the NUL, as prctl(2) has it */

struct fl_gpu_event {
    enum fl_gpu_event_kind kind;
    int tid, device; /* device: of FIGURES, COPIES, INSTANT; -1: none */
    unsigned number; /* of FIGURES, COPIES: the track's */
    enum fl_gpu_target target;
    int rc;           /* CALL: the driver's result */
    const char *name; /* CALL, INSTANT; constant */
    uint64_t at_ns, lasts_ns;
    union {
        uint64_t value[4];
        char thread[FL_GPU_THREAD_NAME];
    };
};

/* One or two events of the Chrome trace, each with a comma before it. */
void fl_gpu_event_put(struct fl_text *out, const struct fl_gpu_event *e, int pid);

#endif
