/* The driver's table: found, loaded and asked for its calls once; and what failed last.
 *
 * libcuda is never closed: its threads outlive our calls. It is not looked for before the first
 * fl_gpu_ call, and in a fork's child of a process that has it, not called.
 * Sources: CUDA Driver API, "Driver Entry Point Access"; "Error Handling". */
#include "alloc/alloc.h"
#include "gpu/host/host.h"

#include "gpu/trace/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

enum state { STATE_NEW, STATE_OPENING, STATE_READY, STATE_ABSENT };
enum { TEXT = 192 };

struct fl_cuda fl_cuda;

static struct fl_lock opening; /* rank RUNTIME: what the loader allocates takes those below */
static _Atomic uint32_t
    state; /* release: pairs with the acquire in fl_cuda_open; the table comes before READY */
static _Atomic bool forked; /* relaxed: set in the child while it has one thread */
static _Atomic bool gone;   /* relaxed: the driver has ended; each call says so */
static char why[TEXT];      /* there is no driver. Constant once the state is ABSENT */
static _Thread_local char last[TEXT];

static const struct call {
    const char *name;
    int version;
    bool required;
    size_t at;
} calls[] = {
#define REQUIRED true
#define OPTIONAL false
#define X(need, name, suffix, version, parameters)                                                 \
    {#name, version, need, offsetof(struct fl_cuda, name)},
    FL_CUDA_CALLS(X)
#undef X
#undef REQUIRED
#undef OPTIONAL
};

int fl_gpu_fail(int status, const char *text)
{
    struct fl_text t = fl_text_on(last, sizeof last);

    fl_text_str(&t, text);
    return status;
}

const char *fl_gpu_error(void)
{
    return last;
}

static void put_code(struct fl_text *t, fl_CUresult code)
{
    const char *name = NULL;

    if (fl_cuda.cuGetErrorName != NULL && fl_cuda.cuGetErrorName(code, &name) == FL_CUDA_SUCCESS &&
        name != NULL) {
        fl_text_str(t, name);
        fl_text_str(t, " (");
        fl_text_u64(t, (uint64_t)(unsigned)code);
        fl_text_str(t, ")");
    } else {
        fl_text_str(t, "error ");
        fl_text_u64(t, (uint64_t)(unsigned)code);
    }
}

static int status_of(fl_CUresult code)
{
    switch (code) {
    case FL_CUDA_SUCCESS:
        return 0;
    case FL_CUDA_ERROR_OUT_OF_MEMORY:
        return -ENOMEM;
    case FL_CUDA_ERROR_INVALID_VALUE:
    case FL_CUDA_ERROR_INVALID_HANDLE:
    case FL_CUDA_ERROR_INVALID_DEVICE:
        return -EINVAL;
    case FL_CUDA_ERROR_DEINITIALIZED:
    case FL_CUDA_ERROR_INVALID_CONTEXT:
    case FL_CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return -ESHUTDOWN;
    case FL_CUDA_ERROR_NOT_PERMITTED:
    case FL_CUDA_ERROR_NOT_SUPPORTED:
        return -ENOTSUP;
    case FL_CUDA_ERROR_NOT_INITIALIZED:
    case FL_CUDA_ERROR_STUB_LIBRARY:
    case FL_CUDA_ERROR_NO_DEVICE:
    case FL_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return -ENODEV;
    case FL_CUDA_ERROR_NOT_READY:
    case FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
        return -EBUSY;
    case FL_CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED:
        return -ENOENT;
    default:
        return code >= FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                       code <= FL_CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
                   ? -EINPROGRESS
                   : -EIO;
    }
}

int fl_cuda_status(fl_CUresult code, const char *call, size_t bytes)
{
    struct fl_text t;

    if (code == FL_CUDA_SUCCESS) {
        return 0;
    }
    if (code == FL_CUDA_ERROR_DEINITIALIZED) {
        atomic_store_explicit(&gone, true, memory_order_relaxed);
    }
    t = fl_text_on(last, sizeof last);
    fl_text_str(&t, call);
    if (bytes != 0) {
        fl_text_str(&t, " of ");
        fl_text_u64(&t, bytes);
        fl_text_str(&t, " bytes");
    }
    fl_text_str(&t, ": ");
    if (code == FL_CUDA_ERROR_DEINITIALIZED) { /* what has ended is asked nothing more */
        fl_text_str(&t, "the driver has shut down (4)");
    } else {
        put_code(&t, code);
    }
    return status_of(code);
}

static struct fl_text because(const char *text)
{
    struct fl_text t = fl_text_on(why, sizeof why);

    fl_text_str(&t, text);
    return t;
}

/* A function out of what dlsym or the driver gives: ISO C has no such cast. */
static void put_call(size_t at, void *function)
{
    memcpy((char *)&fl_cuda + at, &function, sizeof function);
}

static bool find_calls(void *library)
{
    fl_cuGetProcAddress *ask = NULL;
    void *found = dlsym(library, "cuGetProcAddress_v2");

    memcpy(&ask, &found, sizeof found);
    if (ask == NULL) {
        (void)because("the driver is older than CUDA 12.0");
        return false;
    }
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const struct call *c = &calls[i];
        int how = 0;

        found = NULL;
        if (ask(c->name, &found, c->version, FL_CU_GET_PROC_ADDRESS_DEFAULT, &how) !=
                FL_CUDA_SUCCESS ||
            how != 0) {
            found = NULL;
        }
        if (found == NULL && c->required) {
            struct fl_text t = because("the driver has no ");
            fl_text_str(&t, c->name);
            return false;
        }
        put_call(c->at, found);
    }
    return true;
}

