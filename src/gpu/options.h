/* What the environment says of pools and mirrors, as the option table has it. One folder's inner header.
 *
 * State: the pointer, written at boot by fl_gpu_start, constant afterwards. */
#ifndef FL_GPU_OPTIONS_H
#define FL_GPU_OPTIONS_H

#include "gpu/gpu.h"

/* NULL: not booted (tests of one file); what asks then gets the built-in values. */
void fl_gpu_options_start(const struct fl_options *o);
/* An option's value, its text (NULL: unset) and whether the user set it. */
uint64_t fl_gpu_option(enum fl_option_id id);
const char *fl_gpu_option_text(enum fl_option_id id);
bool fl_gpu_option_is_set(enum fl_option_id id);
/* How many processes divide one device among them: see docs/gpu.md, "Several processes on one device". At least 1. */
unsigned fl_gpu_option_sharers(void);

#endif
