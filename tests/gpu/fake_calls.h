/* What the tests of the fake driver do with it. */
#ifndef FL_TESTS_GPU_FAKE_CALLS_H
#define FL_TESTS_GPU_FAKE_CALLS_H

#include "gpu/gpu_fixture.h"

static uint64_t take(size_t len)
{
    fl_CUdeviceptr p = 0;

    assert_int_equal(fl_cuda.cuMemAlloc(&p, len), 0);
    return p;
}

static fl_CUevent record(void *stream)
{
    fl_CUevent e = NULL;

    assert_int_equal(fl_cuda.cuEventCreate(&e, FL_CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(fl_cuda.cuEventRecord(e, stream), 0);
    return e;
}

/* What has been reported is what was planted: the test's end is to find nothing. */
static void reported(unsigned races, unsigned violations)
{
    assert_int_equal(fake->races(), races);
    assert_int_equal(fake->violations(), violations);
    assert_true((fake->report()[0] != '\0') == (races + violations > 0));
    fake->reset(true);
}

#endif
