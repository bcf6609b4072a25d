/* A device's memory: its addresses cannot be touched, its bytes lie elsewhere. First fit, so that
 * it fragments as memory does. */
#include "gpu/fake/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEVICES = 8, GRAIN = 512, HUGE = 2 << 20 };

static struct device {
    char *reserved, *base, *bytes; /* addresses, and where the bytes are; NULL: not used yet */
    size_t capacity, used;
    int fd;
    struct fake_block *blocks; /* by `lo` */
} devices[DEVICES];

static bool open_device(struct device *d)
{
    if (d->base != NULL) {
        return true;
    }
    d->capacity = (size_t)fake_setting[FAKE_CUDA_CAPACITY];
    d->fd = memfd_create("fake-cuda", MFD_CLOEXEC);
    if (d->fd < 0 || ftruncate(d->fd, (off_t)d->capacity) != 0) {
        return false;
    }
    /* Aligned as a driver's memory is: to 2 MiB. */
    d->reserved = mmap(NULL, d->capacity + HUGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->bytes = mmap(NULL, d->capacity, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
    if (d->reserved == MAP_FAILED || d->bytes == MAP_FAILED) {
        abort();
    }
    d->base = d->reserved + (HUGE - (uintptr_t)d->reserved % HUGE) % HUGE;
    return true;
}

char *fake_device_bytes(int device, size_t at)
{
    return devices[device].bytes + at;
}

struct fake_block *fake_block_take(int device, size_t len, size_t align)
{
    struct device *d = &devices[device];
    struct fake_block **at = &d->blocks;
    size_t lo = 0;

    if (!open_device(d) || len == 0 || len > d->capacity) {
        return NULL;
    }
    align = align > GRAIN ? align : GRAIN;
    len = (len + GRAIN - 1) / GRAIN * GRAIN;
    while (*at != NULL && ((*at)->lo < lo || (*at)->lo - lo < len)) {
        lo = ((*at)->lo + (*at)->len + align - 1) / align * align;
        at = &(*at)->next;
    }
    if (lo > d->capacity || d->capacity - lo < len) {
        return NULL;
    }
    struct fake_block *b = fake_zalloc(sizeof *b);
    b->lo = lo;
    b->len = len;
    b->device = device;
    b->next = *at;
    *at = b;
    d->used += len;
    fake_figures.live++;
    return b;
}

void fake_block_give(struct fake_block *b)
{
    struct device *d = &devices[b->device];
    struct fake_block **at = &d->blocks;

    while (*at != b) {
        at = &(*at)->next;
    }
    *at = b->next;
    d->used -= b->len;
    fake_figures.live--;
    (void)fallocate(d->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)b->lo, (off_t)b->len);
    fake_access_forget(fake_block_address(b), b->len);
    free(b);
}

uint64_t fake_block_address(const struct fake_block *b)
{
    return (uintptr_t)devices[b->device].base + b->lo;
}

static struct device *device_at(uint64_t address)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &devices[i];
        if (d->base != NULL && address - (uintptr_t)d->base < d->capacity) {
            return d;
        }
    }
    return NULL;
}

static struct fake_block *block_at(uint64_t address)
{
    const struct device *d = device_at(address);
    struct fake_block *b = d == NULL ? NULL : d->blocks;
    size_t at = d == NULL ? 0 : (size_t)(address - (uintptr_t)d->base);

    while (b != NULL && (at < b->lo || at >= b->lo + b->len)) {
        b = b->next;
    }
    return b;
}

char *fake_bytes(uint64_t address, size_t *out_len)
{
    const struct device *d = device_at(address);

    if (d == NULL) {
        return NULL;
    }
    *out_len = d->capacity - (size_t)(address - (uintptr_t)d->base);
    return d->bytes + (address - (uintptr_t)d->base);
}

bool fake_is_device(uint64_t address)
{
    return device_at(address) != NULL;
}

bool fake_is_allocated(uint64_t address, size_t len)
{
    const struct fake_block *b = block_at(address);

    if (len == 0 || (b != NULL && address - fake_block_address(b) + len <= b->len)) {
        return true;
    }
    fake_violation("%s: %zu bytes at %#llx are not all allocated", fake_call_now(), len,
                   (unsigned long long)address);
    return false;
}

size_t fake_used(int device)
{
    return device >= 0 && device < DEVICES ? devices[device].used : 0;
}

fl_CUresult fake_cuMemGetInfo(size_t *left, size_t *total)
{
    FAKE_ENTER(cuMemGetInfo, FAKE_CONTEXT);
    const struct device *d = &devices[fake_context_now()->device];

    *total = d->base != NULL ? d->capacity : (size_t)fake_setting[FAKE_CUDA_CAPACITY];
    *left = *total - d->used;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemAlloc(fl_CUdeviceptr *address, size_t len)
{
    FAKE_ENTER(cuMemAlloc, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    struct fake_block *b;

    FAKE_REFUSE(len == 0, FL_CUDA_ERROR_INVALID_VALUE);
    /* As drivers do: what is large has whole pages of its own, what is small shares them. */
    size_t grain = len >= HUGE / 2 ? HUGE : GRAIN;
    b = fake_block_take(fake_context_now()->device, (len + grain - 1) / grain * grain, grain);
    FAKE_REFUSE(b == NULL, FL_CUDA_ERROR_OUT_OF_MEMORY);
    *address = fake_block_address(b);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemFree(fl_CUdeviceptr address)
{
    FAKE_ENTER(cuMemFree, FAKE_CONTEXT | FAKE_NO_CAPTURE);
    struct fake_block *b = block_at(address);

    FAKE_REFUSE(address == 0, FL_CUDA_SUCCESS);
    if (b == NULL || fake_block_address(b) != address) {
        fake_violation("cuMemFree of %#llx, which is no allocation", (unsigned long long)address);
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    fake_figures.implicit_syncs++;
    fake_sync_device(b->device);
    fake_block_give(b);
    return fake_leave(FL_CUDA_SUCCESS);
}

/* A bench's yardstick: no order of streams is kept, and nothing is. */
fl_CUresult fake_cuMemAllocAsync(fl_CUdeviceptr *address, size_t len, fl_CUstream stream)
{
    (void)stream;
    return fake_cuMemAlloc(address, len);
}

fl_CUresult fake_cuMemFreeAsync(fl_CUdeviceptr address, fl_CUstream stream)
{
    (void)stream;
    return fake_cuMemFree(address);
}

void fake_memory_reset(void)
{
    for (int i = 0; i < DEVICES; i++) {
        struct device *d = &devices[i];
        while (d->blocks != NULL) {
            fake_block_give(d->blocks);
        }
        if (d->base != NULL) {
            munmap(d->reserved, d->capacity + HUGE);
            munmap(d->bytes, d->capacity);
            close(d->fd);
        }
        *d = (struct device){.fd = -1};
    }
}
