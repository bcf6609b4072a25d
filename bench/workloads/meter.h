/* Per-step meter of a C workload, the twin of meter.py: wall time, minor faults of application
 * threads (those of an allocator's helpers apart), CPU time; what the program has live; marks for
 * faultstat, the first and the last for bench/fit's tracer. One meter a process. */
#ifndef FAULTLESS_BENCH_METER_H
#define FAULTLESS_BENCH_METER_H

#include <stddef.h>

enum { FL_METER_STEPS = 1000 };

/* There is no large block yet: SUMMARY has the RSS of now as base_mib, and as tables_mib what the
 * library's own tables in memory grow by until the report. Not needed.  Threads: one. */
void fl_meter_base(void);

/* The first step begins.  Threads: the one that marks, while all others wait. */
void fl_meter_begin(void);

/* A step ends after a pause of `nap_ms`, and the next one begins; the pause at the mark belongs to
 * neither. At most FL_METER_STEPS times.  Threads: as fl_meter_begin. */
void fl_meter_step(int nap_ms);

/* `grown` bytes were allocated, or -`grown` are about to be freed.  Threads: any. */
void fl_meter_live(ptrdiff_t grown);

/* Print the line SUMMARY {json}: the steps after the first `warmup`.  Threads: one, at the end. */
void fl_meter_report(const char *name, int warmup);

#endif
