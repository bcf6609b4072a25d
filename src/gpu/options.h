/* What the environment says of pools and mirrors, as the option table has it. One folder's inner header.
 *
 * State: none; fl_gpu_host's. Before boot (tests of one file) the table's defaults. */
#ifndef FL_GPU_OPTIONS_H
#define FL_GPU_OPTIONS_H

#include "gpu/gpu.h"

/* An option's value, its text (NULL: unset) and whether the user set it. */
uint64_t fl_gpu_option(enum fl_option_id id);
const char *fl_gpu_option_text(enum fl_option_id id);
bool fl_gpu_option_is_set(enum fl_option_id id);
/* How many processes divide one device among them: FAULTLESS_GPU_SHARE, else the ranks on this host by the devices that this process
 * sees, rounded up: CUDA_VISIBLE_DEVICES' entries, else what the driver counts. At least 1. Reads the environment; may open the driver
 * when there are several ranks. */
unsigned fl_gpu_option_sharers(void);
/* This process's part of FAULTLESS_GPU_LIMIT; 0: none. */
size_t fl_gpu_option_device_limit(void);

#endif
