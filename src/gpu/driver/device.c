/* Devices: one handle each for a device and a context.
 *
 * The driver is called under the list's lock here, when something is opened or closed: what the
 * driver allocates meanwhile is served by layers that know nothing of it, and by no thread that
 * waits for the list. */
#include "gpu/driver/driver.h"

#include <errno.h>
#include <stdlib.h>

static struct fl_lock list_lock; /* rank RUNTIME */
static struct fl_gpu *list;

static int attribute(fl_CUdevice device, int which)
{
    int value = 0;

    return fl_cuda.cuDeviceGetAttribute(&value, which, device) == FL_CUDA_SUCCESS ? value : -1;
}

static void put_hex(struct fl_text *t, unsigned v, unsigned digits)
{
    char text[9];

    for (unsigned i = digits; i-- > 0; v >>= 4) {
        text[i] = "0123456789abcdef"[v & 15];
    }
    text[digits] = '\0';
    fl_text_str(t, text);
}

/* The node of the host's memory next to the device, or -1. */
static int node_of(fl_CUdevice device)
{
    char path[80], text[32];
    struct fl_text t = fl_text_on(path, sizeof path);
    uint64_t node;
    int id = attribute(device, FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID),
        domain = attribute(device, FL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
        bus = attribute(device, FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
        slot = attribute(device, FL_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);

    if (id >= 0 || domain < 0 || bus < 0 || slot < 0) {
        return id >= 0 ? id : -1;
    }
    fl_text_str(&t, "/sys/bus/pci/devices/");
    put_hex(&t, (unsigned)domain, 4);
    fl_text_str(&t, ":");
    put_hex(&t, (unsigned)bus, 2);
    fl_text_str(&t, ":");
    put_hex(&t, (unsigned)slot, 2);
    fl_text_str(&t, ".0/numa_node");
    if (fl_sys.read_file(path, text, sizeof text) != 0) {
        return -1;
    }
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n') {
            *c = '\0';
            break;
        }
    }
    return fl_parse_u64(text, &node) == 0 && node < FL_NODE_IDS ? (int)node : -1;
}

/* The caller's context, if it is one of the device's. NULL: it has none that counts. */
static int current_of(fl_CUdevice device, fl_CUcontext *out)
{
    fl_CUdevice other;
    int rc = fl_cuda_status(fl_cuda.cuCtxGetCurrent(out), "cuCtxGetCurrent", 0);

    if (rc == 0 && *out != NULL) {
        rc = fl_cuda_status(fl_cuda.cuCtxGetDevice(&other), "cuCtxGetDevice", 0);
        if (rc == 0 && other != device) {
            *out = NULL;
        }
    }
    return rc;
}

/* What a new handle knows of its device, its context being current. */
static int look_at(struct fl_gpu *gpu)
{
    struct fl_gpu_guard guard;
    size_t left;
    int rc = fl_gpu_enter(gpu, &guard);

    if (rc != 0) {
        return rc;
    }
    rc = fl_cuda_status(fl_cuda.cuMemGetInfo(&left, &gpu->total), "cuMemGetInfo", 0);
    gpu->node = node_of(gpu->device);
    gpu->has_batch = fl_cuda.cuMemcpyBatchAsync != NULL;
    fl_gpu_leave(&guard);
    return rc;
}

static int add(fl_CUdevice device, int ordinal, fl_CUcontext context, bool primary,
               struct fl_gpu **out)
{
    struct fl_gpu *gpu = calloc(1, sizeof *gpu);
    int rc;

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1) && context != NULL);
    if (gpu == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a handle");
    }
    gpu->device = device;
    gpu->ordinal = ordinal;
    gpu->context = context;
    gpu->primary = primary;
    rc = look_at(gpu);
    if (rc != 0) {
        free(gpu);
        return rc;
    }
    gpu->next = list;
    gpu->opens = 1;
    list = gpu;
    *out = gpu;
    return 0;
}

