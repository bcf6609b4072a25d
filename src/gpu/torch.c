/* The two functions that PyTorch's CUDAPluggableAllocator takes, and the one for streams: a pool for each device, made when it is first
 * asked for, with the options that the environment gives. The pools stay: PyTorch frees at exit, or never.
 *
 * PyTorch frees on the stream that it allocated on, which may have been destroyed since: nothing is asked of that then, and what it
 * freed is its own until it is seen again.
 * State: `pool`, each written once. Lock: `mutex` to make one; a pthread mutex, for the driver is called meanwhile.
 * Sources: PyTorch's notes, "CUDA semantics", "Using custom memory allocators for CUDA"; RMM's CallbackMemoryResource. */
#include "gpu/planned.h"
#include "gpu/pool.h"

#include <errno.h>
#include <pthread.h>

enum { DEVICES = 64 };

static struct fl_gpu_pool *_Atomic pool[DEVICES];
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

/* With the mutex held. */
static struct fl_gpu_pool *make(int device)
{
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *made = NULL;
    struct fl_gpu *gpu;

    if (fl_gpu_open(device, &gpu) != 0) {
        return NULL;
    }
    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    if (fl_gpu_pool_create(gpu, &o, &made) != 0) {
        (void)fl_gpu_close(gpu);
        return NULL;
    }
    made->is_blind = true;
    /* release: pairs with the acquire in pool_of */
    atomic_store_explicit(&pool[device], made, memory_order_release);
    return made;
}

static struct fl_gpu_pool *pool_of(int device, bool may_make)
{
    struct fl_gpu_pool *p;

    if (device < 0 || device >= DEVICES) {
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

void *fl_gpu_torch_alloc(ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *p = pool_of(device, true);
    uint64_t address = 0;
    int rc = p == NULL || size < 0 ? -EINVAL : fl_gpu_pool_alloc(p, (size_t)size, stream, &address);

    if (rc != 0) {
        complain(&told_refusal, "no memory of the device for PyTorch: ");
        return NULL;
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fl_gpu_torch_free(void *p, ssize_t size, int device, void *stream)
{
    struct fl_gpu_pool *of = pool_of(device, false);
    int rc;

    (void)size;
    if (p == NULL || of == NULL) {
        return;
    }
    rc = fl_pool_free(of, (uintptr_t)p, stream, false);
    if (rc == -ENOENT || rc == -EIO) { /* else the driver or the process is about to end */
        complain(&told_free, "PyTorch frees what was not freed: ");
    }
}

/* Which pool has it: the call does not say the device. */
static bool owns(struct fl_gpu_pool *p, uint64_t address)
{
    bool found;

    if (p->plan != NULL && fl_planned_owns(p, address)) {
        return true;
    }
    fl_lock_acquire(&p->lock);
    found = fl_pool_find_used(p, address) != NULL;
    fl_lock_release(&p->lock);
    return found;
}

void fl_gpu_torch_record_stream(void *p, void *stream)
{
    for (int i = 0; p != NULL && i < DEVICES && !fl_gpu_is_forked(); i++) {
        struct fl_gpu_pool *of = pool_of(i, false);
        if (of != NULL && owns(of, (uintptr_t)p)) {
            (void)fl_gpu_pool_record_stream(of, (uintptr_t)p, stream);
            return;
        }
    }
}
