/* What PyTorch's CUDAPluggableAllocator takes: a pool for each device, made when it is first asked
 * for, in the device's primary context, which is PyTorch's, with the options that the environment
 * gives. The pools stay: PyTorch frees at exit, or never. Private pools are in torch_graph.c.
 *
 * PyTorch frees on the stream that it allocated on, which may have been destroyed since: nothing is
 * asked of that then, and what it freed is its own until it is seen again.
 * State: `pool`, each written once. Lock: `mutex` to make one; a pthread mutex, for the driver is
 * called meanwhile.
 * Sources: PyTorch's notes, "CUDA semantics", "Using custom memory allocators for CUDA", and
 * torch/csrc/cuda/CUDAPluggableAllocator.cpp; RMM's CallbackMemoryResource. */
#include "gpu/shim/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct fl_gpu_pool *_Atomic pool[FL_TORCH_DEVICES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool told_refusal, told_free;

/* Once each: what calls goes on without the memory, and says less. */
static void complain(_Atomic bool *told, const char *what)
{
    char line[320];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (!atomic_exchange(told, true)) {
        fl_text_str(&t, what);
        fl_text_str(&t, fl_gpu_error());
        fl_say(line);
    }
}

struct fl_gpu_pool *fl_torch_make(int device, bool is_graph)
{
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *made = NULL;
    struct fl_gpu *gpu;

    if (fl_gpu_open_primary(device, &gpu) != 0) {
        return NULL;
    }
    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    if (is_graph) { /* nothing of it waits, and nothing goes back */
        o.strategy = FL_GPU_AUTO_GROWTH;
        o.gc_gb = 0;
        o.gc_fast = true;
    }
    if (fl_gpu_pool_create(gpu, &o, &made) != 0) {
        (void)fl_gpu_close(gpu);
        return NULL;
    }
    made->is_blind = true;
    made->is_graph = is_graph;
    return made;
}

/* With the mutex held. */
static struct fl_gpu_pool *make(int device)
{
    struct fl_gpu_pool *made = fl_torch_make(device, false);

    if (made != NULL) { /* release: pairs with the acquire in pool_of */
        atomic_store_explicit(&pool[device], made, memory_order_release);
    }
    return made;
}

static struct fl_gpu_pool *pool_of(int device, bool may_make)
{
    struct fl_gpu_pool *p;

    if (device < 0 || device >= FL_TORCH_DEVICES) {
        return NULL;
    }
    p = atomic_load_explicit(&pool[device], memory_order_acquire);
    if (p == NULL && may_make && !fl_gpu_is_forked()) {
        (void)pthread_mutex_lock(&mutex);
        p = atomic_load_explicit(&pool[device], memory_order_relaxed);
        p = p == NULL ? make(device) : p;
        (void)pthread_mutex_unlock(&mutex);
    }
    return p;
}

/* PyTorch looks at no result: a tensor without memory would be used. So out of memory is an
 * exception, as of PyTorch's own allocator; what throws it is the C++ library that PyTorch runs on.
 * Returns when there is none. */
static void raise_error(size_t size)
{
    void (*throw_error)(const char *what) = NULL;
    void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
    void *found = library != NULL ? dlsym(library, "_ZSt21__throw_runtime_errorPKc") : NULL;
    char line[320];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, "CUDA out of memory. Tried to allocate ");
    fl_text_u64(&t, size);
    fl_text_str(&t, " bytes from faultless: ");
    fl_text_str(&t, fl_gpu_error());
    memcpy(&throw_error, &found, sizeof throw_error);
    if (throw_error != NULL) {
        throw_error(line);
    }
    complain(&told_refusal, "no memory of the device for PyTorch: ");
}

static int take(int device, size_t size, void *stream, uint64_t *out)
{
    struct fl_gpu_pool *p = fl_torch_graph_of(device, stream);

    if (device < 0 || device >= FL_TORCH_DEVICES) {
        return fl_gpu_fail(-EINVAL, "no device of that number");
    }
    p = p != NULL ? p : pool_of(device, true);
    return p != NULL ? fl_gpu_pool_alloc(p, size, stream, out) : -EINVAL;
}

void *fl_gpu_torch_alloc(ssize_t size, int device, void *stream)
{
    uint64_t address = 0;
    int rc = size < 0 ? fl_gpu_fail(-EINVAL, "a negative size")
                      : take(device, (size_t)size, stream, &address);

    if (rc == -ENOMEM && fl_torch_graph_reap(device)) {
        rc = take(device, (size_t)size, stream, &address);
    }
    if (rc != 0) {
        raise_error((size_t)size);
        return NULL;
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fl_gpu_torch_free(void *p, ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *of = pool_of(device, false);
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
        complain(&told_free, "PyTorch frees what was not freed: ");
    }
}

void fl_gpu_torch_record_stream(void *p, void *stream)
{
    int rc = -ENOENT;

    for (int i = 0; p != NULL && i < FL_TORCH_DEVICES && rc == -ENOENT && !fl_gpu_is_forked();
         i++) {
        struct fl_gpu_pool *of = pool_of(i, false); /* the call does not say the device */
        rc = of != NULL ? fl_gpu_pool_record_stream(of, (uintptr_t)p, stream) : rc;
    }
    if (p != NULL && rc == -ENOENT && !fl_gpu_is_forked()) {
        (void)fl_torch_graph_record((uintptr_t)p, stream);
    }
}

void fl_gpu_torch_empty_cache(void)
{
    for (int i = 0; i < FL_TORCH_DEVICES && !fl_gpu_is_forked(); i++) {
        struct fl_gpu_pool *of = pool_of(i, false);
        (void)fl_torch_graph_reap(i);
        if (of != NULL) {
            (void)fl_gpu_pool_trim(of, 0, NULL);
        }
    }
}