static struct fl_gpu *find(fl_CUdevice device, fl_CUcontext context)
{
    struct fl_gpu *gpu = list;

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    while (gpu != NULL && (gpu->device != device || gpu->context != context)) {
        gpu = gpu->next;
    }
    return gpu;
}

static int open_device(fl_CUdevice device, int ordinal, bool primary, struct fl_gpu **out)
{
    fl_CUcontext context = NULL;
    bool retained = false;
    int rc = primary ? 0 : current_of(device, &context);

    if (rc == 0 && context == NULL) {
        rc = fl_cuda_status(fl_cuda.cuDevicePrimaryCtxRetain(&context, device),
                            "cuDevicePrimaryCtxRetain", 0);
        retained = rc == 0;
    }
    if (rc != 0) {
        return rc;
    }
    struct fl_gpu *gpu = find(device, context);
    if (gpu == NULL) {
        rc = add(device, ordinal, context, retained, &gpu);
        retained = retained && rc != 0; /* else the handle has it */
    } else {
        gpu->opens++;
        if (retained && !gpu->primary) { /* it was the caller's until now */
            gpu->primary = true;
            retained = false;
        }
    }
    fl_assert(rc != 0 || (gpu != NULL && gpu->opens != 0));
    if (retained) {
        (void)fl_cuda.cuDevicePrimaryCtxRelease(device);
    }
    if (rc == 0) {
        *out = gpu;
    }
    return rc;
}

static int open_in(int device, bool primary, struct fl_gpu **out)
{
    fl_CUdevice id;
    int n = 0, rc;

    if (device < 0 || out == NULL) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_open: no such device, or nowhere to put it");
    }
    rc = fl_cuda_open();
    if (rc != 0) {
        return rc;
    }
    fl_lock_acquire(&list_lock);
    rc = fl_cuda_status(fl_cuda.cuDeviceGetCount(&n), "cuDeviceGetCount", 0);
    if (rc == 0 && device >= n) {
        rc = fl_gpu_fail(-ENODEV, "no device of that number");
    }
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuDeviceGet(&id, device), "cuDeviceGet", 0);
    }
    if (rc == 0) {
        rc = open_device(id, device, primary, out);
    }
    fl_lock_release(&list_lock);
    return rc;
}

int fl_gpu_open(int device, struct fl_gpu **out)
{
    return open_in(device, false, out);
}

int fl_gpu_open_primary(int device, struct fl_gpu **out)
{
    return open_in(device, true, out);
}

static int close_handle(struct fl_gpu *gpu)
{
    struct fl_gpu **at = &list;
    fl_CUresult code;
    int rc;

    fl_assert(fl_lock_is_held(FL_RANK_RUNTIME, 1));
    while (*at != NULL && *at != gpu) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_close: not a device that is open");
    }
    if (gpu->opens > 1) {
        gpu->opens--;
        return 0;
    }
    if (atomic_load_explicit(&gpu->users, memory_order_acquire) != 0) {
        return fl_gpu_fail(-EBUSY, "a pool or a mirror of the device is there");
    }
    fl_assert(gpu->opens == 1);
    *at = gpu->next;
    code = gpu->primary && fl_cuda_open() == 0 ? fl_cuda.cuDevicePrimaryCtxRelease(gpu->device)
                                               : FL_CUDA_SUCCESS;
    free(gpu);
    rc = fl_cuda_status(code, "cuDevicePrimaryCtxRelease", 0);
    return rc == -ESHUTDOWN ? 0 : rc; /* it has gone: there is nothing to give back */
}

int fl_gpu_close(struct fl_gpu *gpu)
{
    int rc;

    if (gpu == NULL) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_close: no device");
    }
    if (fl_gpu_is_forked()) {
        return fl_cuda_open();
    }
    fl_lock_acquire(&list_lock);
    rc = close_handle(gpu);
    fl_lock_release(&list_lock);
    return rc;
}
