/* cuInit, devices, contexts, how calls are found, what errors are called. */
#include "gpu/fake/internal.h"

#include <string.h>
#include <unistd.h>

enum { DEVICES = 8, CONTEXTS = 256, STACK = 16 };

static struct fake_context contexts[CONTEXTS];
static unsigned ncontexts;
static struct fake_context *primary[DEVICES];
static uint32_t
    generation;   /* of contexts: what a thread has on its stack from before a reset is gone */
static int owner; /* the process that called cuInit; 0: none */
static const char *hidden = ""; /* a call that is not found */

static _Thread_local struct {
    uint32_t generation;
    unsigned depth;
    struct fake_context *at[STACK];
} stack;

static void refresh(void)
{
    if (stack.generation != generation) {
        stack.generation = generation;
        stack.depth = 0;
    }
}

struct fake_context *fake_context_now(void)
{
    refresh();
    return stack.depth == 0 ? NULL : stack.at[stack.depth - 1];
}

fl_CUresult fake_init(void)
{
    if (owner != 0 && owner != getpid()) {
        fake_violation("%s in a fork's child", fake_call_now());
        return FL_CUDA_ERROR_NOT_INITIALIZED;
    }
    return owner == 0 ? FL_CUDA_ERROR_NOT_INITIALIZED : FL_CUDA_SUCCESS;
}

fl_CUresult fake_cuInit(unsigned flags)
{
    FAKE_ENTER(cuInit, FAKE_ALWAYS);
    FAKE_REFUSE(flags != 0, FL_CUDA_ERROR_INVALID_VALUE);
    FAKE_REFUSE(owner != 0 && owner != getpid(), FL_CUDA_ERROR_NOT_INITIALIZED);
    FAKE_REFUSE(fake_setting[FAKE_CUDA_DEVICES] == 0, FL_CUDA_ERROR_NO_DEVICE);
    owner = getpid();
    return fake_leave(FL_CUDA_SUCCESS);
}

FAKE_CALL(cuDriverGetVersion, FAKE_ALWAYS, (int *version), FL_CUDA_SUCCESS,
          *version = (int)fake_setting[FAKE_CUDA_VERSION])

