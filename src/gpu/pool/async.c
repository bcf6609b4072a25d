/* The driver's own pool, which keeps what is freed: the yardstick, and what may be used within a
 * graph. */
#include "gpu/pool/pool.h"

#include <errno.h>

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
    }
    p->async = NULL;
}
