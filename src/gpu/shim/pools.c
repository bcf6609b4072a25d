/* The pools that other libraries' hooks allocate from: one a device, made when it is first asked
 * for, in the device's primary context, which is theirs, with the options that the environment
 * gives. They stay: libraries free at exit, or never.
 *
 * State: the caller's struct fl_shim; each pool is written once. Lock: its mutex, which is held
 * over no call of the driver: what is made at the same time twice is ended once. */
#include "gpu/shim/shim.h"

#include <errno.h>

struct fl_gpu_pool *fl_shim_make(const struct fl_shim *shim, int device, struct fl_gpu **out)
{
    struct fl_gpu_pool_options o;
    struct fl_gpu_pool *made = NULL;
    struct fl_gpu *gpu;

    if (fl_gpu_open_primary(device, &gpu) != 0) {
        return NULL;
    }
    fl_gpu_pool_defaults(&o, FL_GPU_DEVICE);
    shim->choose(&o);
    if (fl_gpu_pool_create(gpu, &o, &made) != 0) {
        (void)fl_gpu_close(gpu);
        return NULL;
    }
    if (out != NULL) {
        *out = gpu;
    }
    return made;
}

static struct fl_gpu_pool *made_now(struct fl_shim *shim, int device)
{
    struct fl_gpu *gpu = NULL;

    (void)pthread_mutex_lock(&shim->mutex);
    shim->making++;
    (void)pthread_mutex_unlock(&shim->mutex);
    struct fl_gpu_pool *fresh = fl_shim_make(shim, device, &gpu);
    (void)pthread_mutex_lock(&shim->mutex);
    fl_assert(shim->making != 0);
    shim->making--;
    struct fl_gpu_pool *p = atomic_load_explicit(&shim->pool[device], memory_order_relaxed);
    if (p == NULL && fresh != NULL) {
        p = fresh;
        p->is_blind = shim->is_blind;
        /* release: pairs with the acquire in fl_shim_pool */
        atomic_store_explicit(&shim->pool[device], p, memory_order_release);
    }
    (void)pthread_mutex_unlock(&shim->mutex);
    if (fresh != NULL && p != fresh) { /* another thread was first */
        (void)fl_gpu_pool_destroy(fresh);
        (void)fl_gpu_close(gpu);
    }
    return p;
}

struct fl_gpu_pool *fl_shim_pool(struct fl_shim *shim, int device, bool may_make)
{
    struct fl_gpu_pool *p;

    if (device < 0 || device >= FL_GPU_DEVICES) {
        (void)fl_gpu_fail(-EINVAL, "no device of that number");
        return NULL;
    }
    p = atomic_load_explicit(&shim->pool[device], memory_order_acquire);
    if (p == NULL && may_make && fl_gpu_is_forked()) {
        (void)fl_gpu_fail(-ECHILD, "a fork's child: the devices are its parent's");
    } else if (p == NULL && may_make) {
        p = made_now(shim, device);
    }
    return p;
}

void fl_shim_complain(_Atomic bool *told, const char *what)
{
    char line[320];
    struct fl_text t = fl_text_on(line, sizeof line);

    if (!atomic_exchange(told, true)) {
        fl_text_str(&t, what);
        fl_text_str(&t, fl_gpu_error());
        fl_say(line);
    }
}