fl_CUresult fake_cuGetErrorName(fl_CUresult code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{0, "CUDA_SUCCESS"},
                 {1, "CUDA_ERROR_INVALID_VALUE"},
                 {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {3, "CUDA_ERROR_NOT_INITIALIZED"},
                 {4, "CUDA_ERROR_DEINITIALIZED"},
                 {34, "CUDA_ERROR_STUB_LIBRARY"},
                 {100, "CUDA_ERROR_NO_DEVICE"},
                 {101, "CUDA_ERROR_INVALID_DEVICE"},
                 {201, "CUDA_ERROR_INVALID_CONTEXT"},
                 {400, "CUDA_ERROR_INVALID_HANDLE"},
                 {600, "CUDA_ERROR_NOT_READY"},
                 {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
                 {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
                 {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
                 {800, "CUDA_ERROR_NOT_PERMITTED"},
                 {801, "CUDA_ERROR_NOT_SUPPORTED"},
                 {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
                 {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
                 {999, "CUDA_ERROR_UNKNOWN"}};

    FAKE_ENTER(cuGetErrorName, FAKE_ALWAYS);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].code == code) {
            *name = names[i].name;
            return fake_leave(FL_CUDA_SUCCESS);
        }
    }
    *name = NULL;
    return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
}

static bool is_device(int device)
{
    return device >= 0 && (uint64_t)device < fake_setting[FAKE_CUDA_DEVICES] && device < DEVICES;
}

FAKE_CALL(cuDeviceGet, 0, (fl_CUdevice * device, int ordinal), FL_CUDA_SUCCESS,
          FAKE_REFUSE(!is_device(ordinal), FL_CUDA_ERROR_INVALID_DEVICE);
          *device = ordinal)

FAKE_CALL(cuDeviceGetCount, 0, (int *count), FL_CUDA_SUCCESS,
          *count = (int)fake_setting[FAKE_CUDA_DEVICES])

fl_CUresult fake_cuDeviceGetAttribute(int *value, int attribute, fl_CUdevice device)
{
    FAKE_ENTER(cuDeviceGetAttribute, 0);
    FAKE_REFUSE(!is_device(device), FL_CUDA_ERROR_INVALID_DEVICE);
    switch (attribute) {
    case FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        *value = (int)fake_setting[FAKE_CUDA_NODE];
        break;
    case FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = 0xfafa; /* where no machine has anything */
        break;
    default:
        *value = device;
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

static struct fake_context *context_add(int device)
{
    struct fake_context *c = NULL;

    if (ncontexts < CONTEXTS) {
        c = &contexts[ncontexts++];
        *c = (struct fake_context){.device = device, .alive = true};
    }
    return c;
}

fl_CUresult fake_cuDevicePrimaryCtxRetain(fl_CUcontext *context, fl_CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRetain, 0);
    FAKE_REFUSE(!is_device(device), FL_CUDA_ERROR_INVALID_DEVICE);
    if (primary[device] == NULL) {
        primary[device] = context_add(device);
    }
    FAKE_REFUSE(primary[device] == NULL, FL_CUDA_ERROR_OUT_OF_MEMORY);
    primary[device]->retains++;
    *context = (fl_CUcontext)(void *)primary[device];
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuDevicePrimaryCtxRelease(fl_CUdevice device)
{
    FAKE_ENTER(cuDevicePrimaryCtxRelease, 0);
    if (!is_device(device) || primary[device] == NULL) {
        fake_violation("the primary context is released by who does not have it");
        return fake_leave(FL_CUDA_ERROR_INVALID_CONTEXT);
    }
    if (--primary[device]->retains == 0) {
        primary[device]->alive = false;
        fake_stream_context_ends(primary[device]);
        primary[device] = NULL;
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

unsigned fake_retained(int device)
{
    return is_device(device) && primary[device] != NULL ? primary[device]->retains : 0;
}

FAKE_CALL(cuCtxGetCurrent, 0, (fl_CUcontext * context), FL_CUDA_SUCCESS,
          *context = (fl_CUcontext)(void *)fake_context_now())

static struct fake_context *context_of(fl_CUcontext handle)
{
    for (unsigned i = 0; i < ncontexts; i++) {
        if ((void *)&contexts[i] == (void *)handle) {
            return &contexts[i];
        }
    }
    return NULL;
}

fl_CUresult fake_cuCtxPushCurrent(fl_CUcontext context)
{
    FAKE_ENTER(cuCtxPushCurrent, 0);
    struct fake_context *c = context_of(context);

    refresh();
    FAKE_REFUSE(c == NULL || stack.depth == STACK, FL_CUDA_ERROR_INVALID_CONTEXT);
    FAKE_REFUSE(!c->alive, FL_CUDA_ERROR_CONTEXT_IS_DESTROYED);
    stack.at[stack.depth++] = c;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuCtxPopCurrent(fl_CUcontext *context)
{
    FAKE_ENTER(cuCtxPopCurrent, 0);
    struct fake_context *c = fake_context_now();

    if (c == NULL) {
        fake_violation("cuCtxPopCurrent with nothing there");
        return fake_leave(FL_CUDA_ERROR_INVALID_CONTEXT);
    }
    stack.depth--;
    *context = (fl_CUcontext)(void *)c;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuCtxSetCurrent(fl_CUcontext context)
{
    FAKE_ENTER(cuCtxSetCurrent, 0);
    refresh();
    stack.depth -= stack.depth > 0;
    if (context != NULL) {
        stack.at[stack.depth++] = context_of(context);
    }
    return fake_leave(FL_CUDA_SUCCESS);
}

FAKE_CALL(cuCtxGetDevice, FAKE_CONTEXT, (fl_CUdevice * device), FL_CUDA_SUCCESS,
          *device = fake_context_now()->device)

FAKE_CALL(cuCtxSynchronize, FAKE_CONTEXT | FAKE_NO_CAPTURE | FAKE_WHOLE_CONTEXT, (void),
          FL_CUDA_SUCCESS, fake_sync_device(fake_context_now()->device))

void *fake_context_new(int device)
{
    struct fake_context *c = context_add(device);

    refresh();
    if (c != NULL && stack.depth < STACK) {
        stack.at[stack.depth++] = c;
    }
    return c;
}

void fake_context_end(void *context)
{
    struct fake_context *c = context;

    refresh();
    c->alive = false;
    stack.depth -= stack.depth > 0 && stack.at[stack.depth - 1] == c;
    fake_stream_context_ends(c);
}

void fake_device_reset(bool keep_contexts)
{
    hidden = "";
    if (!keep_contexts) {
        memset(contexts, 0, sizeof contexts);
        memset(primary, 0, sizeof primary);
        ncontexts = 0;
        generation++;
        owner = 0;
    }
}

void fake_hide(const char *name)
{
    hidden = name;
}

#ifndef FAKE_OLD
/* As a driver of CUDA 12 and later has it; FAKE_OLD is one before. */
FAKE_EXPORT fl_CUresult fake_cuGetProcAddress(const char *symbol, void **out, int version,
                                              uint64_t flags,
                                              int *status) __asm__("cuGetProcAddress_v2");

fl_CUresult fake_cuGetProcAddress(const char *symbol, void **out, int version, uint64_t flags,
                                  int *status)
{
    static const struct {
        const char *name;
        int version;
        void *call;
    } calls[] = {
#define X(need, name, suffix, version, parameters) {#name, version, (void *)fake_##name},
        FL_CUDA_CALLS(X)
#undef X
#define X(name, suffix, version, parameters) {#name, version, (void *)fake_##name},
            FAKE_MORE_CALLS(X)
#undef X
    };

    FAKE_ENTER(cuGetProcAddress, FAKE_ALWAYS);
    (void)flags;
    *out = NULL;
    int nowhere;
    status = status != NULL ? status : &nowhere; /* a caller that does not ask: PyTorch */
    *status = 1;                                 /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (strcmp(calls[i].name, symbol) == 0 && strcmp(hidden, symbol) != 0) {
            /* What is asked for by an older version than it appeared in, or is newer than the
             * driver. */
            bool there = version >= calls[i].version &&
                         (uint64_t)calls[i].version <= fake_setting[FAKE_CUDA_VERSION];
            *out = there ? calls[i].call : NULL;
            *status = there ? 0 : 2; /* CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT */
            break;
        }
    }
    return fake_leave(*out != NULL ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_NOT_FOUND);
}
#endif
