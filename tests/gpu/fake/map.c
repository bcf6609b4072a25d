/* Virtual memory management: addresses, memory behind handles, and which of it is mapped where. */
#include "gpu/fake/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRANULE = 2 << 20 };

struct span { /* addresses that are reserved */
    struct span *next;
    char *reserved; /* with what alignment took */
    size_t reserved_len;
    uint64_t base;
    size_t len;
};

struct memory { /* behind a handle, which is its number */
    struct memory *next;
    unsigned long long handle;
    struct fake_block *block;
    unsigned maps;
    bool released; /* goes when its last map does */
};

struct map {
    struct map *next;
    uint64_t base;
    size_t len, offset;
    struct memory *memory;
    bool accessible;
};

static struct span *spans;
static struct memory *memories;
static struct map *maps;
static unsigned long long handles = 0x1000;

static struct memory *memory_of(unsigned long long handle)
{
    struct memory *m = memories;

    while (m != NULL && (m->handle != handle || m->released)) {
        m = m->next;
    }
    if (m == NULL) {
        fake_violation("%s: no such handle", fake_call_now());
    }
    return m;
}

static struct span *span_at(uint64_t address, size_t len)
{
    struct span *s = spans;

    while (s != NULL && (address < s->base || address + len > s->base + s->len)) {
        s = s->next;
    }
    return s;
}

bool fake_map_has(uint64_t address)
{
    return span_at(address, 1) != NULL;
}

static struct map *map_at(uint64_t address)
{
    struct map *m = maps;

    while (m != NULL && address - m->base >= m->len) {
        m = m->next;
    }
    return m;
}

char *fake_map_bytes(uint64_t address, size_t *out_len)
{
    const struct map *m = map_at(address);

    if (m == NULL || !m->accessible) {
        return NULL;
    }
    size_t at = (size_t)(address - m->base);
    *out_len = m->len - at;
    return fake_device_bytes(m->memory->block->device, m->memory->block->lo + m->offset + at);
}

