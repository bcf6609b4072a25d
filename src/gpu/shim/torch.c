/* What PyTorch's CUDAPluggableAllocator takes: a pool for each device (pools.c). Private pools are
 * in torch_graph.c.
 *
 * PyTorch frees on the stream that it allocated on, which may have been destroyed since: nothing is
 * asked of that then, and what it freed is its own until it is seen again.
 * Sources: PyTorch's notes, "CUDA semantics", "Using custom memory allocators for CUDA", and
 * torch/csrc/cuda/CUDAPluggableAllocator.cpp; RMM's CallbackMemoryResource. */
#include "gpu/shim/shim.h"

#include <errno.h>

static _Atomic int chosen = FL_GPU_AUTO; /* enum fl_gpu_strategy; AUTO: as the environment says */
static _Atomic bool told_init, told_refusal, told_free;

static void choose(struct fl_gpu_pool_options *o)
{
    int strategy = atomic_load_explicit(&chosen, memory_order_relaxed);

    o->strategy = strategy != FL_GPU_AUTO ? (enum fl_gpu_strategy)strategy : o->strategy;
}

static struct fl_shim shim = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .choose = choose, .is_blind = true};

static void choose_for_graph(struct fl_gpu_pool_options *o)
{
    o->strategy = FL_GPU_AUTO_GROWTH; /* nothing of it waits, and nothing goes back */
    o->gc_gb = 0;
    o->gc_fast = true;
}

struct fl_gpu_pool *fl_torch_make(int device)
{
    static const struct fl_shim graph = {.choose = choose_for_graph};
    struct fl_gpu_pool *made = fl_shim_make(&graph, device, NULL);

    if (made != NULL) {
        made->is_blind = made->is_graph = true;
    }
    return made;
}

int fl_gpu_torch_use(enum fl_gpu_strategy strategy)
{
    int rc;

    if (strategy < FL_GPU_AUTO || strategy > FL_GPU_AUTO_GROWTH) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_torch_use: no such strategy");
    }
    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "a fork's child: the devices are its parent's");
    }
    (void)pthread_mutex_lock(&shim.mutex);
    rc = shim.making != 0 ? -EBUSY : 0;
    for (int i = 0; i < FL_GPU_DEVICES; i++) {
        rc = fl_shim_pool(&shim, i, false) != NULL ? -EBUSY : rc;
    }
    if (rc == 0) {
        atomic_store_explicit(&chosen, (int)strategy, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&shim.mutex);
    return rc == 0 ? 0 : fl_gpu_fail(rc, "a pool of PyTorch's has been made already");
}

struct fl_gpu_pool *fl_gpu_torch_pool(int device)
{
    return fl_shim_pool(&shim, device, true);
}

/* ---- out of memory ---- */

/* PyTorch looks at no result: a tensor without memory would be used. Programs look for "out of
 * memory" and try again with less, so nothing else says that. Returns when there is no C++
 * library. */
static void raise_error(size_t size, int device, bool no_memory)
{
    char line[512];
    struct fl_text t = fl_text_on(line, sizeof line);
    struct fl_gpu_device_stats s = {.size = sizeof s};

    if (no_memory) {
        fl_text_str(&t, "CUDA out of memory. Tried to allocate ");
        fl_text_u64(&t, size);
        fl_text_str(&t, " bytes from faultless: ");
    } else {
        fl_text_str(&t, "faultless: CUDA memory: ");
    }
    fl_text_str(&t, fl_gpu_error());
    if (no_memory && fl_gpu_device_stats(device, &s) == 0) {
        fl_text_str(&t, ". GPU ");
        fl_text_u64(&t, (uint64_t)device);
        fl_text_str(&t, ": ");
        fl_text_u64(&t, s.held_bytes);
        fl_text_str(&t, " bytes are held, ");
        fl_text_u64(&t, s.occupied_bytes);
        fl_text_str(&t, " of these by tensors");
    }
    fl_torch_throw(line, no_memory);
    fl_shim_complain(&told_refusal, "no memory of the device for PyTorch: ");
}

static int take(int device, size_t size, void *stream, uint64_t *out)
{
    int rc = fl_torch_graph_take(device, size, stream, out);

    if (rc != -ENOENT) {
        return rc;
    }
    struct fl_gpu_pool *p = fl_shim_pool(&shim, device, true);
    return p != NULL ? fl_gpu_pool_alloc(p, size, stream, out) : -EINVAL;
}

/* What is idle and the request's own pool cannot give back: released private pools, what the
 * device's pool has for a private one. True: there was something. */
static bool make_room(int device, void *stream)
{
    struct fl_gpu_pool *p = fl_shim_pool(&shim, device, false);
    size_t released = 0;
    bool reaped = fl_torch_graph_reap(device);

    if (p != NULL && fl_torch_graph_routes(device, stream)) {
        (void)fl_gpu_pool_trim(p, 0, &released);
    }
    return reaped || released != 0;
}

