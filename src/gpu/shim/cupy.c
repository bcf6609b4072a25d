/* What CuPy's CFunctionAllocator takes. It names no stream: what it frees any stream may still use
 * that is in order with the legacy one, as CuPy's are unless they are made with non_blocking=True.
 * So a block that was freed is given out again when the legacy stream is past the free.
 *
 * Source: CuPy's documentation, cupy.cuda.CFunctionAllocator, and cupy/cuda/memory.pyx, which looks
 * at no result: without memory the address is 0. */
#include "gpu/shim/shim.h"

#include <errno.h>

static void choose(struct fl_gpu_pool_options *o)
{
    o->gc_fast = false; /* not to the freeing stream at once: CuPy names none */
}

static struct fl_shim shim = {.mutex = PTHREAD_MUTEX_INITIALIZER, .choose = choose};
static _Atomic bool told_free;

struct fl_gpu_pool *fl_gpu_cupy_pool(int device)
{
    return fl_shim_pool(&shim, device, true);
}

static struct fl_gpu_pool *pool_of(void *pool, int device, bool may_make)
{
    struct fl_gpu_pool *p = pool;

    if (p != NULL && p->gpu->ordinal != device) {
        (void)fl_gpu_fail(-EINVAL, "the pool is another device's");
        return NULL;
    }
    return p != NULL ? p : fl_shim_pool(&shim, device, may_make);
}

void *fl_gpu_cupy_alloc(void *pool, size_t size, int device)
{
    struct fl_gpu_pool *p = pool_of(pool, device, true);
    uint64_t address = 0;

    if (p != NULL && fl_gpu_pool_alloc(p, size, NULL, &address) != 0) {
        address = 0;
    }
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

void fl_gpu_cupy_free(void *pool, void *address, int device)
{
    struct fl_gpu_pool *p = pool_of(pool, device, false);

    if (address == NULL || p == NULL || fl_gpu_is_forked()) {
        return;
    }
    int rc = fl_gpu_pool_free(p, (uintptr_t)address, NULL);
    if (rc == -ENOENT || rc == -EIO) { /* else the driver or the process is about to end */
        fl_shim_complain(&told_free, "CuPy frees what was not freed: ");
    }
}