fl_CUresult fake_cuMemGetAllocationGranularity(size_t *granularity,
                                               const struct fl_CUmemAllocationProp *prop,
                                               int option)
{
    FAKE_ENTER(cuMemGetAllocationGranularity, 0);
    (void)option;
    if (prop->type != FL_CU_MEM_ALLOCATION_TYPE_PINNED) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    *granularity = GRANULE;
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemAddressReserve(fl_CUdeviceptr *address, size_t len, size_t align,
                                     fl_CUdeviceptr wish, unsigned long long flags)
{
    FAKE_ENTER(cuMemAddressReserve, 0);
    struct span *s;

    (void)wish;
    align = align == 0 ? GRANULE : align;
    if (flags != 0 || len == 0 || len % GRANULE != 0 || (align & (align - 1)) != 0) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    s = fake_zalloc(sizeof *s);
    s->reserved_len = len + align;
    s->reserved =
        mmap(NULL, s->reserved_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->reserved == MAP_FAILED) {
        free(s);
        return fake_leave(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    s->base = ((uintptr_t)s->reserved + align - 1) & ~(uint64_t)(align - 1);
    s->len = len;
    s->next = spans;
    spans = s;
    *address = s->base;
    return fake_leave(FL_CUDA_SUCCESS);
}

static void drop_span(struct span **at)
{
    struct span *s = *at;

    *at = s->next;
    munmap(s->reserved, s->reserved_len);
    free(s);
}

fl_CUresult fake_cuMemAddressFree(fl_CUdeviceptr address, size_t len)
{
    FAKE_ENTER(cuMemAddressFree, 0);
    struct span **at = &spans;

    while (*at != NULL && ((*at)->base != address || (*at)->len != len)) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        fake_violation("cuMemAddressFree of what is not reserved so");
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    for (const struct map *m = maps; m != NULL; m = m->next) {
        if (m->base >= address && m->base < address + len) {
            fake_violation("cuMemAddressFree with something mapped there");
            return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
        }
    }
    drop_span(at);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemCreate(fl_CUmemGenericAllocationHandle *handle, size_t len,
                             const struct fl_CUmemAllocationProp *prop, unsigned long long flags)
{
    FAKE_ENTER(cuMemCreate, FAKE_NO_CAPTURE);
    struct memory *m;

    if (flags != 0 || len == 0 || len % GRANULE != 0 ||
        prop->type != FL_CU_MEM_ALLOCATION_TYPE_PINNED ||
        prop->location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE || prop->location.id < 0 ||
        (uint64_t)prop->location.id >= fake_setting[FAKE_CUDA_DEVICES]) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    m = fake_zalloc(sizeof *m);
    m->block = fake_block_take(prop->location.id, len, GRANULE, FAKE_BLOCK_PHYSICAL);
    if (m->block == NULL) {
        free(m);
        return fake_leave(FL_CUDA_ERROR_OUT_OF_MEMORY);
    }
    m->handle = ++handles;
    m->next = memories;
    memories = m;
    *handle = m->handle;
    return fake_leave(FL_CUDA_SUCCESS);
}

static void drop_memory(struct memory *m)
{
    struct memory **at = &memories;

    if (m->maps > 0 || !m->released) {
        return;
    }
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    fake_block_give(m->block);
    free(m);
}

fl_CUresult fake_cuMemRelease(fl_CUmemGenericAllocationHandle handle)
{
    FAKE_ENTER(cuMemRelease, 0);
    struct memory *m = memory_of(handle);

    if (m == NULL) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    m->released = true;
    drop_memory(m);
    return fake_leave(FL_CUDA_SUCCESS);
}

fl_CUresult fake_cuMemMap(fl_CUdeviceptr address, size_t len, size_t offset,
                          fl_CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    FAKE_ENTER(cuMemMap, FAKE_NO_CAPTURE);
    struct memory *m = memory_of(handle);
    struct map *map;

    if (m == NULL || flags != 0 || offset != 0 || len != m->block->len ||
        span_at(address, len) == NULL) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    for (const struct map *o = maps; o != NULL; o = o->next) {
        if (o->base < address + len && address < o->base + o->len) {
            fake_violation("cuMemMap where something is mapped");
            return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
        }
    }
    map = fake_zalloc(sizeof *map);
    *map = (struct map){maps, address, len, offset, m, false};
    maps = map;
    m->maps++;
    return fake_leave(FL_CUDA_SUCCESS);
}

static void drop_map(struct map **at)
{
    struct map *m = *at;

    *at = m->next;
    fake_access_forget(m->base, m->len);
    m->memory->maps--;
    drop_memory(m->memory);
    free(m);
}

fl_CUresult fake_cuMemUnmap(fl_CUdeviceptr address, size_t len)
{
    FAKE_ENTER(cuMemUnmap, FAKE_NO_CAPTURE);
    size_t found = 0;

    if (fake_is_queued(address, len)) {
        fake_violation("cuMemUnmap amid what is queued");
    }
    for (struct map **at = &maps; *at != NULL;) {
        if ((*at)->base >= address && (*at)->base + (*at)->len <= address + len) {
            found += (*at)->len;
            drop_map(at);
        } else {
            at = &(*at)->next;
        }
    }
    return fake_leave(found == len ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_INVALID_VALUE);
}

fl_CUresult fake_cuMemSetAccess(fl_CUdeviceptr address, size_t len,
                                const struct fl_CUmemAccessDesc *desc, size_t count)
{
    FAKE_ENTER(cuMemSetAccess, FAKE_NO_CAPTURE);
    size_t found = 0;

    if (count == 0 || desc[0].flags != FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
        desc[0].location.type != FL_CU_MEM_LOCATION_TYPE_DEVICE || desc[0].location.id < 0 ||
        (uint64_t)desc[0].location.id >= fake_setting[FAKE_CUDA_DEVICES]) {
        return fake_leave(FL_CUDA_ERROR_INVALID_VALUE);
    }
    for (struct map *m = maps; m != NULL; m = m->next) {
        if (m->base >= address && m->base + m->len <= address + len) {
            m->accessible = m->accessible || desc[0].location.id == m->memory->block->device;
            found += m->len;
        }
    }
    return fake_leave(found == len ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_INVALID_VALUE);
}

unsigned fake_map_live(void)
{
    unsigned n = 0;

    for (const struct span *s = spans; s != NULL; s = s->next) {
        n++;
    }
    for (const struct map *m = maps; m != NULL; m = m->next) {
        n++;
    }
    return n;
}

void fake_map_reset(void)
{
    while (maps != NULL) {
        drop_map(&maps);
    }
    while (memories != NULL) {
        memories->released = true;
        drop_memory(memories);
    }
    while (spans != NULL) {
        drop_span(&spans);
    }
}
