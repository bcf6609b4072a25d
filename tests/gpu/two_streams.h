/* Two streams that a test begins. */
#ifndef FL_TESTS_GPU_TWO_STREAMS_H
#define FL_TESTS_GPU_TWO_STREAMS_H

#include "gpu/pool_fixture.h"

static void *a, *b;

static void begin(void)
{
    a = gpu_stream();
    b = gpu_stream();
}

#endif
