/* The GPU side: the CUDA driver behind a table, pools of device and of pinned memory, the mirror of
 * a step's layout.
 *
 * Nothing below calls into here, and nothing here runs before the program's first fl_gpu_ call: no
 * constructor, no dlopen. libcuda allocates memory inside our calls, and may call from threads of
 * its own: no lock that an allocation takes is held over a driver call, and the pools' own lock is
 * not either (a block that is in the driver's hands is marked so). Memory for our own records is
 * malloc's: we are a program like any other here. */
#ifndef FL_GPU_GPU_H
#define FL_GPU_GPU_H

#include "core/core.h"
#include "faultless/gpu.h"
#include "region/region.h"
#include "stats/stats.h"

/* What the layers below have to offer, and what the user asked for. Before the first fl_gpu_ call;
 * boot. Constant afterwards.
 *   region  NULL: the process is not served; pinned memory comes from mmap(2). */
void fl_gpu_start(struct fl_region *r, const struct fl_options *o);
/* In a fork's child: every handle says -ECHILD from now on, and nothing calls the driver. */
void fl_gpu_fork_child(void);
/* The devices that were used. `soon`: no lock is waited for, as befits the worker, which serves
 * page faults that a holder may meet; then some may be left out. */
void fl_gpu_stats_read(struct fl_stats_gpus *out, bool soon);

#endif