/* Before anything else, and past cuGetProcAddress: a stub answers nothing but a code. */
static bool initialise(void *library)
{
    void *found = dlsym(library, "cuGetErrorName");
    fl_CUresult code;

    put_call(offsetof(struct fl_cuda, cuGetErrorName), found);
    found = dlsym(library, "cuInit");
    put_call(offsetof(struct fl_cuda, cuInit), found);
    if (found == NULL) {
        (void)because("the driver has no cuInit");
        return false;
    }
    code = fl_cuda.cuInit(0);
    if (code != FL_CUDA_SUCCESS) {
        struct fl_text t = because("cuInit: ");
        put_code(&t, code);
        return false;
    }
    return true;
}

static bool count_devices(void)
{
    int n = 0;
    fl_CUresult code = fl_cuda.cuDeviceGetCount(&n);

    if (code != FL_CUDA_SUCCESS || n <= 0) {
        struct fl_text t = because("cuDeviceGetCount: ");
        if (code != FL_CUDA_SUCCESS) {
            put_code(&t, code);
        } else {
            fl_text_str(&t, "no device");
        }
        return false;
    }
    return true;
}

static bool load(void)
{
    const char *path =
        fl_gpu_host.options == NULL ? NULL : fl_gpu_host.options->text[FL_OPTION_gpu_driver];
    void *library = dlopen(path == NULL ? "libcuda.so.1" : path, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        const char *text = dlerror();
        (void)because(text == NULL ? "no libcuda.so.1" : text);
        return false;
    }
    return initialise(library) && find_calls(library) && count_devices();
}

/* Absent in tests of this layer alone, which start their region themselves. */
/* NOLINTNEXTLINE(readability-redundant-declaration) */
extern FL_HIDDEN __attribute__((weak)) struct fl_route fl_route;

struct fl_region *fl_gpu_region(void)
{
    if (&fl_route != NULL) {
        fl_route.boot();
    }
    return fl_gpu_host.region;
}

int fl_cuda_open(void)
{
    uint32_t now = atomic_load_explicit(&state, memory_order_acquire);

    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "a fork's child: the device is its parent's");
    }
    if (now == STATE_NEW || now == STATE_OPENING) {
        (void)fl_gpu_region();
        fl_lock_acquire(&opening);
        now = atomic_load_explicit(&state, memory_order_relaxed);
        if (now == STATE_NEW) {
            atomic_store_explicit(&state, STATE_OPENING, memory_order_relaxed);
            now = load() ? STATE_READY : STATE_ABSENT;
            atomic_store_explicit(&state, now, memory_order_release);
        }
        fl_lock_release(&opening);
        fl_assert(now == STATE_READY || now == STATE_ABSENT);
    }
    if (now == STATE_ABSENT) {
        return fl_gpu_fail(-ENODEV, why);
    }
    return atomic_load_explicit(&gone, memory_order_relaxed)
               ? fl_gpu_fail(-ESHUTDOWN, "the driver has shut down")
               : 0;
}

bool fl_gpu_is_forked(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

int fl_gpu_make_current(const struct fl_gpu *gpu, struct fl_gpu_guard *g)
{
    fl_CUcontext now = NULL;
    int rc = fl_cuda_open();

    *g = (struct fl_gpu_guard){.mode = FL_CU_STREAM_CAPTURE_MODE_RELAXED};
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuCtxGetCurrent(&now), "cuCtxGetCurrent", 0);
    }
    if (rc == 0 && now != gpu->context) {
        rc = fl_cuda_status(fl_cuda.cuCtxPushCurrent(gpu->context), "cuCtxPushCurrent", 0);
        g->pushed = rc == 0;
    }
    return rc;
}

void fl_gpu_relax(struct fl_gpu_guard *g)
{
    fl_assert(!g->relaxed);
    g->relaxed = fl_cuda.cuThreadExchangeStreamCaptureMode(&g->mode) == FL_CUDA_SUCCESS;
}

int fl_gpu_enter(const struct fl_gpu *gpu, struct fl_gpu_guard *g)
{
    int rc = fl_gpu_make_current(gpu, g);

    if (rc == 0) {
        fl_gpu_relax(g);
    }
    return rc;
}

void fl_gpu_leave(struct fl_gpu_guard *g)
{
    fl_CUcontext was;

    if (g->relaxed) {
        (void)fl_cuda.cuThreadExchangeStreamCaptureMode(&g->mode);
        g->relaxed = false;
    }
    if (g->pushed) {
        (void)fl_cuda.cuCtxPopCurrent(&was);
        g->pushed = false;
    }
}

void fl_gpu_fork_child(void)
{
    uint32_t now = atomic_load_explicit(&state, memory_order_relaxed);

    fl_gpu_tracks_fork_child();
    fl_pinned_fork_child();
    fl_lock_init(&opening, FL_RANK_RUNTIME); /* its holder is not in this process */
    if (now == STATE_OPENING || now == STATE_READY) {
        atomic_store_explicit(&forked, true, memory_order_relaxed);
    }
}
