/* The fake driver with a mask on: no table of fake_cuda.h, and the calls that tests make of a
 * machine's driver alone. Their paths for a device run on it (NAME@masked). What is submitted runs
 * by itself, sooner or later; a kernel keeps its stream until a call waits for that. MASKED_NO_PTX:
 * it has no compiler. */
#include "gpu/fake/internal.h"

#include <stdlib.h>
#include <string.h>

typedef void *handle;

#define CALL(name, label, parameters)                                                              \
    FAKE_EXPORT fl_CUresult masked_##name parameters __asm__(label);                               \
    fl_CUresult masked_##name parameters

__attribute__((constructor)) static void begin(void)
{
    fake_schedule(FAKE_CUDA_RANDOM, 0);
}

CALL(cuDeviceGetName, "cuDeviceGetName", (char *name, int len, fl_CUdevice device))
{
    (void)device;
    strncpy(name, "masked", (size_t)len);
    return FL_CUDA_SUCCESS;
}

CALL(cuModuleLoadData, "cuModuleLoadData", (handle * module, const void *image))
{
    enum { JIT_COMPILER_NOT_FOUND = 221 };

    *module = (handle)(uintptr_t)image; /* NOLINT(performance-no-int-to-ptr) */
    return getenv("MASKED_NO_PTX") == NULL ? FL_CUDA_SUCCESS : JIT_COMPILER_NOT_FOUND;
}

CALL(cuModuleGetFunction, "cuModuleGetFunction",
     (handle * function, handle module, const char *name))
{
    *function = module;
    return name != NULL ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_INVALID_VALUE;
}

static fl_CUresult hold(const char *name, fl_CUstream stream)
{
    fl_CUresult refusal = fake_enter(name, FAKE_CONTEXT);
    const struct fake_op op = {.kind = FAKE_OP_MARK, .holds = true};

    if (refusal != FL_CUDA_SUCCESS) {
        return refusal;
    }
    struct fake_stream *s = fake_stream_of(stream);
    FAKE_REFUSE(s == NULL, FL_CUDA_ERROR_INVALID_HANDLE);
    fake_submit_order(s);
    fake_submit(s, &op);
    return fake_leave(FL_CUDA_SUCCESS);
}

/* Any kernel, and any function of the host's, which is not called: it holds its stream. */
CALL(cuLaunchKernel, "cuLaunchKernel",
     (handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
      unsigned shared, fl_CUstream stream, void **parameters, void **extra))
{
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
    return function != NULL && parameters != NULL ? hold("cuLaunchKernel", stream)
                                                  : FL_CUDA_ERROR_INVALID_VALUE;
}

CALL(cuLaunchHostFunc, "cuLaunchHostFunc", (fl_CUstream stream, void (*fn)(void *arg), void *arg))
{
    (void)arg;
    return fn != NULL ? hold("cuLaunchHostFunc", stream) : FL_CUDA_ERROR_INVALID_VALUE;
}

CALL(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (fl_CUstream stream, int mode))
{
    FAKE_ENTER(cuStreamBeginCapture, FAKE_CONTEXT);
    fake_capture_as(mode);
    fake_capture(stream, true);
    return fake_leave(FL_CUDA_SUCCESS);
}

CALL(cuStreamEndCapture, "cuStreamEndCapture", (fl_CUstream stream, handle *graph))
{
    FAKE_ENTER(cuStreamEndCapture, FAKE_CONTEXT);
    fake_capture(stream, false);
    *graph = stream;
    return fake_leave(FL_CUDA_SUCCESS);
}

CALL(cuGraphDestroy, "cuGraphDestroy", (handle graph))
{
    return graph != NULL ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_INVALID_VALUE;
}
