/* A kernel that does nothing for a while: for devices, where a stream cannot be told to wait. */
#ifndef FL_TESTS_GPU_SPIN_H
#define FL_TESTS_GPU_SPIN_H

#include "gpu/driver/cuda_abi.h"

/* It is there, for the current context. `library` is the driver's. 0, or the driver's code. */
fl_CUresult gpu_spin_load(void *library);
/* Submits it to `stream`; where it cannot be had, a call of the host's that sleeps. */
fl_CUresult gpu_spin(void *library, void *stream, unsigned ms);

#endif
