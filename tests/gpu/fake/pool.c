/* The driver's own pools: what one stream freed another may have, in the order that the driver puts
 * in between. */
#include "gpu/fake/internal.h"

#include <stdlib.h>

struct fake_pool {
    struct fake_pool *next;
    int device;
    /* Bytes kept; unlike a driver's, nothing goes back before it is trimmed or destroyed. */
    uint64_t threshold;
};

static struct fake_pool *pools;

static struct fake_pool *pool_of(fl_CUmemoryPool handle)
{
    struct fake_pool *p = pools;

    while (p != NULL && (void *)p != (void *)handle) {
        p = p->next;
    }
    if (p == NULL) {
        fake_violation("%s: no such pool", fake_call_now());
    }
    return p;
}

fl_CUresult fake_cuMemPoolCreate(fl_CUmemoryPool *pool, const struct fl_CUmemPoolProps *props)
{
    FAKE_ENTER(cuMemPoolCreate, FAKE_NO_CAPTURE);
    struct fake_pool *p;

    if (fake_setting[FAKE_CUDA_POOLS] == 0) {
        return fake_leave(FL_CUDA_ERROR_NOT_SUPPORTED);
    }
    if (props->allocType != FL_CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE || props->location.id < 0 ||
        (uint64_t)props->location.id >= fake_setting[FAKE_CUDA_DEVICES]) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    p = fake_zalloc(sizeof *p);
    p->device = props->location.id;
    p->next = pools;
    pools = p;
    *pool = (fl_CUmemoryPool)(void *)p;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemPoolSetAttribute(fl_CUmemoryPool pool, int attribute, void *value)
{
    FAKE_ENTER(cuMemPoolSetAttribute, 0);
    struct fake_pool *p = pool_of(pool);

    if (p == NULL || attribute != FL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    p->threshold = *(uint64_t *)value;
    return fake_leave(FL_CUDA_SUCCESS);
}

static size_t held_by(const struct fake_pool *p)
{
    size_t held = 0;

    for (const struct fake_block *b = fake_blocks(p->device); b != NULL; b = b->next) {
        held += b->pool == p ? b->len : 0;
    }
    return held;
}

fl_CUresult fake_cuMemPoolGetAttribute(fl_CUmemoryPool pool, int attribute, void *value)
{
    FAKE_ENTER(cuMemPoolGetAttribute, 0);
    const struct fake_pool *p = pool_of(pool);

    if (p == NULL || attribute != FL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    *(uint64_t *)value = held_by(p);
    return fake_leave(FL_CUDA_SUCCESS);
}

/* Gives back idle blocks that nothing queued is at, until `keep` bytes are left. */
static void trim(struct fake_pool *p, size_t keep)
{
    size_t held = held_by(p);

    for (struct fake_block *b = fake_blocks(p->device), *next; b != NULL && held > keep; b = next) {
        next = b->next;
        if (b->pool == p && b->idle && b->freed_on->done >= b->freed_seq) {
            held -= b->len;
            fake_block_give(b);
        }
    }
}

fl_CUresult fake_cuMemPoolTrimTo(fl_CUmemoryPool pool, size_t keep)
{
    FAKE_ENTER(cuMemPoolTrimTo, FAKE_NO_CAPTURE);
    struct fake_pool *p = pool_of(pool);

    if (p == NULL) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    trim(p, keep);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemPoolDestroy(fl_CUmemoryPool pool)
{
    FAKE_ENTER(cuMemPoolDestroy, FAKE_NO_CAPTURE);
    struct fake_pool *p = pool_of(pool), **at = &pools;

    if (p == NULL) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    fake_sync_device(p->device);
    trim(p, 0);
    for (struct fake_block *b = fake_blocks(p->device); b != NULL; b = b->next) {
        if (b->pool == p) {
            fake_violation("cuMemPoolDestroy with something allocated");
            b->pool = NULL;
        }
    }
    while (*at != p) {
        at = &(*at)->next;
    }
    *at = p->next;
    free(p);
    return fake_leave(FL_CUDA_SUCCESS);
}

/* What is idle and large enough, best what this stream comes after anyway. */
static struct fake_block *idle_block(const struct fake_pool *p, size_t len,
                                     const struct fake_stream *s)
{
    struct fake_block *found = NULL;

    for (struct fake_block *b = fake_blocks(p->device); b != NULL; b = b->next) {
        if (b->pool == p && b->idle && b->len >= len && b->len <= 2 * len + 4096 &&
            (found == NULL || b->freed_on == s)) {
            found = b;
        }
    }
    return found;
}

fl_CUresult fake_cuMemAllocFromPoolAsync(fl_CUdeviceptr *address, size_t len, fl_CUmemoryPool pool,
                                         fl_CUstream stream)
{
    FAKE_ENTER(cuMemAllocFromPoolAsync, FAKE_CONTEXT);
    struct fake_pool *p = pool_of(pool);
    struct fake_stream *s = fake_stream_of(stream);
    struct fake_block *b;

    if (p == NULL || s == NULL || len == 0) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    b = idle_block(p, len, s);
    if (b != NULL) {
        if (b->freed_on != s) {
            fake_wait_for(s, b->freed_on, b->freed_seq, &b->freed_clock);
        }
        b->idle = false;
    } else {
        b = fake_block_take(p->device, len, 0, FAKE_BLOCK_POOL);
        if (b == NULL) {
            fake_sync_device(p->device);
            trim(p, 0);
            b = fake_block_take(p->device, len, 0, FAKE_BLOCK_POOL);
        }
    }
    if (b == NULL) {
        return fake_leave(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    b->pool = p;
    *address = fake_block_address(b);
    fake_submit_order(s);
    fake_access(s->component, &s->clock, *address, b->len, true);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemFreeAsync(fl_CUdeviceptr address, fl_CUstream stream)
{
    FAKE_ENTER(cuMemFreeAsync, FAKE_CONTEXT);
    struct fake_stream *s = fake_stream_of(stream);
    struct fake_context *c = fake_context_now();
    struct fake_block *b = fake_blocks(c->device);
    struct fake_op mark = {.kind = FAKE_OP_MARK};

    while (b != NULL &&
           !(fake_block_address(b) == address && b->kind == FAKE_BLOCK_POOL && !b->idle)) {
        b = b->next;
    }
    if (s == NULL || b == NULL) {
        fake_violation("cuMemFreeAsync of what is no allocation of a pool");
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    fake_submit_order(s);
    fake_access(s->component, &s->clock, address, b->len, true);
    b->freed_clock = s->clock;
    b->freed_on = s;
    b->freed_seq = s->tail + 1;
    b->idle = true;
    fake_submit(s, &mark);
    return fake_leave(FL_CUDA_SUCCESS);
}

unsigned fake_pool_live(void)
{
    unsigned n = 0;

    for (const struct fake_pool *p = pools; p != NULL; p = p->next) {
        n++;
    }
    return n;
}

void fake_pool_reset(void)
{
    while (pools != NULL) {
        struct fake_pool *p = pools;
        pools = p->next;
        free(p);
    }
}