void *fl_gpu_torch_alloc(ssize_t size, int device, void *stream)
{
    uint64_t address = 0;
    int rc = size < 0 ? fl_gpu_fail(-EINVAL, "a negative size")
                      : take(device, (size_t)size, stream, &address);

    if ((rc == -ENOMEM || rc == -EINPROGRESS) && make_room(device, stream)) {
        rc = take(device, (size_t)size, stream, &address);
    }
    if (rc != 0) {
        raise_error((size_t)size, device, rc == -ENOMEM || rc == -EINPROGRESS);
        return NULL;
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fl_gpu_torch_free(void *p, ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *of = fl_shim_pool(&shim, device, false);
    int rc = -ENOENT;

    (void)size;
    if (p == NULL || fl_gpu_is_forked()) {
        return;
    }
    if (of != NULL) {
        rc = fl_pool_free(of, (uintptr_t)p, stream, false);
    }
    if (rc == -ENOENT) {
        int other = fl_torch_graph_free(device, (uintptr_t)p, stream);
        rc = other != -ENOENT || of != NULL ? other : 0; /* of no pool of ours */
    }
    if (rc == -ENOENT || rc == -EIO) { /* else the driver or the process is about to end */
        fl_shim_complain(&told_free, "PyTorch frees what was not freed: ");
    }
}

/* ---- segments ---- */

/* What PyTorch's own allocator divides it frees as by cudaFree: a graph that used it may run on
 * any stream, which the driver's free waits for. */
static void choose_for_segments(struct fl_gpu_pool_options *o)
{
    o->strategy = FL_GPU_UNPOOLED;
    o->gc_gb = 0;
}

static struct fl_shim segments = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                  .choose = choose_for_segments};

void *fl_gpu_torch_segment_alloc(ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *p = size >= 0 ? fl_shim_pool(&segments, device, true) : NULL;
    uint64_t address = 0;

    if (p == NULL || fl_gpu_pool_alloc(p, (size_t)size, stream, &address) != 0) {
        return NULL;
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fl_gpu_torch_segment_free(void *p, ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *of = fl_shim_pool(&segments, device, false);

    (void)size;
    if (p == NULL || of == NULL || fl_gpu_is_forked()) {
        return;
    }
    int rc = fl_pool_free(of, (uintptr_t)p, stream, false);
    if (rc == -ENOENT || rc == -EIO) {
        fl_shim_complain(&told_free, "PyTorch frees what was not freed: ");
    }
}

void fl_gpu_torch_record_stream(void *p, void *stream)
{
    int rc = -ENOENT;

    for (int i = 0; p != NULL && i < FL_GPU_DEVICES && rc == -ENOENT && !fl_gpu_is_forked(); i++) {
        struct fl_gpu_pool *of =
            fl_shim_pool(&shim, i, false); /* the call does not say the device */
        rc = of != NULL ? fl_gpu_pool_record_stream(of, (uintptr_t)p, stream) : rc;
    }
    if (p != NULL && rc == -ENOENT && !fl_gpu_is_forked()) {
        (void)fl_torch_graph_record((uintptr_t)p, stream);
    }
}

void fl_gpu_torch_empty_cache(void)
{
    for (int i = 0; i < FL_GPU_DEVICES && !fl_gpu_is_forked(); i++) {
        struct fl_gpu_pool *of = fl_shim_pool(&shim, i, false);
        (void)fl_torch_graph_reap(i);
        if (of != NULL) {
            (void)fl_gpu_pool_trim(of, 0, NULL);
        }
    }
}

void fl_gpu_torch_init(int devices)
{
    (void)devices;
    if (fl_cuda_open() != 0) {
        fl_shim_complain(&told_init, "no driver for PyTorch's memory: ");
    }
}

void fl_gpu_torch_memory_fraction(double fraction, int device)
{
    struct fl_gpu_pool *p = !fl_gpu_is_forked() ? fl_shim_pool(&shim, device, true) : NULL;

    if (p != NULL && fraction >= 0 && fraction <= 1) {
        size_t bytes = (size_t)((double)p->gpu->total * fraction);
        fl_gpu_account_bound(p->gpu, fl_max(bytes, 1));
    }
}

void *fl_gpu_torch_base_alloc(void *p, size_t *size)
{
    struct fl_gpu_block b = {.size = sizeof b};

    if (p == NULL || fl_gpu_owner((uintptr_t)p, &b) == NULL) {
        return p;
    }
    if (size != NULL) {
        *size = b.base_bytes;
    }
    return (void *)(uintptr_t)b.base; /* NOLINT(performance-no-int-to-ptr) */
}
