/* The driver's own pool, which keeps what is freed: the yardstick, and what may be used within a
 * graph. The device's account has what the driver holds for it, in whole pages. */
#include "gpu/pool/pool.h"

#include <errno.h>

enum { PAGE = 2 * FL_MIB };

int fl_async_start(struct fl_gpu_pool *p)
{
    struct fl_CUmemPoolProps props = {
        .allocType = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {FL_CU_MEM_LOCATION_TYPE_DEVICE, p->gpu->device},
    };
    uint64_t keep = UINT64_MAX;

    if (!p->gpu->has_pools) {
        return fl_gpu_fail(-ENOTSUP, "the driver or the device has no memory pools");
    }
    int rc = fl_pool_status(p, fl_cuda.cuMemPoolCreate(&p->async, &props), "cuMemPoolCreate", 0);
    if (rc == 0) {
        rc = fl_pool_status(
            p, fl_cuda.cuMemPoolSetAttribute(p->async, FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
            "cuMemPoolSetAttribute", 0);
        if (rc != 0) {
            fl_async_stop(p);
        }
    }
    return rc;
}

void fl_async_stop(struct fl_gpu_pool *p)
{
    if (p->async != NULL && !fl_pool_is_shut(p)) {
        (void)fl_cuda.cuMemPoolDestroy(p->async);
        fl_gpu_account_give(p->gpu, p->booked);
    }
    p->async = NULL;
}

/* The account has `bytes` of this pool. -ENOMEM: the limit; then it is as before. */
static int book(struct fl_gpu_pool *p, size_t bytes, bool may_fall)
{
    size_t to = fl_align_up(bytes, PAGE);
    int rc = 0;

    fl_lock_acquire(&p->lock);
    size_t was = p->booked;
    to = may_fall ? to : fl_max(to, was);
    p->booked = to;
    fl_lock_release(&p->lock);
    if (to < was) {
        fl_gpu_account_give(p->gpu, was - to);
    } else if (to > was) {
        rc = fl_gpu_account_take(p->gpu, to - was);
    }
    if (rc != 0) {
        fl_lock_acquire(&p->lock);
        p->booked -= to - was;
        fl_lock_release(&p->lock);
    }
    return rc;
}

int fl_async_book(struct fl_gpu_pool *p)
{
    fl_lock_acquire(&p->lock);
    size_t used = p->s.occupied_bytes + p->coming;
    fl_lock_release(&p->lock);
    return book(p, used, false);
}

int fl_async_rebook(struct fl_gpu_pool *p)
{
    uint64_t held = 0;

    return fl_cuda.cuMemPoolGetAttribute(p->async, FL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                                         &held) == FL_CUDA_SUCCESS
               ? book(p, (size_t)held, true)
               : 0;
}

void fl_async_freed(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_lock_acquire(&p->lock);
    (void)fl_stream_stamp(p, s);
    if (!s->lasts) {
        (void)fl_stream_cover(p, s);
    }
    fl_lock_release(&p->lock);
}

int fl_async_trim(struct fl_gpu_pool *p, size_t keep, size_t *out_released)
{
    fl_lock_acquire(&p->lock);
    size_t was = p->booked;
    int rc = fl_stream_drain(p);
    fl_lock_release(&p->lock);
    if (rc == 0) {
        rc = fl_pool_status(p, fl_cuda.cuMemPoolTrimTo(p->async, keep), "cuMemPoolTrimTo", 0);
    }
    if (rc == 0) {
        (void)fl_async_rebook(p);
        fl_lock_acquire(&p->lock);
        *out_released = was - fl_min(was, p->booked);
        fl_lock_release(&p->lock);
    }
    return rc;
}
