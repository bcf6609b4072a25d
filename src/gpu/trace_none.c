/* What trace.h promises, for as long as nobody traces: trace.c's definitions come before these. */
#include "gpu/trace.h"

#define FL_ELSE __attribute__((weak))

FL_ELSE _Atomic uint32_t fl_gpu_tracing;

FL_ELSE void fl_gpu_track_open(struct fl_gpu_track *t)
{
    (void)t;
}

FL_ELSE void fl_gpu_track_close(struct fl_gpu_track *t)
{
    (void)t;
}

FL_ELSE void fl_gpu_trace_figures(struct fl_gpu_track *t, const struct fl_gpu_figures *f)
{
    (void)t;
    (void)f;
}

FL_ELSE void fl_gpu_trace_call(const char *name, uint64_t start_ns, uint64_t end_ns, size_t bytes,
                               int rc)
{
    (void)name;
    (void)start_ns;
    (void)end_ns;
    (void)bytes;
    (void)rc;
}

FL_ELSE void fl_gpu_trace_instant(const char *name, int device, uint64_t value)
{
    (void)name;
    (void)device;
    (void)value;
}

FL_ELSE uint32_t fl_gpu_tag_now(void)
{
    return 0;
}
