/* The device's side of a mirror. Where it is to grow its addresses are reserved and memory is
 * mapped to them, piece by piece (the driver's virtual memory management): so no address ever
 * changes. Else it is one allocation.
 * Source: CUDA Driver API, "Virtual Memory Management". */
#include "gpu/mirror/mirror.h"

#include <errno.h>
#include <stdlib.h>

enum { DEVICES = 64 }; /* of t->access */

static struct fl_CUmemAllocationProp prop_of(const struct fl_twin *t, const struct fl_gpu *gpu)
{
    return (struct fl_CUmemAllocationProp){
        .type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = t->is_shared ? FL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
        .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = gpu->device}};
}

static size_t round_up(size_t v, size_t to)
{
    return v > SIZE_MAX - to ? 0 : (v + to - 1) / to * to;
}

/* Goes on after a refusal, the first of which is told. */
static int release_piece(const struct fl_twin *t, const struct fl_gpu *gpu,
                         const struct fl_twin_piece *p, bool mapped)
{
    int rc = mapped ? fl_cuda_status(fl_cuda.cuMemUnmap(t->base + p->offset, p->len), "cuMemUnmap",
                                     p->len)
                    : 0;
    int released = fl_cuda_status(fl_cuda.cuMemRelease(p->handle), "cuMemRelease", p->len);

    if (rc == 0 && released == 0) {
        fl_gpu_account_give(gpu, p->len);
    }
    return rc != 0 ? rc : released;
}

/* Of all that may use it. */
static int set_access(const struct fl_twin *t, const struct fl_twin_piece *p)
{
    int rc = 0;

    for (int device = 0; device < DEVICES && rc == 0; device++) {
        struct fl_CUmemAccessDesc access = {
            .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
            .flags = FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        if ((t->access >> device & 1) != 0) {
            rc = fl_cuda_status(fl_cuda.cuMemSetAccess(t->base + p->offset, p->len, &access, 1),
                                "cuMemSetAccess", p->len);
        }
    }
    return rc;
}

int fl_twin_admit(struct fl_twin *t, int device)
{
    struct fl_twin with = *t;
    int rc = 0;

    if (t->reserved == 0) {
        return fl_gpu_fail(-ENOTSUP, "the mirror is one allocation: cuCtxEnablePeerAccess");
    }
    if (device < 0 || device >= DEVICES) {
        return fl_gpu_fail(-EINVAL, "no device of that number");
    }
    with.access = UINT64_C(1) << device;
    for (unsigned i = 0; i < t->pieces && rc == 0; i++) {
        rc = set_access(&with, &t->piece[i]);
    }
    t->access |= rc == 0 ? with.access : 0;
    return rc;
}

/* The next `len` bytes are memory. */
static int map_piece(struct fl_twin *t, const struct fl_gpu *gpu, struct fl_twin_piece *p)
{
    struct fl_CUmemAllocationProp prop = prop_of(t, gpu);
    int rc = fl_gpu_account_take(gpu, p->len);

    if (rc != 0) {
        return rc;
    }
    rc = fl_cuda_status(fl_cuda.cuMemCreate(&p->handle, p->len, &prop, 0), "cuMemCreate", p->len);
    if (rc != 0) {
        fl_gpu_account_give(gpu, p->len);
        return rc;
    }
    rc = fl_cuda_status(fl_cuda.cuMemMap(t->base + p->offset, p->len, 0, p->handle, 0), "cuMemMap",
                        p->len);
    if (rc != 0) {
        (void)release_piece(t, gpu, p, false);
        return rc;
    }
    rc = set_access(t, p);
    if (rc != 0) {
        (void)release_piece(t, gpu, p, true);
    }
    return rc;
}

int fl_twin_grow(struct fl_twin *t, const struct fl_gpu *gpu, size_t len)
{
    size_t want = round_up(len, t->granule != 0 ? t->granule : 1);

    if (len <= t->len) {
        return 0;
    }
    if (want == 0 || want > t->reserved) {
        return fl_gpu_fail(-EBUSY, "the mirror has no addresses to grow into");
    }
    struct fl_twin_piece *piece = realloc(t->piece, (t->pieces + 1) * sizeof *piece);
    if (piece == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a record");
    }
    t->piece = piece;
    piece[t->pieces] = (struct fl_twin_piece){.offset = t->len, .len = want - t->len};
    int rc = map_piece(t, gpu, &piece[t->pieces]);
    if (rc == 0) {
        t->pieces++;
        t->len = want;
    }
    return rc;
}

static int reserve(struct fl_twin *t, const struct fl_gpu *gpu, size_t len, size_t want)
{
    struct fl_CUmemAllocationProp prop = prop_of(t, gpu);
    int rc = fl_cuda_status(fl_cuda.cuMemGetAllocationGranularity(
                                &t->granule, &prop, FL_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
                            "cuMemGetAllocationGranularity", 0);

    t->granule = fl_max(t->granule, 1);
    t->reserved = rc == 0 ? round_up(fl_max(len, want), t->granule) : 0;
    if (rc == 0 && t->reserved == 0) {
        rc = fl_gpu_fail(-ENOMEM, "a mirror of that size cannot be");
    }
    if (rc == 0) {
        rc = fl_cuda_status(fl_cuda.cuMemAddressReserve(&t->base, t->reserved, t->granule, 0, 0),
                            "cuMemAddressReserve", t->reserved);
    }
    if (rc != 0) {
        *t = (struct fl_twin){.len = 0};
    }
    return rc;
}

int fl_twin_make(struct fl_twin *t, const struct fl_gpu *gpu, size_t len, size_t want, bool shared)
{
    *t = (struct fl_twin){.is_shared = shared && gpu->has_export,
                          .access = UINT64_C(1) << (gpu->device & (DEVICES - 1))};
    if (!gpu->has_vmm || want <= len) {
        int rc = fl_gpu_account_take(gpu, len);
        if (rc != 0) {
            return rc;
        }
        rc = fl_cuda_status(fl_cuda.cuMemAlloc(&t->base, len), "cuMemAlloc", len);
        if (rc != 0) {
            fl_gpu_account_give(gpu, len);
        }
        t->len = rc == 0 ? len : 0;
        t->base = rc == 0 ? t->base : 0;
        return rc;
    }
    int rc = reserve(t, gpu, len, want);
    if (rc == 0) {
        rc = fl_twin_grow(t, gpu, len);
        if (rc != 0) {
            (void)fl_cuda.cuMemAddressFree(t->base, t->reserved);
            free(t->piece);
            *t = (struct fl_twin){.len = 0};
        }
    }
    return rc;
}

int fl_twin_end(struct fl_twin *t, const struct fl_gpu *gpu)
{
    int first = 0;

    if (t->base != 0 && t->reserved == 0) {
        first = fl_cuda_status(fl_cuda.cuMemFree(t->base), "cuMemFree", t->len);
        if (first == 0) {
            fl_gpu_account_give(gpu, t->len);
        }
    }
    for (unsigned i = 0; i < t->pieces; i++) {
        int rc = release_piece(t, gpu, &t->piece[i], true);
        first = first != 0 ? first : rc;
    }
    if (t->reserved != 0) {
        int rc = fl_cuda_status(fl_cuda.cuMemAddressFree(t->base, t->reserved), "cuMemAddressFree",
                                t->reserved);
        first = first != 0 ? first : rc;
    }
    free(t->piece);
    *t = (struct fl_twin){.len = 0};
    return first;
}
